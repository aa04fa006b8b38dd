"""The examples are plain: what they import, and that each can be asked what it does.

That they run against a stack is tested in src/kin_tools/test/test_stack.py.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))

#: ROS itself and messages; nothing of kinstack but its interfaces.
ALLOWED = {"rclpy", "kin_interfaces", "geometry_msgs"}


def imported(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_one_for_each_system():
    asked = "".join(script.read_text() for script in SCRIPTS)
    for node in ("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"):
        assert f"/{node}" in asked
    numbers = [int(script.name[:2]) for script in SCRIPTS]
    assert numbers == list(range(1, len(SCRIPTS) + 1))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_imports_only_ros_and_messages(script):
    foreign = set(imported(script)) - set(sys.stdlib_module_names)
    assert foreign <= ALLOWED
    assert script.name in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_says_what_it_does(script):
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "--stack" in done.stdout
