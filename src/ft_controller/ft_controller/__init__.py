"""A computed-torque controller that keeps the arm under control while its processors die.

After D. L. Hamilton, J. K. Bennett and I. D. Walker, "Simulation of a reliable parallel robot
controller", Rice University. The library needs no ROS; ``node`` and ``simulator_node`` do.
"""

import importlib.metadata

from ft_controller.arm import Arm
from ft_controller.crew import Crew, Processor, Tick, Timing
from ft_controller.errors import (
    ArmError,
    CrewError,
    FtError,
    GoalError,
    ScheduleError,
    TooLarge,
)
from ft_controller.faults import Fault, load_schedule
from ft_controller.governor import Limits, State
from ft_controller.planner import Plan, plan
from ft_controller.plant import Plant
from ft_controller.processor import CONTROLLERS
from ft_controller.trajectory import Trajectory

__version__ = importlib.metadata.version(__name__)

__all__ = [
    "CONTROLLERS",
    "Arm",
    "ArmError",
    "Crew",
    "CrewError",
    "Fault",
    "FtError",
    "GoalError",
    "Limits",
    "Plan",
    "Plant",
    "Processor",
    "ScheduleError",
    "State",
    "Tick",
    "Timing",
    "TooLarge",
    "Trajectory",
    "load_schedule",
    "plan",
]
