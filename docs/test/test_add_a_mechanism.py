"""The sidecar of docs/add_a_mechanism.md serves both solvers, also robots it does not show."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Solver, load_urdf_linkage
from kin_core.urdf import load_closures, load_urdf
from kin_solvers import Settings, loops_from_urdf, solve

PAGE = Path(__file__).parents[1] / "add_a_mechanism.md"
#: Distances of the pin from the joints of the two links that it holds together, as in the page [m].
COUPLER, ROCKER = 0.3, 0.2

URDF = """
<robot name="four_bar">
  <link name="ground"/><link name="crank"/><link name="coupler"/><link name="rocker"/>
  <joint name="turn" type="continuous"><parent link="ground"/><child link="crank"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="elbow" type="continuous"><parent link="crank"/><child link="coupler"/>
    <origin xyz="{crank} 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="swing" type="continuous"><parent link="ground"/><child link="rocker"/>
    <origin xyz="{x} {y} 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""


def sidecar():
    (text,) = re.findall(r"```yaml\n(closures:.*?)```", PAGE.read_text(), re.DOTALL)
    return text


def direction(vector):
    return math.atan2(vector[1], vector[0])


def pins(crank, pivot, turn):
    """Where the pin can be at an angle of the crank: two circles meet in two points, or not."""
    elbow = crank * np.array([math.cos(turn), math.sin(turn)])
    apart = pivot - elbow
    distance = float(np.hypot(*apart))
    along = (distance**2 + COUPLER**2 - ROCKER**2) / (2.0 * distance)
    if abs(along) >= COUPLER:
        return elbow, []
    across = math.sqrt(COUPLER**2 - along**2) * np.array([-apart[1], apart[0]]) / distance
    middle = elbow + along * apart / distance
    return elbow, [middle + across, middle - across]


@pytest.mark.parametrize("seed", range(4))
def test_all_configurations_and_a_goal_from_one_file(seed):
    random = np.random.default_rng(seed)
    crank = float(random.uniform(0.05, 0.25))
    angle, far = random.uniform(-math.pi, math.pi), random.uniform(0.15, 0.4)
    pivot = far * np.array([math.cos(angle), math.sin(angle)])
    urdf = URDF.format(crank=crank, x=pivot[0], y=pivot[1])
    mechanism = loops_from_urdf(load_urdf(urdf), load_closures(sidecar()))
    found = solve(mechanism, Settings(sigma=0.1))
    assert found.complete
    solver = Solver(load_urdf_linkage(urdf, sidecar()))
    closed = 0
    for turn in random.uniform(-math.pi, math.pi, 60):
        elbow, points = pins(crank, pivot, turn)
        for pin in points:
            bent, swing = direction(pin - elbow) - turn, direction(pin - pivot)
            at = {"turn": turn, "elbow": bent, "swing": swing, "platform_pin": swing - turn - bent}
            q = [at[name] for name in mechanism.names]
            assert mechanism.residual(q) < 1e-12
            assert found.contains(q)
            closed += 1
            if closed % 10 == 1:
                solver.put_goal("crank", "crank", "pose", target=_turned(turn))
                answer = solver.solve(tolerance=1e-10)
                assert answer.success, answer.message
                poses = solver.poses(["coupler", "rocker"])
                there = (poses["coupler"] @ [COUPLER, 0.0, 0.0, 1.0])[:2]
                assert np.allclose(
                    there, (poses["rocker"] @ [ROCKER, 0.0, 0.0, 1.0])[:2], atol=1e-9
                )
                assert min(np.abs(there - pin).max() for pin in points) < 1e-8
    assert closed > 10
    # Nothing else is there: every box has a configuration of the closed form in it or near by.
    for lower, upper in zip(found.lower, found.upper, strict=True):
        at = dict(zip(mechanism.names, zip(lower, upper, strict=True), strict=True))
        turns = np.linspace(*at["turn"], 9)
        points = [(e, p) for e, some in (pins(crank, pivot, t) for t in turns) for p in some]
        near = [
            abs(math.remainder(direction(p - pivot) - np.mean(at["swing"]), 2.0 * math.pi))
            for _, p in points
        ]
        assert not near or min(near) < 0.3


def _turned(angle):
    pose = np.eye(4)
    pose[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return pose
