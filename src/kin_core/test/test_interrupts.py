"""Ctrl-C while a command starts is one line; every other error looks as usual."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("error", "expected"),
    [("KeyboardInterrupt", "kinstack: interrupted\n"), ("ValueError('x')", "ValueError: x\n")],
)
def test_how_an_uncaught_error_is_shown(error, expected):
    code = f"import kin_core.interrupts\nraise {error}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith(expected)
    assert ("Traceback" in done.stderr) == (error != "KeyboardInterrupt")
