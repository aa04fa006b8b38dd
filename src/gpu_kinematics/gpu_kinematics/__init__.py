"""Delta robots in batches: FK, IK, Jacobians, trajectories and control, on a GPU or a CPU."""

from gpu_kinematics.cpu import CpuBackend
from gpu_kinematics.cuda import CudaBackend
from gpu_kinematics.delta import Delta
from gpu_kinematics.errors import BackendError, DeltaError, DeltaInput, DeltaLimit
from gpu_kinematics.geometry import PUBLISHED_GEOMETRY, Geometry, Limits
from gpu_kinematics.status import Status, explain
from gpu_kinematics.trajectory import Fleet, Move, Trajectory
from gpu_kinematics.workspace import Workspace, map_workspace
from kin_core.versions import version_of

__version__ = version_of(__name__)

__all__ = [
    "PUBLISHED_GEOMETRY",
    "BackendError",
    "CpuBackend",
    "CudaBackend",
    "Delta",
    "DeltaError",
    "DeltaInput",
    "DeltaLimit",
    "Fleet",
    "Geometry",
    "Limits",
    "Move",
    "Status",
    "Trajectory",
    "Workspace",
    "explain",
    "map_workspace",
]
