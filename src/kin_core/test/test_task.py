"""Tasks: cancel, timeout, progress, and the clock behind them."""

import math
import threading
import time

import pytest

from kin_core import errors
from kin_core.task import AlarmClock, Task
from kin_testing.fixtures import wait_until


def test_task_cancel_and_timeout():
    task = Task()
    task.check()
    task.cancel()
    assert task.flag[0] == 1
    with pytest.raises(errors.Cancelled):
        task.check()
    task = Task(timeout=0.0)
    assert task.stopped
    with pytest.raises(errors.SolveTimeout, match="0 s"):
        task.check()
    task.cancel()
    assert task.flag[0] == 2  # the first reason stays


def test_task_flag_is_set_while_nobody_looks():
    with Task(timeout=0.02) as task:
        wait_until(lambda: task.flag[0] == 2, 5.0)


def test_progress_is_clipped():
    seen = []
    task = Task(on_progress=seen.append)
    task.progress(1.5, "x", boxes=3)
    task.progress(math.nan)
    assert [p.fraction for p in seen] == [1.0, 0.0]
    assert seen[0].counters == {"boxes": 3}


def test_alarms_ring_in_order_and_can_be_dropped():
    clock, rung = AlarmClock(), []
    now = time.monotonic()
    numbers = [clock.set(now + 0.01 * (9 - i), lambda i=i: rung.append(i)) for i in range(10)]
    clock.drop(numbers[4])
    wait_until(lambda: len(rung) == 9, 5.0)
    assert rung == [9, 8, 7, 6, 5, 3, 2, 1, 0]


def test_an_alarm_in_a_far_future_does_not_stop_the_clock():
    """A timeout of 1e300 s is a valid one; the wait for it must not end the thread."""
    others = set(threading.enumerate())
    clock, rung = AlarmClock(), []
    clock.set(time.monotonic() + 1e300, lambda: rung.append("never"))
    time.sleep(0.05)
    (thread,) = set(threading.enumerate()) - others
    clock.set(time.monotonic() + 0.01, lambda: rung.append("soon"))
    wait_until(lambda: rung == ["soon"], 5.0)
    assert set(threading.enumerate()) - others == {thread}


def test_many_dropped_alarms_are_forgotten():
    clock = AlarmClock()
    for _ in range(10_000):
        clock.drop(clock.set(time.monotonic() + 3600, lambda: None))
    assert len(clock) < 200


def test_an_alarm_that_fails_does_not_silence_the_next(monkeypatch):
    seen, rung = [], []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    clock = AlarmClock()
    now = time.monotonic()
    clock.set(now + 0.05, lambda: 1 / 0)
    clock.set(now + 0.1, lambda: rung.append(True))
    wait_until(lambda: rung, 60.0, "the second alarm")
    assert seen[0].exc_type is ZeroDivisionError
