"""The launch runner, the stack monitor and the command line of kinstack."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

#: Where each name lives; they are imported when first used, because a node that only needs the
#: monitor should not wait for an XML parser.
_HOMES = {
    "ArgumentProblem": "errors",
    "LaunchError": "errors",
    "LaunchPlan": "launch_xml",
    "ProcessSpec": "process_spec",
    "Supervisor": "runner",
    "ToolError": "errors",
    "load_launch_file": "launch_xml",
    "show_arguments": "launch_xml",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
