"""An executor that waits once for each callback.

rclpy's single-threaded executor makes a wait set from nothing for every wait, and wakes itself
after every callback, so that it waits twice for each. That is most of what a node with topics at
some hundred hertz costs. This one keeps its wait set for as long as the node has the same topics,
services and timers, and does not wake itself. It also runs its own jobs, because rclpy's tasks are
tied to queues of rclpy's executor that changed within Jazzy (7.1.9).
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    ConditionReachedException,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.task import Future
from rclpy.utilities import timeout_sec_to_nsec
from rclpy.waitable import NumberOfEntities

from kin_ros.bets import Bet

__all__ = ["INSIDE", "LeanExecutor", "make_executor"]

_BET = Bet(
    name="lean executor",
    otherwise="rclpy's own executor is used, which costs about twice as much for each callback",
)

#: What of rclpy's executor this one rests on; rclpy calls none of it public.
INSIDE = (
    *("_context", "_guard", "_sigint_gc", "_is_shutdown", "_wait_for_ready_callbacks"),
    *("_take_timer", "_take_subscription", "_take_client", "_take_service"),
    *("_take_guard_condition", "_take_waitable"),
)

#: What there is to wait for: rclpy's name of a kind, and what a node calls all of them.
_KINDS = {
    "subscription": "subscriptions",
    "timer": "timers",
    "client": "clients",
    "service": "services",
    "guard_condition": "guards",
    "waitable": "waitables",
}

#: An entity and its node, for each kind.
Entities = dict[str, list[tuple[Any, Any]]]


def make_executor(context: Context | None = None) -> SingleThreadedExecutor:
    """Return a lean executor, or rclpy's own, with a warning, where rclpy is another than known."""
    executor = SingleThreadedExecutor(context=context)
    guard = getattr(executor, "_guard", None)
    if not _BET.holds((executor, *INSIDE), (guard, "_executor_triggered")):
        return executor
    executor.shutdown()
    return LeanExecutor(context=context)


class _Job(Future):
    """A function or coroutine that the executor runs, and the future of its result.

    A coroutine that awaits a future of rclpy is resumed when that is done; rclpy before 7.1.9 does
    not tell which future it is, so that its coroutines are asked in every round.
    """

    def __init__(
        self, function: Callable[..., Any], executor: LeanExecutor, *arguments: Any, **named: Any
    ) -> None:
        super().__init__(executor=executor)
        self._run: Callable[[], Any] = lambda: function(*arguments, **named)
        self._wake = executor.wake
        self._coroutine = self._run() if inspect.iscoroutinefunction(function) else None
        self._awaited: Future | None = None
        self._running = False

    @property
    def over(self) -> bool:
        """Whether it will not be called again."""
        return bool(self.done() or self.cancelled())

    @property
    def ready(self) -> bool:
        """Whether it can go on now."""
        awaited = self._awaited
        held = awaited is not None and not awaited.done() and not awaited.cancelled()
        return not (self._running or held or self.over)

    def __call__(self) -> None:
        """Run it, or resume it, until it ends or awaits something."""
        if not self.ready:
            return
        self._running = True
        try:
            if self._coroutine is None:
                self.set_result(self._run())
            else:
                self._step(self._coroutine)
        except Exception as error:
            self.set_exception(error)
        finally:
            self._running = False

    def _step(self, coroutine: Any) -> None:
        try:
            self._awaited = coroutine.send(None)
        except StopIteration as end:
            self.set_result(end.value)
            return
        if self._awaited is not None:
            self._awaited.add_done_callback(lambda _: self._wake())

    def cancel(self) -> None:
        """End it; a coroutine is closed where it stands."""
        if self._coroutine is not None and not self.over:
            self._coroutine.close()
        super().cancel()


#: A job to call, the entity it comes from and the node of that.
Work = tuple[_Job, Any, Any]


class LeanExecutor(SingleThreadedExecutor):
    """Runs callbacks in the thread that spins, as its parent does, at half of the cost."""

    def __init__(self, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        self._waiting: WaitSet | None = None
        self._jobs: list[Work] = []
        self._jobs_lock = threading.Lock()

    def create_task(self, callback: Callable[..., Any], *arguments: Any, **named: Any) -> Future:
        """Have a function or coroutine called by the spinning thread; return its future."""
        job = _Job(callback, self, *arguments, **named)
        with self._jobs_lock:
            self._jobs.append((job, None, None))
        self.wake()
        return job

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop executing callbacks; see the parent."""
        done = super().shutdown(timeout_sec)
        self._waiting = None
        return done

    def _wait_for_ready_callbacks(
        self,
        timeout_sec: Any = None,
        nodes: list[Any] | None = None,
        condition: Callable[[], bool] = lambda: False,
    ) -> Generator[Work, None, None]:
        """Yield jobs that can go on, then callbacks that are ready; wait if there are none."""
        # A number [s], or an object that holds one, where rclpy waits for a future.
        limit = timeout_sec_to_nsec(getattr(timeout_sec, "timeout", timeout_sec))
        deadline = time.monotonic_ns() + limit if limit > 0 else None
        worked = False
        while not worked and not self._is_shutdown and not condition():
            chosen = self.get_nodes() if nodes is None else nodes
            for work in self._open_jobs(chosen):
                worked = True
                yield work
            left = limit if deadline is None else max(0, deadline - time.monotonic_ns())
            for entity, node, take in self._wait(chosen, left):
                worked = True
                yield self._make_handler(entity, node, take), entity, node
            late = limit == 0 or (deadline is not None and time.monotonic_ns() >= deadline)
            if late and not worked:
                raise TimeoutException
        if self._is_shutdown:
            raise ShutdownException
        if condition():
            raise ConditionReachedException

    def _open_jobs(self, nodes: list[Any]) -> Generator[Work, None, None]:
        """Yield the jobs that were given, or that awaited something, and forget ended ones."""
        if not self._jobs:
            return
        with self._jobs_lock:
            jobs = list(self._jobs)
        for job, entity, node in reversed(jobs):
            if job.ready and (node is None or node in nodes):
                yield job, entity, node
                if job.done():
                    self.wake()  # one that was asked before it may have awaited it
        with self._jobs_lock:
            self._jobs = [work for work in self._jobs if not work[0].over]

    def _wait(
        self, nodes: list[Any], limit: int
    ) -> Generator[tuple[Any, Any, Callable[[Any], Any]], None, None]:
        """Wait so long [ns], for ever if negative; yield what is ready and how to take it."""
        try:
            waiting = self._prepared(nodes)
            for condition, _ in waiting.entities["guard_condition"]:
                if condition._executor_triggered:  # before somebody stopped to take what was ready
                    condition.trigger()
            ready = waiting.wait(limit)
        except InvalidHandle:
            self._waiting = None  # something went while it was added: not there the next time
            return
        if self._is_shutdown:
            raise ShutdownException
        if not self._context.ok():
            raise ExternalShutdownException
        for condition, _ in ready["guard_condition"]:
            condition._executor_triggered = True
        takes = {
            "waitable": self._take_waitable,
            "timer": self._take_timer,
            "subscription": self._take_subscription,
            "guard_condition": self._take_guard_condition,
            "client": self._take_client,
            "service": self._take_service,
        }
        for kind, take in takes.items():
            for entity, node in ready[kind]:
                # A callback of this round may have destroyed it, cancelled it or begun to await.
                there = entity in getattr(node, _KINDS[kind]) and _free(entity)
                if there and (kind != "timer" or _due(entity)):
                    yield entity, node, take

    def _prepared(self, nodes: list[Any]) -> WaitSet:
        """A wait set for everything that may be waited for now: the last one if it still serves."""
        present = [[node, *getattr(node, name)] for node in nodes for name in _KINDS.values()]
        # While no callback awaits anything, every one may be called.
        if self._waiting is not None and not self._jobs and self._waiting.present == present:
            return self._waiting
        entities = {
            kind: [(one, node) for node in nodes for one in getattr(node, name) if _free(one)]
            for kind, name in _KINDS.items()
        }
        if self._waiting is None or self._waiting.entities != entities:
            own = [guard for guard in (self._guard, self._sigint_gc) if guard is not None]
            self._waiting = WaitSet(entities, own, self._context)
        whole = sum(map(len, entities.values())) == sum(map(len, present)) - len(present)
        self._waiting.present = present if whole else None
        return self._waiting

    def _make_handler(self, entity: Any, node: Any, take: Callable[[Any], Any]) -> _Job:
        """Return a job that takes what is ready and calls back."""

        async def handle() -> None:
            group = entity.callback_group
            if self._is_shutdown or not group.beginning_execution(entity):
                return
            try:
                call = take(entity)
                if call is not None:
                    await call()
            finally:
                group.ending_execution(entity)

        job = _Job(handle, self)
        with self._jobs_lock:
            self._jobs.append((job, entity, node))
        return job


def _free(entity: Any) -> bool:
    """Whether an entity's callback may be called: not while another of its group awaits."""
    return bool(entity.callback_group.can_execute(entity))


def _due(timer: Any) -> bool:
    """Whether a timer is to be called; one that another thread has just destroyed is not."""
    try:
        with timer.handle:
            return bool(timer.handle.is_timer_ready())
    except InvalidHandle:
        return False


class WaitSet:
    """A wait set for certain entities, to be used for many waits.

    Args:
        entities: What to wait for.
        guards: The executor's own guard conditions, which only end the wait.
        context: The executor's context.
    """

    def __init__(self, entities: Entities, guards: list[Any], context: Context) -> None:
        self.entities = entities
        #: What the nodes had when it was made, if it holds all of that.
        self.present: list[list[Any]] | None = None
        handles = {
            kind: [one.handle for one, _ in some]
            for kind, some in entities.items()
            if kind != "waitable"
        }
        handles["guard_condition"] += [guard.handle for guard in guards]
        self._waitables = [one for one, _ in entities["waitable"]]
        count = NumberOfEntities(
            *(len(handles[kind]) for kind in ("subscription", "guard_condition", "timer")),
            *(len(handles[kind]) for kind in ("client", "service")),
        )
        for waitable in self._waitables:
            count += waitable.get_num_entities()
        # While they are waited for, nobody may destroy them.
        self._handles = [*(one for some in handles.values() for one in some), *self._waitables]
        self._handles.append(context.handle)
        self._set = rclpy_implementation.WaitSet(
            count.num_subscriptions,
            count.num_guard_conditions,
            count.num_timers,
            count.num_clients,
            count.num_services,
            count.num_events,
            context.handle,
        )
        self._additions = [
            (add, handle)
            for kind, add in (
                ("subscription", self._set.add_subscription),
                ("client", self._set.add_client),
                ("service", self._set.add_service),
                ("timer", self._set.add_timer),
                ("guard_condition", self._set.add_guard_condition),
            )
            for handle in handles[kind]
        ]
        self._by_pointer = {
            kind: {one.handle.pointer: (one, node) for one, node in entities[kind]}
            for kind in handles
        }

    def wait(self, limit: int) -> Entities:
        """Wait so long [ns] and return what is ready."""
        entered = 0
        try:
            for handle in self._handles:
                handle.__enter__()
                entered += 1
            return self._wait(limit)
        finally:
            for handle in self._handles[:entered]:
                handle.__exit__(None, None, None)

    def _wait(self, limit: int) -> Entities:
        self._set.clear_entities()
        for add, handle in self._additions:
            add(handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(self._set)
        self._set.wait(limit)
        ready: Entities = {
            kind: [known[one] for one in self._set.get_ready_entities(kind) if one in known]
            for kind, known in self._by_pointer.items()
        }
        ready["waitable"] = [
            (one, node) for one, node in self.entities["waitable"] if one.is_ready(self._set)
        ]
        return ready
