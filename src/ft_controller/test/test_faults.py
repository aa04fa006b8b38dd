import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ft_controller import Fault, ScheduleError, load_schedule
from ft_controller.faults import FaultTable


def test_a_schedule_as_in_the_paper_is_read(tmp_path):
    text = """
    - {processor: 2, start: 0.5, end: 1.0}
    - {processors: [0, 3], kind: silent, start: 1.5}
    - {processor: 1, kind: slow, magnitude: 0.01, start: 0, end: 2, seed: 4}
    """
    first, second, third = load_schedule(text)
    assert first == Fault((2,), "wrong_element", 0.5, 1.0)
    assert second.processors == (0, 3) and second.end == math.inf
    assert third.magnitude == 0.01 and third.seed == 4
    file = tmp_path / "schedule.yaml"
    file.write_text("faults:\n" + text)
    assert load_schedule(file) == [first, second, third]


@pytest.mark.parametrize(
    "text, word",
    [
        ("processor: 1", "list"),
        ("- 5", r"faults\[0\]"),
        ("- {start: 0.0}", "processor"),
        ("- {processor: 1}", "start"),
        ("- {processor: 1, processors: [2], start: 0}", "either"),
        ("- {processor: one, start: 0}", "whole number"),
        ("- {processor: 1.5, start: 0}", "whole number"),
        ("- {processor: true, start: 0}", "whole number"),
        ("- {processor: -1, start: 0}", "between"),
        ("- {processor: 16, start: 0}", "between"),
        ("- {processor: 1, start: soon}", "start"),
        ("- {processor: 1, start: .nan}", "start"),
        ("- {processor: 1, start: -0.1}", "start"),
        ("- {processor: 1, start: 2.0, end: 1.0}", "end"),
        ("- {processor: 1, start: 2.0, end: 2.0}", "end"),
        ("- {processor: 1, start: 0, end: .inf}", "end"),
        ("- {processor: 1, start: 0, kind: explode}", "kind"),
        ("- {processor: 1, start: 0, kind: silnt}", "silent"),
        ("- {processor: 1, start: 0, kind: [nan]}", "kind"),
        ("- {processor: 1, start: 0, stop: 1}", "field"),
        ("- {processors: [], start: 0}", "at least one"),
        ("- {processors: [1, 1], start: 0}", "twice"),
        ("- {processors: 3, start: 0}", "list"),
        ("- {processors: [1], kind: colluding, start: 0}", "two"),
        ("- {processor: 1, start: 0, magnitude: .nan}", "magnitude"),
        ("- {processor: 1, start: 0, kind: slow, magnitude: 1.0e+9}", "magnitude"),
        ("- {processor: 1, start: 0, element: -2}", "element"),
        ("- {processor: 1, start: 0, seed: -1}", "seed"),
        ("- {processor: 1, start: 0", ""),
        ("- !!python/object/apply:os.system [true]", ""),
        ("- {processor: 1, start: 0}\n" * 10_001, "more than"),
    ],
)
def test_malformed_schedules_are_refused_by_entry_and_field(text, word):
    with pytest.raises(ScheduleError, match=word or "."):
        load_schedule(text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ScheduleError):
        load_schedule(tmp_path / "nothing.yaml")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        faults = load_schedule("- " + text)
    except ScheduleError:
        return
    assert all(isinstance(fault, Fault) for fault in faults)


def test_the_fault_that_began_last_rules_and_all_or_none_are_planned():
    table = FaultTable(4, 4)
    table.add([Fault((0, 1), "nan", 1.0, 3.0), Fault((1,), "silent", 2.0, 2.5)], now=10.0)
    assert table.active(10.5) == {}
    assert {k: f.kind for k, (_, f) in table.active(11.0).items()} == {0: "nan", 1: "nan"}
    assert {k: f.kind for k, (_, f) in table.active(12.0).items()} == {0: "nan", 1: "silent"}
    assert {k: f.kind for k, (_, f) in table.active(12.6).items()} == {0: "nan", 1: "nan"}
    assert table.active(13.0) == {} and len(table) == 0
    with pytest.raises(ScheduleError):
        table.add([Fault((0,), "nan"), Fault((4,), "nan")], now=0.0)
    with pytest.raises(ScheduleError):
        table.add([Fault((0,), "nan", element=24)], now=0.0)
    assert len(table) == 0
