"""Robot descriptions."""

import math
import subprocess
import sys

import numpy as np
import pytest

from continuum_ik import ContinuumRobot, ContinuumSolver, RobotError, load_robot, make_pose


def test_default_is_the_tutorials():
    """Hole positions and stiffness as the tutorial's program computes them."""
    robot = ContinuumRobot()
    np.testing.assert_allclose(robot.base[0], [0.0856782745, -0.0151073915, 0], atol=1e-10)
    np.testing.assert_allclose(robot.base[3], [-0.0559225220, 0.0666458666, 0], atol=1e-10)
    np.testing.assert_allclose(robot.platform[0], [0.0559225220, -0.0666458666, 0], atol=1e-10)
    np.testing.assert_allclose(robot.platform[3], [-0.0856782745, 0.0151073915, 0], atol=1e-10)
    assert robot.rods[0].bending_stiffness == pytest.approx(0.0290210855, rel=1e-8)
    assert robot.rods[0].area == pytest.approx(1.3273229e-6, rel=1e-7)
    text = load_robot("{}")
    np.testing.assert_array_equal(text.base, robot.base)
    assert text.rods == robot.rods


FULL = """
name: heavy
base: {radius: 0.1, alpha1: 95, alpha2: 25}
platform: {radius: 0.06, angles: [-50, 50, 70, 170, 190, 290]}
rods:
  radius: 0.001
  youngs_modulus: 60.0e9
  poisson_ratio: 0.3
  override:
    - {rod: 2, radius: 0.0012}
load: {force: [0, 0, -2.0], moment: [0, 0, 0.01], point: [0, 0, 0.02]}
limits: {length: [0.1, 0.9], curvature: 10.0, force: 40.0, height: 0.05}
home_height: 0.35
"""


def test_everything_can_be_said(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(FULL)
    robot = load_robot(path)
    assert robot.name == "heavy"
    assert robot.rods[2].radius == 0.0012
    assert robot.rods[2].youngs_modulus == 60e9
    assert robot.rods[0].shear_modulus == pytest.approx(60e9 / 2.6)
    assert robot.limits.length == (0.1, 0.9)
    assert math.hypot(*robot.platform[1][:2]) == pytest.approx(0.06)
    result = ContinuumSolver(robot, 1e-12).solve(make_pose((0.01, 0.0, 0.4))).check()
    np.testing.assert_allclose(result.forces.sum(axis=0), robot.load.force, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("rods: {radius: -1}", "rods.radius"),
        ("rods: {radius: .nan}", "rods.radius"),
        ("rods: {radius: true}", "rods.radius"),
        ("rods: {youngs_modulus: abc}", "rods.youngs_modulus"),
        ("rods: {shear_modulus: 1e9, poisson_ratio: 0.3}", "rods"),
        ("rods: {poisson_ratio: 0.7}", "rods.poisson_ratio"),
        ("rods: {override: [{rod: 6}]}", "rods.override"),
        ("rods: {override: [{rod: 1}, {rod: 1}]}", "rods.override"),
        ("rods: {override: 5}", "rods.override"),
        ("rod: {radius: 1}", "did you mean 'rods'"),
        ("base: {points: [[0, 0], [1, 1]]}", "base.points"),
        ("base: {points: [[0,0],[0,0],[1,0],[0,1],[1,1],[2,2]]}", "base.points"),
        ("base: {points: [[0,0],[0,0,1],[1,0],[0,1],[1,1],[2,2]]}", "base.points"),
        ("base: {radius: 0}", "base.radius"),
        ("base: [1, 2]", "base"),
        ("load: {force: [1, 2]}", "load.force"),
        ("load: {force: [1, 2, .inf]}", "load.force"),
        ("limits: {length: [0.5, 0.2]}", "limits.length"),
        ("limits: {curvature: 0}", "limits.curvature"),
        ("home_height: -0.1", "home_height"),
        ("name: [1]", "name"),
        ("[1, 2]", "robot"),
        ("a: &x [*x]", "line 1"),
        ("a: {", "line"),
    ],
)
def test_errors_name_the_place(text, place):
    with pytest.raises(RobotError, match=place.replace("[", r"\[")):
        load_robot(text)


def test_missing_file(tmp_path):
    with pytest.raises(RobotError, match="cannot be read"):
        load_robot(tmp_path / "none.yaml")


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, math.nan, math.inf, 1e-30])
def test_tolerance_is_checked(tolerance):
    from kin_core.errors import InvalidInput

    with pytest.raises(InvalidInput, match="tolerance"):
        ContinuumSolver(tolerance=tolerance)


def test_the_library_needs_no_ros():
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('rclpy', 'rosidl_runtime_py', 'kin_interfaces'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import continuum_ik, continuum_ik.demo, continuum_ik.details, continuum_ik.follower\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'rclpy']\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
