"""The dask engine gives the bits of the local one, also when a worker dies."""

import os
import socket

import numpy as np
import pytest

from kin_core.task import Task
from kin_solvers import Settings, SettingsError, dask_engine, library, loop_from_dh, solve

distributed = pytest.importorskip("distributed")


def test_an_address_is_needed():
    with pytest.raises(SettingsError, match="scheduler"):
        solve(library.get("bennett"), Settings(engine="dask"))


@pytest.fixture
def silent():
    """Ports of this machine: one that nobody listens at, one that takes calls and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        closed = dead.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        yield closed, mute.getsockname()[1]


def test_a_scheduler_that_is_not_there_gives_one_sentence(silent, monkeypatch):
    """Both waits together are under 3 s, whatever dask would do by itself."""
    assert dask_engine.REACH_TIME + dask_engine.ADMIT_TIME < 3.0
    asked = []
    real = distributed.Client

    def client(*arguments, **options):
        asked.append(options["timeout"])
        return real(*arguments, **options)

    monkeypatch.setattr(distributed, "Client", client)
    for address in (f"tcp://127.0.0.1:{silent[0]}", f"tcp://127.0.0.1:{silent[1]}"):
        with pytest.raises(SettingsError) as caught:
            solve(library.get("bennett"), Settings(engine="dask", scheduler=address))
        assert caught.value.field == "scheduler"
        assert f"{address!r} does not answer" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert len(asked) <= 1  # nobody is asked where nobody listens


@pytest.mark.parametrize(
    "address", ["here", "tcp://", "tcp://host", "http://host:1", "tcp://[::1", "tcp://h:99999999"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(SettingsError, match="is no address"):
        solve(library.get("bennett"), Settings(engine="dask", scheduler=address))


@pytest.fixture
def environment():
    """dask sets variables for its workers here, allocator and all, and leaves them so."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def cluster(tmp_path, environment, monkeypatch):
    """Two workers in processes of their own; a scheduler on a busy machine is given time."""
    monkeypatch.setattr(dask_engine, "ADMIT_TIME", 60.0)
    monkeypatch.setattr(dask_engine, "REACH_TIME", 60.0)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        local_directory=str(tmp_path),
    ) as made:  # fmt: skip
        yield made


def assert_same(a, b):
    """The same bits."""
    for field in ("lower", "upper", "certified", "unfinished_lower", "unfinished_upper"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
    assert (a.counters, a.stopped, a.settled) == (b.counters, b.stopped, b.settled)


@pytest.mark.slow
def test_two_workers_give_the_bits_of_one_thread(cluster, monkeypatch):
    """One and several loops, both methods, budgets and resumes; a worker is lost on the way."""
    monkeypatch.setattr(dask_engine, "LOCAL_TIME", 0.0)  # everything leaves the process
    at = {"engine": "dask", "scheduler": cluster.scheduler_address}
    ring = loop_from_dh("ring", np.zeros(7), np.full(7, np.radians(67.3)), np.full(7, 1.54))
    cases = [
        (ring, Settings(sigma=0.3)),
        (library.get("double_butterfly"), Settings(sigma=0.05)),
        (library.get("stewart"), Settings(sigma=0.1)),
        (library.get("bennett"), Settings(sigma=0.1, method="paper")),
        (library.get("iiwa7"), Settings(sigma=0.1, max_boxes=700)),
        (library.get("bricard"), Settings(sigma=0.05, max_bytes=60_000)),
    ]
    for mechanism, settings in cases:
        there = Settings(**{**vars(settings), **at})
        assert_same(solve(mechanism, there), solve(mechanism, settings))
    mechanism = library.get("bricard")
    whole = solve(mechanism, Settings(sigma=0.05))
    with distributed.Client(cluster) as client:
        first = next(iter(client.scheduler_info()["workers"]))
        killed = client.submit(os._exit, 1, workers=[first], retries=0)  # dies while we solve
        part = solve(mechanism, Settings(sigma=0.05, max_boxes=900, **at))
        assert part.stopped == "boxes"
        assert_same(solve(mechanism, Settings(sigma=0.05, **at), resume=part), whole)
        del killed


@pytest.mark.slow
def test_a_cancel_returns_what_was_not_done(cluster, monkeypatch):
    monkeypatch.setattr(dask_engine, "LOCAL_TIME", 0.0)
    mechanism = library.get("iiwa7")
    at = {"engine": "dask", "scheduler": cluster.scheduler_address}
    reports = []
    task = Task(None, lambda p: (reports.append(p), len(reports) > 40 and task.cancel()))
    part = solve(mechanism, Settings(sigma=0.01, **at), task=task)
    assert part.stopped == "cancelled"
    assert_same(
        solve(mechanism, Settings(sigma=0.01), resume=part), solve(mechanism, Settings(sigma=0.01))
    )


@pytest.mark.slow
def test_a_cluster_without_workers_says_so(tmp_path, environment, monkeypatch):
    monkeypatch.setattr(dask_engine, "ADMIT_TIME", 60.0)
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address=None, local_directory=str(tmp_path)
        ) as empty,
        pytest.raises(SettingsError, match="has no workers"),
    ):
        solve(library.get("bennett"), Settings(engine="dask", scheduler=empty.scheduler_address))
