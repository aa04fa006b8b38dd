"""Faults: one for each source, shown long enough to be seen, and over when the source recovers."""

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from kin_ros import diagnostics
from kin_ros.diagnostics import Diagnostics

pytestmark = pytest.mark.node


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(diagnostics, "time", made)
    return made


@pytest.fixture
def faults(ros, clock):
    return Diagnostics(ros.node, period=3600.0)


def test_a_fault_is_shown_for_a_while_after_its_source_has_recovered(faults, clock):
    faults.fault("loop drag: broken", source="loop drag")
    faults.recovered("loop drag")
    assert faults.status().level == DiagnosticStatus.ERROR
    assert faults.status().message == "loop drag: broken"
    clock.now += diagnostics.SHOWN
    assert faults.status().level == DiagnosticStatus.OK


def test_without_recovery_it_stays(faults, clock):
    faults.fault("loop drag: broken", source="loop drag")
    faults.recovered("another")
    clock.now += 1e6
    assert faults.status().level == DiagnosticStatus.ERROR


def test_a_failure_after_the_recovery_is_shown_again(faults, clock):
    faults.fault("first", source="a")
    faults.recovered("a")
    clock.now += 1.0
    faults.fault("second", source="a")
    clock.now += diagnostics.SHOWN
    assert faults.status().message == "second"


def test_an_event_is_over_by_itself(faults, clock):
    faults.fault("bad message", warning=True, source="input", lasts=30.0)
    clock.now += 29.0
    assert faults.status().level == DiagnosticStatus.WARN
    clock.now += 2.0
    assert faults.status().level == DiagnosticStatus.OK


def test_the_worst_comes_first_and_one_source_does_not_hide_another(faults):
    faults.fault("only a warning", warning=True, source="a")
    faults.fault("an error", source="b")
    faults.fault("a later warning", warning=True, source="c")
    status = faults.status()
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.startswith("an error; ")
    assert "only a warning" in status.message
    faults.healthy("b")
    assert faults.status().level == DiagnosticStatus.WARN
    faults.clear()
    assert faults.status().level == DiagnosticStatus.OK


def test_faults_and_their_texts_are_bounded(faults):
    for number in range(1000):
        faults.fault("x" * 10_000, source=f"source {number}")
    assert len(faults.status().message) <= 1000
    # Older ones are forgotten: with the last twenty all are over.
    for number in range(980, 1000):
        assert faults.status().level == DiagnosticStatus.ERROR
        faults.healthy(f"source {number}")
    assert faults.status().level == DiagnosticStatus.OK
