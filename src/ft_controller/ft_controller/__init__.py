"""A computed-torque controller that keeps the arm under control while its processors die.

After D. L. Hamilton, J. K. Bennett and I. D. Walker, "Simulation of a reliable parallel robot
controller", Rice University. The library needs no ROS; ``node`` and ``simulator_node`` do.
"""

from ft_controller.arm import Arm
from ft_controller.controllers import CONTROLLERS
from ft_controller.errors import (
    ArmError,
    FtError,
    GoalError,
    ReplicaError,
    ScheduleError,
    TooLarge,
)
from ft_controller.explain import Processor
from ft_controller.faults import Fault, load_schedule
from ft_controller.limits import Limits
from ft_controller.planner import Plan, plan
from ft_controller.plant import Plant
from ft_controller.replica_group import ReplicaGroup, Tick
from ft_controller.safety_supervisor import State
from ft_controller.spatial_arm import SpatialArm
from ft_controller.timing import Timing
from ft_controller.trajectory import Trajectory
from kin_core.versions import version_of

__version__ = version_of(__name__)

__all__ = [
    "CONTROLLERS",
    "Arm",
    "ArmError",
    "Fault",
    "FtError",
    "GoalError",
    "Limits",
    "Plan",
    "Plant",
    "Processor",
    "ReplicaError",
    "ReplicaGroup",
    "ScheduleError",
    "SpatialArm",
    "State",
    "Tick",
    "Timing",
    "TooLarge",
    "Trajectory",
    "load_schedule",
    "plan",
]
