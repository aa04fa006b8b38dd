"""Continuum Stewart-Gough robots: inverse and forward kinematics, stiffness, workspace."""

from continuum_ik.analysis import Analysis
from continuum_ik.errors import ContinuumError, NoHome, RobotError
from continuum_ik.pose import make_pose
from continuum_ik.robot import ContinuumRobot, Limits, Load, Rod, hole_pattern, load_robot
from continuum_ik.solver import (
    TIGHT,
    TUTORIAL,
    Batch,
    ContinuumSolver,
    FKBatch,
    FKResult,
    IKResult,
    run_streams,
)
from continuum_ik.sweep import Sweep, draw_sweep, sweep_workspace
from kin_core.versions import version_of

__version__ = version_of(__name__)

__all__ = [
    "TIGHT",
    "TUTORIAL",
    "Analysis",
    "Batch",
    "ContinuumError",
    "ContinuumRobot",
    "ContinuumSolver",
    "FKBatch",
    "FKResult",
    "IKResult",
    "Limits",
    "Load",
    "NoHome",
    "Rod",
    "RobotError",
    "Sweep",
    "draw_sweep",
    "hole_pattern",
    "load_robot",
    "make_pose",
    "run_streams",
    "sweep_workspace",
]
