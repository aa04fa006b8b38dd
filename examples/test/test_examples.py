"""The examples are plain: what they import, and that each can be asked what it does.

That they run against a stack is tested with the stack, in launch/test and docs/test.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
SCRIPTS = sorted(FOLDER.glob("[0-9]*.py"))

#: ROS itself, messages and what stands beside the script; nothing of kinstack but its interfaces.
STANDARD = {"rclpy", "visitor", "control_msgs", "geometry_msgs", "moveit_msgs", "sensor_msgs"}
STANDARD |= {"action_msgs", "std_msgs", "tf2_msgs", "trajectory_msgs"}
ALLOWED = {"kin_interfaces", *STANDARD}


def imported(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_one_for_each_system():
    asked = "".join(script.read_text() for script in SCRIPTS)
    for node in ("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"):
        assert f'"{node}/' in asked
    numbers = [int(script.name[:2]) for script in SCRIPTS]
    assert numbers == list(range(1, len(SCRIPTS) + 1))


@pytest.mark.parametrize("script", [*SCRIPTS, FOLDER / "visitor.py"], ids=lambda path: path.stem)
def test_imports_only_ros_and_messages(script):
    foreign = set(imported(script)) - set(sys.stdlib_module_names)
    assert foreign <= ALLOWED
    if "standard messages alone" in script.read_text():
        assert foreign <= STANDARD
    assert script.name in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_says_what_it_does(script):
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "--stack" in done.stdout


LIBRARY = sorted((FOLDER / "library").glob("[0-9]*.py"))

#: Arguments of a script, and what it must print.
SAYS = {
    "01_all_ik_of_a_urdf": (
        [FOLDER / "library" / "arm.urdf"],
        r"7 postures, all certified\ncomplete\n",
    ),
    "02_a_million_delta_robots": ([], r"1000000 of them .*\n.* [0-9.]+e-1\d rad\n.*because arm"),
    "03_a_continuum_robot": ([], r"platform \[m\]: -?0\.000000 0\.020000 0\.480000\n(.*\n)*out of"),
    "04_a_tower_of_270_joints": ([], r"met\n(.*\n)*the plate is at 0\.8000 -?0\.0000 11\.6000"),
}


@pytest.mark.parametrize("script", LIBRARY, ids=lambda path: path.stem)
def test_library_examples_run_without_ros(script):
    blocked = (
        "import runpy, sys; sys.modules['rclpy'] = None;"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    arguments, expected = SAYS[script.stem]
    done = subprocess.run(
        [sys.executable, "-c", blocked, script, *arguments],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout
    assert script.name in (FOLDER / "README.md").read_text()
