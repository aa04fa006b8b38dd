"""Work in small stretches is the work done at once; budgets hold for every mechanism."""

import numpy as np
import pytest

from kin_core.task import Task
from kin_solvers import (
    Constant,
    Loop,
    Mechanism,
    Motion,
    Settings,
    SizeError,
    Variable,
    library,
    solve,
)
from kin_solvers.errors import RequestError
from kin_solvers.mechanism import translation

#: Ranges around one solution, for searches that are long with budgets of one box.
NARROW = {
    "stewart": {
        "leg1_azimuth": (-2.6, -1.9), "leg1_elevation": (-1.57, -0.9), "yaw": (1.5, 2.2),
        "pitch": (-1.0, -0.3), "roll": (0.8, 1.5),
    },
    "dietmaier": {
        "leg1_azimuth": (-1.4, -0.7), "leg1_elevation": (-0.3, 0.4), "yaw": (1.2, 1.9),
        "pitch": (-0.6, 0.1), "roll": (-2.9, -2.2),
    },
    "bricard": {"theta1": (0.3, 0.6)},
    "iiwa7": {"theta1": (0.3, 0.5)},
}  # fmt: skip
FIELDS = ("lower", "upper", "certified", "unfinished_lower", "unfinished_upper")


def question(name):
    """A mechanism of the library and its sigma; curves are looked at coarsely."""
    sigma = 0.4 if name in ("bricard", "iiwa7", "planar_four_bar") else 0.1
    return library.get(name).with_ranges(NARROW.get(name, {})), sigma


def in_stretches(mechanism, settings, most=20_000):
    """Solve with the same budget again and again; the answer and the number of calls."""
    answer = solve(mechanism, settings)
    calls = 1
    while not answer.complete:
        before = answer.counters.processed
        answer = solve(mechanism, settings, resume=answer)
        calls += 1
        assert answer.counters.processed > before
        assert calls < most
    return answer, calls


def assert_same(a, b):
    """The same bits."""
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
    assert a.counters == b.counters
    assert (a.complete, a.stopped, a.settled) == (b.complete, b.stopped, b.settled)


@pytest.mark.parametrize("budget", [1, 3, 17])
@pytest.mark.parametrize("name", library.NAMES)
def test_many_tiny_budgets_give_the_bits_of_one_search(name, budget):
    mechanism, sigma = question(name)
    whole = solve(mechanism, Settings(sigma=sigma))
    assert whole.complete
    assert len(whole.lower) > 0
    parts, calls = in_stretches(mechanism, Settings(sigma=sigma, max_boxes=budget))
    assert_same(parts, whole)
    assert calls > whole.paused.frontier.counters.processed / budget - 1


@pytest.mark.parametrize("budget", [1, 3, 17])
@pytest.mark.parametrize("name", ["bennett", "scara", "planar_four_bar"])
def test_so_with_the_method_of_the_paper(name, budget):
    mechanism = library.get(name)
    if name == "planar_four_bar":
        mechanism = mechanism.with_ranges({"theta1": (0.0, 0.3)})
    whole = solve(mechanism, Settings(sigma=0.4, method="paper"))
    assert whole.complete
    assert len(whole.lower) > 0
    settings = Settings(sigma=0.4, method="paper", max_boxes=budget)
    assert_same(in_stretches(mechanism, settings)[0], whole)


@pytest.mark.parametrize("name", ["bricard", "double_butterfly", "stewart"])
def test_so_with_budgets_and_threads_that_change(name):
    """Long searches, over several rounds."""
    mechanism = library.get(name)
    whole = solve(mechanism, Settings(sigma=0.1))
    rng = np.random.default_rng(5)
    answer = None
    while answer is None or not answer.complete:
        settings = Settings(
            sigma=0.1, threads=int(rng.integers(1, 4)), max_boxes=int(rng.choice([7, 400, 3001])),
            max_bytes=int(rng.choice([4096, 1 << 30])),
        )  # fmt: skip
        answer = solve(mechanism, settings, resume=answer)
    assert_same(answer, whole)


def test_a_search_that_was_stopped_by_time_goes_on():
    """Time may stop a box in the middle: the same solutions, perhaps not the same bits."""
    mechanism = library.get("double_butterfly")
    whole = solve(mechanism, Settings(sigma=0.1))
    ended = []

    def end(progress):
        if progress.counters["processed"] >= 40 * (len(ended) + 1):
            ended.append(task)
            task.cancel()

    answer = None
    while answer is None or not answer.complete:
        task = Task(None, end)
        answer = solve(mechanism, Settings(sigma=0.1, max_boxes=20), task=task, resume=answer)
    assert len(ended) > 2
    assert answer.certified.all()
    np.testing.assert_allclose(answer.lower, whole.lower, atol=1e-9)


def test_solutions_are_found_once_when_boxes_are_given_back_as_boxes():
    """As the node does, which keeps nothing between two requests."""
    for name in ("double_butterfly", "three_rpr", "puma560", "planar_four_bar", "stewart"):
        mechanism, sigma = question(name)
        whole = solve(mechanism, Settings(sigma=sigma))
        found_lower, found_upper = [], []
        part = solve(mechanism, Settings(sigma=sigma, max_boxes=17))
        for _ in range(400):
            found_lower.append(part.lower)
            found_upper.append(part.upper)
            if part.complete:
                break
            boxes = (part.unfinished_lower, part.unfinished_upper)
            part = solve(mechanism, Settings(sigma=sigma, max_boxes=17), boxes=boxes)
        assert part.complete, name
        lower, upper = np.concatenate(found_lower), np.concatenate(found_upper)
        points, _ = whole.refine(40)
        for q in points:
            inside = np.abs(np.remainder(0.5 * (lower + upper) - q + np.pi, 2 * np.pi) - np.pi)
            assert (inside <= 0.5 * (upper - lower) + 1e-9).all(axis=1).any(), name


def coincident():
    """A planar loop with two joints at one place: a surface where the reduced search sees points.

    The difference of the two angles is in no equation.
    """
    factors = []
    for k, length in enumerate([1.0, 0.0, 1.0, 0.0, 1.0]):
        factors += [Motion(k), Constant(translation(0, length))]
    return Mechanism("coincident", tuple(Variable(n) for n in "abcde"), (Loop(tuple(factors)),))


@pytest.mark.parametrize("name", [*library.NAMES, "coincident"])
@pytest.mark.parametrize("method", ["fast", "paper"])
def test_budgets_hold_for_every_mechanism(name, method):
    mechanism = coincident() if name == "coincident" else library.get(name)
    try:
        few = solve(mechanism, Settings(sigma=0.01, method=method, max_boxes=10, certify=False))
    except SizeError:
        assert method == "paper"
        return
    assert few.counters.processed <= 10
    assert len(few.lower) + len(few.unfinished_lower) <= 60
    small = solve(mechanism, Settings(sigma=0.003, method=method, max_bytes=1 << 16, certify=False))
    held = (len(small.lower) + len(small.unfinished_lower)) * 16 * len(mechanism.variables)
    assert small.complete or small.stopped == "memory"
    assert held <= 2 << 16


def test_time_holds_where_the_finish_is_long():
    part = solve(coincident(), Settings(sigma=1e-4, certify=False), task=Task(0.2))
    assert part.stopped == "time"
    assert 0 < part.counters.processed < 10_000_000  # some 10^9 without a limit


def test_an_answer_to_another_question_cannot_be_resumed():
    arm = library.get("puma560")
    part = solve(arm, Settings(max_boxes=5))
    pose = np.array(arm.target)
    pose[0, 3] += 0.01
    others = {
        "target": arm.with_target(pose),
        "range": arm.with_ranges({"theta1": (0.0, 1.0)}),
        "mechanism": library.get("manseur_doty"),
    }
    for other in others.values():
        with pytest.raises(RequestError, match="resume: belongs to another"):
            solve(other, resume=part)
    with pytest.raises(RequestError, match="together"):
        solve(arm, resume=part, boxes=([[0.0] * 6], [[0.1] * 6]))
    assert solve(library.get("puma560"), resume=part).complete


def test_another_sigma_or_method_goes_on_from_the_open_boxes():
    mechanism = library.get("bennett")
    part = solve(mechanism, Settings(sigma=0.2, method="paper", max_boxes=100))
    done = solve(mechanism, Settings(sigma=0.1), resume=part)
    assert done.complete
    points, _ = solve(mechanism, Settings(sigma=0.1)).refine(60)
    assert len(points) > 40
    assert all(done.contains(q, slack=1e-9) for q in points)
