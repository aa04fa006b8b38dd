"""The dask engine gives the same cover, also when a worker dies."""

import os

import numpy as np
import pytest

from kin_solvers import Settings, SettingsError, library, solve


def test_an_address_is_needed():
    with pytest.raises(SettingsError, match="scheduler"):
        solve(library.get("bennett"), Settings(engine="dask"))


@pytest.fixture
def environment():
    """dask sets variables for its workers here, allocator and all, and leaves them so."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_two_workers_and_the_loss_of_one(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        local_directory=str(tmp_path),
    )  # fmt: skip
    with cluster, distributed.Client(cluster) as client:
        mechanism = library.get("bricard")
        settings = Settings(sigma=0.05, engine="dask", scheduler=cluster.scheduler_address)
        here = solve(mechanism, Settings(sigma=0.05))
        first = next(iter(client.scheduler_info()["workers"]))
        killed = client.submit(os._exit, 1, workers=[first], retries=0)  # dies while we solve
        there = solve(mechanism, settings)
        del killed
    assert there.complete
    for q in 0.5 * (here.lower + here.upper):
        assert there.contains(q, slack=0.06)
    points, _ = here.refine(50)
    assert len(points) > 0
    assert all(there.contains(q) for q in points)
    assert np.isfinite(there.lower).all()
