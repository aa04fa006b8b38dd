"""The errors of the tools: each is a sentence that a person can act on."""

from __future__ import annotations

from pathlib import Path

from kin_core.errors import InvalidInput, KinError

__all__ = ["ArgumentProblem", "LaunchError", "ToolError"]


class ToolError(KinError):
    """Root of the errors of kin_tools."""


class ArgumentProblem(ToolError, InvalidInput):
    """An argument of the command line that cannot be used."""


class LaunchError(ToolError, InvalidInput):
    """A launch file that cannot be used.

    Attributes:
        file: The file in which the fault is.
        line: The line at which the element starts, or the fault; 0 if it is the whole file.
    """

    def __init__(self, file: str | Path, line: int, problem: str) -> None:
        InvalidInput.__init__(self, f"{file}:{line}" if line else str(file), problem)
        self.file = Path(file)
        self.line = line
