"""Threads: what ends one is told, whoever made it."""

import threading
import time

import pytest

from kin_core.task import AlarmClock
from kin_core.threads import last_resort, report_error, start_thread
from kin_testing.fixtures import wait_until


def test_what_ends_a_thread_is_told():
    seen = []
    thread = start_thread("breaks", lambda: 1 / 0, seen.append)
    thread.join(10.0)
    assert isinstance(seen[0], ZeroDivisionError)
    assert thread.name == "breaks"
    with pytest.raises(TypeError, match="on_error"):
        start_thread("silent", lambda: None)


def test_a_failing_report_goes_to_the_error_stream(capfd):
    def tell(error):
        raise RuntimeError("cannot tell")

    report_error(tell, ValueError("lost?"))
    written = capfd.readouterr().err
    assert "lost?" in written
    assert "cannot tell" in written


def test_the_last_resort_is_the_hook_for_dead_threads(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    last_resort(ValueError("nobody listens"))
    assert str(seen[0].exc_value) == "nobody listens"
    assert seen[0].thread is threading.current_thread()


def test_an_alarm_that_fails_does_not_silence_the_next(monkeypatch):
    seen, rung = [], []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    clock = AlarmClock()
    now = time.monotonic()
    clock.set(now + 0.05, lambda: 1 / 0)
    clock.set(now + 0.1, lambda: rung.append(True))
    wait_until(lambda: rung, 20.0, "the second alarm")
    assert seen[0].exc_type is ZeroDivisionError
