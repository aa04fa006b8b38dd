"""Work in small stretches is the work done at once; budgets hold for every mechanism."""

import numpy as np
import pytest

from kin_common.task import Task
from kin_solvers import Constant, Loop, Mechanism, Motion, Settings, Variable, library, solve
from kin_solvers.errors import RequestError
from kin_solvers.mechanism import translation

#: Ranges that make the long searches short enough for budgets of one box; 1 of 4 and 2 of 40
#: solutions stay.
NARROW = {
    "stewart": {"yaw": (-0.2, 0.3), "roll": (-0.4, 0.4), "leg1_azimuth": (1.0, 3.0)},
    "dietmaier": {"yaw": (0.0, 0.6), "roll": (-0.6, 0.6), "leg1_azimuth": (-1.0, 0.6)},
}
FIELDS = ("lower", "upper", "certified", "unfinished_lower", "unfinished_upper")


def mechanism_of(name):
    """A mechanism of the library, with narrower ranges where it is a long search."""
    return library.get(name).with_ranges(NARROW.get(name, {}))


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
    mechanism = mechanism_of(name)
    whole = solve(mechanism, Settings(sigma=0.1))
    assert whole.complete
    parts, calls = in_stretches(mechanism, Settings(sigma=0.1, max_boxes=budget))
    assert_same(parts, whole)
    assert calls >= whole.counters.processed / (20 * budget)


@pytest.mark.parametrize("budget", [1, 3, 17])
@pytest.mark.parametrize("name", ["bennett", "scara", "planar_four_bar", "three_rpr"])
def test_so_with_the_method_of_the_paper(name, budget):
    mechanism, sigma = library.get(name), 0.4
    if name == "three_rpr":  # 12 scalars a loop: few boxes
        sigma = 1.0
        mechanism = mechanism.with_ranges({"base1": (0.0, 0.3), "platform1": (-2.0, 2.0)})
    whole = solve(mechanism, Settings(sigma=sigma, method="paper"))
    assert whole.complete
    settings = Settings(sigma=sigma, method="paper", max_boxes=budget)
    assert_same(in_stretches(mechanism, settings)[0], whole)
