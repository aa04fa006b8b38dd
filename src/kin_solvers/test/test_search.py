"""Chunks: limits pause them, quotas end a stage, nothing is dropped or done twice."""

import numpy as np
import pytest

from kin_solvers import Settings, library
from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.fast import FastSearch
from kin_solvers.methods import make_search
from kin_solvers.paper import PaperSearch
from kin_solvers.reduced import ReducedSearch
from kin_solvers.search import DONE, SEARCH, advance_one_stage, begin, with_known
from kin_solvers.system import System

GO = np.zeros(1, dtype=np.int64)


def chunk(count, quota):
    lower = np.arange(float(count))[:, None]
    return begin(Boxes(lower, lower + 1.0, np.full(count, 1.0 / count)), quota)


def settle(boxes, most, held):
    """A method that finds every box that it processes."""
    done, left = boxes.part(slice(None, most)), boxes.part(slice(most, None))
    outcome = Outcome(done.lower, done.upper, left, Counters(processed=len(done)), len(done) / 10.0)
    return with_known(outcome, held.found)


@pytest.mark.parametrize(
    ("limit", "quota", "done"), [(3, 100, 3), (100, 4, 4), (100, 100, 10), (0, 5, 0)]
)
def test_a_stage_ends_at_limit_quota_or_boxes(limit, quota, done):
    step = advance_one_stage(settle, chunk(10, quota), limit, GO)
    assert step.counters.processed == len(step.chunk.found) == done
    assert len(step.chunk.open) == 10 - done
    assert step.chunk.quota == quota - done
    assert step.settled == pytest.approx(done / 10.0)
    np.testing.assert_array_equal(step.chunk.found.lower[:, 0], np.arange(done))


def test_a_stage_goes_on_where_it_paused():
    whole = advance_one_stage(settle, chunk(10, 8), 100, GO).chunk
    part = chunk(10, 8)
    while len(part.open) and part.quota:
        part = advance_one_stage(settle, part, 3, GO).chunk
    np.testing.assert_array_equal(part.found.lower, whole.found.lower)
    np.testing.assert_array_equal(part.open.lower, whole.open.lower)


def test_a_raised_flag_stops_a_stage():
    step = advance_one_stage(settle, chunk(5, 5), 5, np.ones(1, dtype=np.int64))
    assert step.counters == Counters()
    assert len(step.chunk.open) == 5


@pytest.mark.parametrize(
    ("name", "method", "kind"),
    [
        ("bennett", "fast", FastSearch),
        ("bennett", "paper", PaperSearch),
        ("planar_four_bar", "fast", ReducedSearch),
        ("planar_four_bar", "paper", PaperSearch),
        ("stewart", "fast", ReducedSearch),
    ],
)
def test_the_search_that_fits(name, method, kind):
    mechanism = library.get(name)
    assert isinstance(make_search(mechanism, System.of(mechanism), Settings(method=method)), kind)


@pytest.mark.parametrize("name", ["bennett", "three_rpr", "stewart"])
def test_a_search_settles_the_whole_volume(name):
    """Stage after stage, in stretches of 50 boxes; what is open and what is found is all there."""
    mechanism = library.get(name)
    system = System.of(mechanism)
    search = make_search(mechanism, system, Settings(sigma=0.2))
    piece = begin(search.initial(), 150)
    settled, stages = 0.0, []
    while not piece.done:
        step = search.advance(piece, 50, GO)
        assert step.counters.processed <= 50
        settled, piece = settled + step.settled, step.chunk
        stages.append(piece.stage)
        assert len(search.open_boxes(piece)) >= len(piece.left)
    assert settled + piece.left.share.sum() == pytest.approx(1.0)
    assert stages[-1] == DONE
    assert stages[0] in (SEARCH, DONE)
    lower, upper = search.solutions(piece)
    assert lower.shape == upper.shape == (len(piece.found), system.size)
