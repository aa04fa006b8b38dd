"""The launch runner, the stack monitor and the command line of kinstack."""

from kin_tools.errors import ArgumentProblem, LaunchError, ToolError
from kin_tools.launch_xml import LaunchPlan, load_launch_file, show_arguments
from kin_tools.process_spec import ProcessSpec
from kin_tools.runner import Supervisor

__all__ = [
    "ArgumentProblem",
    "LaunchError",
    "LaunchPlan",
    "ProcessSpec",
    "Supervisor",
    "ToolError",
    "load_launch_file",
    "show_arguments",
]
