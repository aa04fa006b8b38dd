"""Dimensions: one for all or one per robot; bad ones refused or masked."""

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import Delta, DeltaInput, Geometry, Status

ROBOT = Delta(MM, backend="cpu")
ANGLES = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 1000))
TRUE = ROBOT.fk(ANGLES).position


def test_one_geometry_per_robot():
    n = 500
    rng = np.random.default_rng(2)
    R, La, Lb = rng.uniform(0, 20, n), rng.uniform(30, 50, n), rng.uniform(70, 90, n)
    theta = np.array([[0.0], [2.1], [4.2]]) + rng.uniform(-0.2, 0.2, (3, n))
    angles = ANGLES[:, :n]
    for layout in ("soa", "aos"):
        batch = Delta(Geometry(R, La, Lb, theta), backend="cpu", layout=layout)
        given_angles = angles if layout == "soa" else angles.T
        found = batch.fk(given_angles).position
        found = found if layout == "soa" else found.T
        for i in range(0, n, 25):
            single = Delta(Geometry(R[i], La[i], Lb[i], theta[:, i]), backend="cpu")
            assert same_bits(
                single.fk(angles[:, i].copy()).position, np.ascontiguousarray(found[:, i])
            )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1.0, -1.0, 1.0), "upper"),
        ((1.0, 1.0, 0.0), "lower"),
        ((np.nan, 1.0, 1.0), "radius"),
        ((1.0, np.inf, 1.0), "upper"),
        (([1.0, 1.0], [1.0, -2.0], 1.0), "upper.*robot 1"),
        (([1.0, 1.0], [1.0, 1.0, 1.0], 1.0), "lengths differ"),
        (("x", 1.0, 1.0), "radius"),
        (([[1.0]], 1.0, 1.0), "radius"),
        ((1.0, 1.0, 1.0, (0.0, 1.0)), "theta"),
        ((1.0, 1.0, 1.0, (0.0, 1.0, np.nan)), "theta"),
    ],
)
def test_bad_geometry_is_refused(arguments, field):
    with pytest.raises(DeltaInput, match=field):
        Geometry(*arguments)


def test_bad_geometry_can_be_masked():
    geometry = Geometry([10.5, 10.5], [40.0, -40.0], 68.0, on_bad="mask")
    robot = Delta(geometry, backend="cpu")
    position, status = robot.fk(ANGLES[:, :2])
    assert status[0] == 0 and np.isfinite(position[:, 0]).all()
    assert status[1] & Status.BAD_GEOMETRY and np.isnan(position[:, 1]).all()
    assert robot.ik(TRUE[:, :2]).status[1] & Status.BAD_GEOMETRY


def test_geometry_of_another_batch_size():
    with pytest.raises(DeltaInput, match="2 robots"):
        Delta(Geometry([1.0, 1.0], 4.0, 8.0), backend="cpu").fk(ANGLES)
