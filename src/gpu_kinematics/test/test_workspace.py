"""Workspace maps."""

import numpy as np
import pytest

from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, DeltaLimit, Limits, map_workspace
from gpu_kinematics.workspace import largest_cube

ROBOT = Delta(PUBLISHED_GEOMETRY, backend="cpu")


def brute_cube(usable):
    for edge in range(min(usable.shape), 0, -1):
        for z in range(usable.shape[0] - edge + 1):
            for y in range(usable.shape[1] - edge + 1):
                for x in range(usable.shape[2] - edge + 1):
                    if usable[z : z + edge, y : y + edge, x : x + edge].all():
                        return edge
    return 0


def test_largest_cube_against_brute_force():
    rng = np.random.default_rng(4)
    for density in (0.0, 0.3, 0.8, 0.97, 1.0):
        usable = rng.random((7, 8, 9)) < density
        edge, (z, y, x) = largest_cube(usable)
        assert edge == brute_cube(usable)
        assert usable[z : z + edge, y : y + edge, x : x + edge].all()


@pytest.mark.parametrize(("degrees", "side"), [(60, 0.038), (80, 0.051)])
def test_largest_cube_of_the_published_robot(degrees, side):
    robot = Delta(
        PUBLISHED_GEOMETRY, Limits(-np.radians(degrees), np.radians(degrees)), backend="cpu"
    )
    found = map_workspace(robot, [-0.05, -0.05, -0.11], [0.05, 0.05, -0.01], [101, 101, 101])
    assert found.cube_side == pytest.approx(side, abs=0.0021)
    assert found.usable.mean() > 0.05 and found.volume > found.cube_side**3


def test_map_agrees_with_ik():
    found = map_workspace(
        ROBOT, [-0.06, -0.05, -0.1], [0.06, 0.05, -0.02], [13, 11, 9], max_condition=4.0
    )
    z, y, x = np.meshgrid(found.z, found.y, found.x, indexing="ij")
    measures = ROBOT.dexterity(np.stack([x, y, z]))
    assert (found.status == measures.status).all()
    good = found.status == 0
    np.testing.assert_allclose(found.dexterity[good], 1 / measures.condition[good], rtol=1e-12)
    assert (found.usable == (good & (measures.condition <= 4.0))).all()


def test_map_over_budget():
    with pytest.raises(DeltaLimit, match="cells"):
        map_workspace(ROBOT, [0, 0, -1], [1, 1, 0], [1000, 1000, 1000])
