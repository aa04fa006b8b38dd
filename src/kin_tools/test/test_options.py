"""The words of the commands, before anything is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from kin_tools import options


@pytest.mark.parametrize("module", ["call", "up", "launch"])
def test_help(module):
    done = subprocess.run(
        [sys.executable, "-m", f"kin_tools.{module}", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "usage" in done.stdout


@pytest.mark.parametrize("word", ["call", "up", "launch"])
def test_help_needs_the_standard_library_alone(word):
    """As ./kinstack asks for it before anything is installed."""
    done = subprocess.run(
        [sys.executable, "-IS", Path(options.__file__).resolve(), word, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"usage: kinstack {word}" in done.stdout


def test_what_is_not_said_has_a_default():
    up = options.up_parser().parse_args(["cuik:=false"])
    assert (up.words, up.check, up.timeout) == (["cuik:=false"], False, 300.0)
    call = options.call_parser().parse_args(["/s", "a/srv/B"])
    assert (call.request, call.wait, call.timeout) == ("{}", 5.0, 600.0)
