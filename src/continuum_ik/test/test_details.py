"""Many poses with analysis and shapes."""

import numpy as np
import pytest

from continuum_ik import make_pose
from continuum_ik.details import solve_in_detail
from kin_core.errors import Cancelled, StatusCode
from kin_core.task import Task

POSES = np.array([make_pose(p) for p in ((0.0, 0.02, 0.48), (0.0, 0.0, -0.3), (0.05, 0.0, 0.5))])


@pytest.mark.parametrize("independent", [False, True])
def test_each_pose_has_what_the_solver_says_of_it(tight, independent):
    one = tight.copy()
    batch, details = solve_in_detail(
        tight, POSES, analyse=True, points=5, independent=independent, task=Task()
    )
    assert batch.codes.tolist() == [StatusCode.SUCCESS, StatusCode.UNREACHABLE, StatusCode.SUCCESS]
    for k in (0, 2):
        one.solve(POSES[k]).check()
        found = one.analyse()
        np.testing.assert_allclose(batch.lengths[k], one.lengths, atol=1e-9)
        np.testing.assert_allclose(details.jacobian[k], found.length_jacobian, atol=1e-6)
        rounding = 2e-7 * np.abs(found.stiffness).max()  # of differences, about another solution
        np.testing.assert_allclose(details.stiffness[k], found.stiffness, rtol=0, atol=rounding)
        assert details.fold_margin[k] == pytest.approx(found.fold_margin, rel=1e-4)
        np.testing.assert_allclose(details.shapes[k], one.shapes(5), atol=1e-9)
    assert np.isnan(details.jacobian[1]).all()
    assert np.isnan(details.shapes[1]).all()
    assert tight.solved is not independent


def test_what_is_not_asked_for_is_empty(loose):
    arguments = {"independent": True, "task": Task()}
    _, details = solve_in_detail(loose, POSES[:1], analyse=False, points=3, **arguments)
    assert details.jacobian.shape == (0, 6, 6)
    assert details.shapes.shape == (1, 6, 3, 3)
    _, details = solve_in_detail(loose, POSES[:1], analyse=True, points=0, **arguments)
    assert details.shapes.shape == (0, 6, 0, 3)


def test_it_can_be_cancelled(loose):
    task = Task()
    task.cancel()
    with pytest.raises(Cancelled):
        solve_in_detail(loose, POSES, analyse=True, points=0, independent=False, task=task)
