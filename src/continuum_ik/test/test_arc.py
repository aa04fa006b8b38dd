"""The curve by its own length: folds, bends and crossings."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from continuum_ik import ContinuumSolver, make_pose
from continuum_ik.arc import ARRIVED, pass_by_arc
from continuum_ik.path import twist
from continuum_ik.rod import LENGTH, RODS

START = make_pose((0.0, 0.02, 0.48))


def arc(end):
    """Follow the whole path from START by arc alone."""
    solver = ContinuumSolver(tolerance=1e-12, detours=False, allow_unstable=True)
    solver.solve(START).check()
    w = solver.named[()]
    w.start, w.anchor = w.answer, w.answer
    w.target = end.reshape(4, 3)
    w.fine = 1
    twist(w)
    ended = pass_by_arc(w, 0.0, 1.0, 0.01, 2.0)
    return ended, w


@pytest.mark.parametrize(("axis", "place"), [(0, 0.237), (1, 0.26)])
def test_a_fold_is_where_the_curve_turns_back(axis, place):
    """Branches are crossed on the way; the arc that ends the path says where it turns."""
    solver = ContinuumSolver(tolerance=1e-12, detours=False, allow_unstable=True)
    solver.solve(START).check()
    end = START.copy()
    end[axis] = 0.3
    result = solver.solve(end)
    assert "fold" in result.reason
    turned = solver.named.arc_part
    assert START[axis] + turned * (0.3 - START[axis]) == pytest.approx(place, abs=2e-3)
    assert 0.0 < turned - result.reached < 2e-3


@pytest.mark.parametrize("tilt", [0.0, 0.05])
def test_the_arc_arrives_where_steps_of_the_path_do(tilt):
    end = make_pose((0.16, 0.02, 0.48), Rotation.from_rotvec([0.0, 0.0, tilt]).as_matrix())
    ended, w = arc(end)
    assert ended == ARRIVED
    solver = ContinuumSolver(tolerance=1e-12, detours=False, allow_unstable=True)
    solver.solve(START).check()
    np.testing.assert_allclose(
        w.rods.y[LENGTH, :RODS], solver.solve(end).check().lengths, rtol=0, atol=2e-9
    )
