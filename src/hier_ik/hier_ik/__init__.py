"""Hierarchical decomposition, kinematic abstraction and inverse kinematics of large linkages."""

from hier_ik.abstraction import Properness, check_proper, encapsulate, substitute
from hier_ik.assembly import Assemblies, Assembly, all_assemblies, assemble
from hier_ik.decompose import Component, Decomposition, decompose
from hier_ik.elements import Goal, Joint, Link, Sublinkage, frame
from hier_ik.errors import HierError, LinkageError
from hier_ik.examine import Findings, examine
from hier_ik.files import apply_edits, dump_linkage, load_linkage
from hier_ik.joints import JOINT_TYPES, JointType
from hier_ik.linkage import Linkage
from hier_ik.loop_closer import LoopCloser, State, Step
from hier_ik.mjcf import load_mjcf_linkage
from hier_ik.solver import MODES, Residual, Solution, Solver, SolverOptions
from hier_ik.spanning import assign_roles
from hier_ik.tower import tower
from hier_ik.urdf import dump_urdf, load_urdf_linkage
from hier_ik.validation import validate
from kin_core.versions import version_of

__version__ = version_of(__name__)

__all__ = [
    "Assemblies", "Assembly", "Component", "Decomposition", "Findings", "Goal", "HierError",
    "JOINT_TYPES", "Joint", "JointType", "Link", "Linkage", "LinkageError", "LoopCloser", "MODES",
    "Properness", "Residual", "Solution", "Solver", "SolverOptions", "State", "Step", "Sublinkage",
    "all_assemblies", "apply_edits", "assemble", "assign_roles", "check_proper", "decompose",
    "dump_linkage", "dump_urdf", "encapsulate", "examine", "frame", "load_linkage",
    "load_mjcf_linkage", "load_urdf_linkage", "substitute", "tower", "validate",
]  # fmt: skip
