"""Long solves beside a single-threaded executor.

rclpy's multi-threaded executor cannot keep a timer (13 to 119 Hz of 250 were measured), so the
executor stays single-threaded: a callback is a coroutine that awaits a future, a worker thread
computes and sets it, and a guard condition wakes the executor.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rclpy.node import Node
from rclpy.task import Future

from kin_core.errors import Cancelled, LimitExceeded, SolveTimeout
from kin_core.task import ALARMS, Task
from kin_core.threads import last_resort, report_error

__all__ = ["Worker"]

T = TypeVar("T")

#: How long after its deadline a computation may take to notice it [s], before the caller is
#: answered without it.
GRACE = 0.2


class Worker:
    """A few threads that compute for the callbacks of one node."""

    def __init__(self, node: Node, threads: int = 2, queue_limit: int = 64) -> None:
        """Start no thread yet; they start with the first job.

        Args:
            node: The node whose executor is woken when a job ends.
            threads: Jobs that run at the same time.
            queue_limit: Jobs that may wait; one more is refused.
        """
        self._node = node
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"{node.get_name()}-worker")
        self._threads = threads
        self._lock = threading.Lock()
        self._tasks: set[Task] = set()
        self.queue_limit = queue_limit

    @property
    def busy(self) -> int:
        """Jobs that run or wait."""
        return len(self._tasks)

    async def run(self, job: Callable[[Task], T], task: Task) -> T:
        """Compute ``job(task)`` in a thread; to be awaited from a callback.

        Raises:
            LimitExceeded: Too many jobs wait already.
            SolveTimeout: The job did not end in the task's time. Its thread may go on until it next
                looks at the task; the caller does not wait for that.
            Cancelled: The worker is shut down.
            Exception: Whatever the job raised.
        """
        with self._lock:
            if len(self._tasks) >= self.queue_limit + self._threads:
                raise LimitExceeded(
                    f"{len(self._tasks)} requests are being worked on; try again later, or raise"
                    " the parameter queue_limit"
                )
            self._tasks.add(task)
        future: Future = Future()
        ended = threading.Lock()

        def end(result: Any, error: BaseException | None) -> None:
            if not ended.acquire(blocking=False):
                return
            try:
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)
                executor = self._node.executor
                if executor is not None:
                    executor.wake()
            except Exception as unforeseen:  # the pool would keep it to itself
                report_error(last_resort, unforeseen)

        def compute() -> None:
            try:
                with task:
                    task.check()
                    result = job(task)
            except BaseException as error:
                end(None, error)
            else:
                end(result, None)
            finally:
                with self._lock:
                    self._tasks.discard(task)

        alarm: int | None = None
        if math.isfinite(task.deadline):

            def give_up() -> None:
                end(None, SolveTimeout("the time allowed is over and the computation goes on"))

            alarm = ALARMS.set(task.deadline + GRACE, give_up)
        try:
            self._pool.submit(compute)
        except RuntimeError:
            with self._lock:
                self._tasks.discard(task)
            raise Cancelled("the node is shutting down") from None
        try:
            return await future
        finally:
            if alarm is not None:
                ALARMS.drop(alarm)

    def cancel_all(self) -> None:
        """Ask every job to stop; does not wait."""
        with self._lock:
            tasks = list(self._tasks)
        for task in tasks:
            task.cancel()

    def shutdown(self) -> None:
        """Cancel all jobs and take no more."""
        self.cancel_all()
        self._pool.shutdown(wait=False, cancel_futures=False)
