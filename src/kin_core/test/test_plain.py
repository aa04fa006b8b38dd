"""The parts that import no ROS: errors, checks, tasks, loops, YAML."""

import itertools
import math
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_core import checks, errors
from kin_core.loop import PeriodicLoop
from kin_core.task import AlarmClock, Task
from kin_core.yamls import load_yaml
from kin_testing.fixtures import wait_until


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: checks.finite("v", [1.0, math.nan]), "v: must be finite, got nan at 1"),
        (lambda: checks.finite("v", [[0.0], [math.inf]]), "got inf at [1, 0]"),
        (lambda: checks.finite("v", ["a"]), "v: must hold numbers"),
        (lambda: checks.shape("v", [1.0, 2.0], (3,)), "v: must have the shape (3), got (2,)"),
        (lambda: checks.shape("v", [1.0], (None, 3)), "(any, 3)"),
        (lambda: checks.number("n", True), "n: must be a number, got True"),
        (lambda: checks.positive("n", 0.0), "n: must be greater than zero, got 0"),
        (lambda: checks.within("n", 5, 0, 1), "n: must be between 0 and 1, got 5"),
        (lambda: checks.one_of("m", "fats", ("fast", "paper")), "did you mean 'fast'?"),
        (lambda: checks.one_of("m", "zzz", ("fast", "paper")), "Known: fast, paper"),
        (lambda: checks.count("boxes", 11, 10), "boxes: 11 is more than the limit of 10"),
    ],
)
def test_checks_speak(check, sentence):
    with pytest.raises(errors.KinError) as refusal:
        check()
    assert sentence in str(refusal.value)


def test_libraries_need_no_ros():
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('rclpy', 'kin_interfaces', 'rcl_interfaces'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import kin_core.errors, kin_core.checks, kin_core.task\n"
        "import kin_core.rotations, kin_core.urdf, kin_core.yamls, kin_core.loop\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
    clock, rung = AlarmClock(), []
    clock.set(time.monotonic() + 1e300, lambda: rung.append("never"))
    time.sleep(0.05)
    thread = clock._thread
    clock.set(time.monotonic() + 0.01, lambda: rung.append("soon"))
    wait_until(lambda: rung == ["soon"], 5.0)
    assert clock._thread is thread
    assert thread.is_alive()


def test_many_dropped_alarms_are_forgotten():
    clock = AlarmClock()
    for _ in range(10_000):
        clock.drop(clock.set(time.monotonic() + 3600, lambda: None))
    assert len(clock._due) < 200


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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\na: 2", "f.yaml, line 2: the key 'a' stands here twice"),
        ("a: [", "f.yaml, line 2: did not find expected node content"),
        ("[" * 100 + "]" * 100, "nests deeper than 64 levels"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a\x00", "f.yaml: is not valid YAML"),
        ("a" * 200, "is larger than 100 bytes"),
    ],
)
def test_yaml_refusals(text, sentence):
    with pytest.raises(errors.InvalidInput) as refusal:
        load_yaml(text, name="f.yaml", limit_bytes=100 if text == "a" * 200 else 1000)
    assert sentence in str(refusal.value)


def test_yaml_files(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("x: [1, 2.5, true, null, text]\n")
    assert load_yaml(file) == {"x": [1, 2.5, True, None, "text"]}
    with pytest.raises(errors.InvalidInput, match="cannot be read"):
        load_yaml(tmp_path / "missing.yaml")
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(errors.InvalidInput, match="UTF-8"):
        load_yaml(file)


@given(st.text(max_size=100))
def test_any_text_is_yaml_or_refused(text):
    try:
        load_yaml(text)
    except errors.InvalidInput as refusal:
        assert str(refusal)


def test_finite_returns_the_array():
    np.testing.assert_array_equal(checks.finite("v", [1, 2]), np.array([1.0, 2.0]))
