"""Errors of the tools: where they are, and what they are."""

from pathlib import Path

from kin_core.errors import InvalidInput, KinError, StatusCode
from kin_tools.errors import ArgumentProblem, LaunchError, ToolError


def test_a_fault_names_file_and_line():
    error = LaunchError("a.launch.xml", 7, "is odd")
    assert str(error) == "a.launch.xml:7: is odd"
    assert (error.file, error.line) == (Path("a.launch.xml"), 7)
    assert str(LaunchError("a.launch.xml", 0, "is odd")) == "a.launch.xml: is odd"


def test_every_error_is_one_of_the_tools_and_of_the_project():
    for error in (LaunchError("a", 1, "b"), ArgumentProblem("a", "b")):
        assert isinstance(error, (ToolError, InvalidInput))
        assert isinstance(error, KinError)
        assert error.code == StatusCode.INVALID_INPUT
