"""Cuik: every solution of a closed mechanism, with certificates.

J.M. Porta, L. Ros, F. Thomas, "Isolating self-motion manifolds on a PlayStation".
"""

from kin_core.versions import version_of
from kin_solvers.all_ik import AllIK, solve_all_ik
from kin_solvers.dh import arm_from_dh, loop_from_dh
from kin_solvers.errors import CuikError, MechanismError, RequestError, SettingsError, SizeError
from kin_solvers.lines import straight_line
from kin_solvers.manifold import Component, Counters, Manifold
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable
from kin_solvers.mechanism_urdf import arm_from_urdf, loops_from_urdf
from kin_solvers.mechanism_yaml import load_mechanism
from kin_solvers.paths import JointPath, PathTree, follow_path, solve_path
from kin_solvers.settings import Settings
from kin_solvers.solve import solve

__version__ = version_of(__name__)

__all__ = [
    "AllIK",
    "Component",
    "Constant",
    "Counters",
    "CuikError",
    "JointPath",
    "Loop",
    "Manifold",
    "Mechanism",
    "MechanismError",
    "Motion",
    "PathTree",
    "RequestError",
    "Settings",
    "SettingsError",
    "SizeError",
    "Variable",
    "arm_from_dh",
    "arm_from_urdf",
    "follow_path",
    "load_mechanism",
    "loop_from_dh",
    "loops_from_urdf",
    "solve",
    "solve_all_ik",
    "solve_path",
    "straight_line",
]
