"""The periodic loop: deadlines, misses, errors."""

import itertools
import threading
import time

import pytest

from kin_core.loop import PeriodicLoop
from kin_testing.fixtures import wait_until


def test_loop_keeps_absolute_deadlines():
    stamps = []
    loop = PeriodicLoop(0.005, lambda: stamps.append(time.monotonic()), on_error=pytest.fail)
    loop.start()
    wait_until(lambda: len(stamps) >= 100)
    loop.stop()
    assert not loop.running
    # Every tick stands on the grid of the first one: no drift, whatever each tick took.
    number = len(stamps) - 1
    periods = (stamps[-1] - stamps[0]) / 0.005
    assert abs(periods - round(periods)) * 0.005 < 0.2
    assert round(periods) <= number + loop.missed + 40
    assert loop.ticks == len(stamps)


def test_loop_counts_missed_deadlines_and_never_hurries():
    blocked = threading.Event()
    ticks = []

    def work():
        ticks.append(time.monotonic())
        if len(ticks) == 3:
            blocked.wait(0.1)

    loop = PeriodicLoop(0.01, work, on_error=pytest.fail)
    loop.start()
    wait_until(lambda: len(ticks) >= 6)
    loop.stop()
    assert loop.missed >= 8
    assert all(later - earlier > 0.0 for earlier, later in itertools.pairwise(ticks))


def test_a_loop_goes_on_after_errors_also_of_the_one_it_tells(capfd):
    seen = []

    def work():
        raise ValueError(f"tick {len(seen)}")

    def tell(error):
        seen.append(error)
        if len(seen) == 2:
            raise RuntimeError("the one who is told fails too")

    loop = PeriodicLoop(0.002, work, on_error=tell)
    loop.start()
    wait_until(lambda: len(seen) >= 4)
    assert loop.running
    loop.stop()
    assert str(seen[0]) == "tick 0"
    assert isinstance(loop.error, ValueError)
    written = capfd.readouterr().err
    assert "tick 1" in written
    assert "fails too" in written
    with pytest.raises(ValueError, match="greater than zero"):
        PeriodicLoop(0.0, work, on_error=tell)


def test_no_loop_without_saying_what_happens_on_an_exception():
    with pytest.raises(TypeError, match="on_error"):
        PeriodicLoop(0.01, lambda: None)
