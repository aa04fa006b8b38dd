"""Solving across machines with dask.distributed, for searches that outgrow one machine.

The rounds are those of the local engine, chunk by chunk, so the answer has the same bits. The first
moments run here; then each stretch of work sends the chunks to the workers, several in one task.
The boxes of a worker that dies are solved again by another, because dask runs the lost task anew.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kin_core.task import Task
from kin_core.threads import last_resort, start_thread
from kin_solvers.boxes import Counters
from kin_solvers.errors import SettingsError
from kin_solvers.mechanism import Mechanism
from kin_solvers.methods import make_search
from kin_solvers.schedule import Frontier, Local, Work, run_rounds
from kin_solvers.search import Search, Step
from kin_solvers.settings import Settings
from kin_solvers.system import System

__all__ = ["advance_on_cluster"]

#: Time that work runs here first [s]; less is not worth the way to a worker.
LOCAL_TIME = 0.3
#: Tasks for each worker in a stretch of work: the second waits there while the first runs.
TASKS = 2
#: Time allowed to reach the scheduler [s], and to be admitted by it.
REACH_TIME, ADMIT_TIME = 1.0, 1.9
#: Searches that a worker keeps: to make one takes longer than a short task.
_KEPT = 8
_searches: OrderedDict[tuple[str, str, float, float], Search] = OrderedDict()
_lock = threading.Lock()


def advance_chunks(
    mechanism: Mechanism, key: tuple[str, str, float, float], works: Sequence[Work]
) -> list[Step]:
    """Advance some chunks on a worker.

    Args:
        mechanism: What is solved.
        key: Its fingerprint, then method, sigma and rho.
        works: The chunks and the boxes that each may process.
    """
    search = _search_of(mechanism, key)
    flag = np.zeros(1, dtype=np.int64)
    return [search.advance(chunk, limit, flag) for chunk, limit in works]


def _search_of(mechanism: Mechanism, key: tuple[str, str, float, float]) -> Search:
    """The search of a question; made once on each worker."""
    with _lock:
        search = _searches.pop(key, None)
        if search is None:
            settings = Settings(method=key[1], sigma=key[2], rho=key[3])
            search = make_search(mechanism, System.of(mechanism), settings)
        _searches[key] = search
        while len(_searches) > _KEPT:
            _searches.popitem(last=False)
        return search


def advance_on_cluster(
    search: Search, mechanism: Mechanism, frontier: Frontier, settings: Settings, task: Task
) -> tuple[Frontier, str]:
    """Go on within the budgets on the cluster behind ``settings.scheduler``."""
    if not settings.scheduler:
        raise SettingsError("scheduler", "must be the address of a dask scheduler")
    _reach(settings.scheduler)
    client = _admitted(settings.scheduler)
    with client, Local(search, task, 1) as local:
        runner = _Runner(client, mechanism, settings, task, local)
        if not runner.workers():
            raise SettingsError("scheduler", f"{settings.scheduler!r} has no workers")
        return run_rounds(
            search,
            frontier,
            runner,
            task,
            max_boxes=settings.max_boxes,
            max_bytes=settings.max_bytes,
        )


def _silent(address: str, error: BaseException | str) -> SettingsError:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    return SettingsError("scheduler", f"{address!r} does not answer ({reason[0][:200]})")


def _reach(address: str) -> None:
    """Refuse an address at which nobody listens: dask would try for long, and say little."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError("scheduler", f"{address!r} is no address ({error})") from None
    if parts.scheme == "inproc":
        return
    if parts.scheme not in ("tcp", "tls", "ucx", "ws", "wss") or not host or not port:
        raise SettingsError("scheduler", f"{address!r} is no address such as tcp://10.0.0.5:8786")

    def knock() -> None:
        socket.create_connection((host, port), timeout=REACH_TIME).close()

    _in_time(address, knock, REACH_TIME)


def _admitted(address: str) -> Any:
    """A client of the scheduler."""
    from distributed import Client

    return _in_time(
        address, lambda: Client(address, timeout=ADMIT_TIME, set_as_default=False), ADMIT_TIME
    )


def _in_time(address: str, work: Callable[[], Any], limit: float) -> Any:
    """The result of a function that may take for ever, or an error after a time [s].

    In a thread of its own, which is given up: names are looked up without a limit of time, and dask
    waits without one for a scheduler that takes the call and says nothing.
    """
    results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except Exception as error:  # dask raises what it likes, AssertionError too
            results.put((None, error))

    start_thread("scheduler", run, last_resort)
    try:
        result, error = results.get(timeout=limit)
    except queue.Empty:
        raise _silent(address, "no answer in time") from None
    if error is not None:
        raise _silent(address, error)
    return result


class _Runner:
    """Runs chunks on the cluster; the first moments here."""

    def __init__(
        self, client: Any, mechanism: Mechanism, settings: Settings, task: Task, local: Local
    ) -> None:
        self.slice = local.slice
        self._client = client
        self._mechanism = mechanism
        self._key = (mechanism.fingerprint, settings.method, settings.sigma, settings.rho)
        self._task = task
        self._local = local
        self._until = time.monotonic() + LOCAL_TIME

    def __call__(self, works: Sequence[Work]) -> Iterable[Step]:
        """Advance the chunks; when the task is stopped, those not done come back untouched."""
        if time.monotonic() < self._until:
            return self._local(works)
        self.slice = 16
        count = min(len(works), max(1, TASKS * self.workers()))
        groups = [works[i::count] for i in range(count)]
        futures = [
            self._client.submit(
                advance_chunks, self._mechanism, self._key, group, pure=False, retries=3
            )
            for group in groups
        ]
        steps: list[Step | None] = [None] * len(works)
        for i, (group, future) in enumerate(zip(groups, futures, strict=True)):
            steps[i::count] = self._gather(group, future)
        return [step for step in steps if step is not None]

    def workers(self) -> int:
        """Number of workers of the cluster."""
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    def _gather(self, group: Sequence[Work], future: Any) -> list[Step]:
        """What a task gave.

        Waits for its callback: a result that is asked for with a time limit may fail when the limit
        and the result come together (distributed 2026.8).
        """
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(0.05) and not self._task.stopped:
            pass
        if done.is_set():
            return list(future.result())
        future.cancel()
        return [Step(chunk, Counters(), 0.0) for chunk, _ in group]
