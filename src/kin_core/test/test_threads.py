"""Threads: what ends one is told, whoever made it."""

import threading

import pytest

from kin_core.threads import last_resort, report_error, start_thread


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
