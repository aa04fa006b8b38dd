"""Workspace sweeps."""

import numpy as np
import pytest

from continuum_ik import ContinuumSolver, draw_sweep, make_pose, sweep_workspace
from kin_core.errors import Cancelled, InvalidInput, LimitExceeded, StatusCode
from kin_core.task import Task


@pytest.mark.campaign
def test_sweep_says_what_single_solves_say(loose, campaign, record_property):
    seen = []
    task = Task(on_progress=seen.append)
    counts = (13, 13, campaign(1, 3))
    sweep = sweep_workspace(loose, (-0.3, -0.3, 0.4), (0.3, 0.3, 0.5), counts, task=task)
    assert sweep.total == campaign(169, 507)
    assert 0.1 < sweep.reachable / sweep.total < 0.2
    assert sweep.stable.sum() == sweep.reachable
    cell = 0.05 * 0.05 * (0.05 if counts[2] > 1 else 1.0)  # of one layer: an area
    assert sweep.volume == pytest.approx(sweep.reachable * cell)
    assert seen[-1].fraction == 1.0
    assert any(0.0 < p.fraction < 1.0 for p in seen)
    cold = ContinuumSolver()
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(campaign(60, 150)):
        k, j, i = (int(rng.integers(n)) for n in sweep.codes.shape)
        cold.reset()
        result = cold.solve(make_pose((sweep.x[i], sweep.y[j], sweep.z[k])))
        if sweep.codes[k, j, i] == StatusCode.SUCCESS:
            assert sweep.fold_margin[k, j, i] > 0.0
            # Round the buckling of a rod the way matters; inside there is one solution.
            if np.hypot(sweep.x[i], sweep.y[j]) < 0.08:
                assert result.success
                np.testing.assert_allclose(
                    sweep.lengths[k, j, i], result.lengths, rtol=0, atol=2e-4
                )
                compared += 1
        else:
            assert np.isnan(sweep.lengths[k, j, i]).all()
            assert np.isnan(sweep.fold_margin[k, j, i])
    assert compared > 3
    record_property("cases", sweep.total)
    # Symmetric about the plane x z.
    same = sweep.codes == sweep.codes[:, ::-1]
    assert same.mean() > 0.98


def test_picture(loose):
    sweep = sweep_workspace(loose, (-0.2, -0.2, 0.4), (0.2, 0.2, 0.5), (9, 9, 2))
    png = draw_sweep(sweep)
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000


@pytest.mark.parametrize(
    ("lower", "upper", "counts", "error"),
    [
        ((0, 0, 0.4), (0.1, 0.1, np.nan), (2, 2, 2), InvalidInput),
        ((0, 0, 0.4), (-0.1, 0.1, 0.5), (2, 2, 2), InvalidInput),
        ((0, 0, 0.4), (0.1, 0.1, 0.5), (0, 2, 2), InvalidInput),
        ((0, 0, 0.4), (0.1, 0.1, 0.5), (2**31, 2**31, 2**31), LimitExceeded),
        ((0, 0, 0.4), (0.1, 0.1, 0.5), (1000, 1000, 10), LimitExceeded),
        ((0, 0, 0.4), (0.1, 0.1, 0.5), (2**32 - 1, 2**32 - 1, 0), InvalidInput),
    ],
)
def test_nonsense_is_refused(loose, lower, upper, counts, error):
    with pytest.raises(error):
        sweep_workspace(loose, lower, upper, counts)


def test_a_grid_that_cannot_be_reached_is_empty(loose):
    sweep = sweep_workspace(loose, (5, 5, 5), (6, 6, 6), (4, 4, 4))
    assert sweep.reachable == 0
    assert draw_sweep(sweep).startswith(b"\x89PNG")


def test_cancel(loose):
    task = Task()
    task.cancel()
    with pytest.raises(Cancelled):
        sweep_workspace(loose, (-0.2, -0.2, 0.4), (0.2, 0.2, 0.5), (20, 20, 20), task=task)
