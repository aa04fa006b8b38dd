"""The paper's pipeline: the same numbers as one thread, and a unit that fails is heard of."""

import numpy as np
import pytest

from kin_solvers import library, paper_kernels
from kin_solvers.paper import PaperSearch
from kin_solvers.pipeline import run_pipelined
from kin_solvers.system import System


def test_paper_method_naive_folded_and_pipelined_agree_to_the_last_bit():
    mechanism = library.get("bennett")
    system = System.of(mechanism)
    answers = []
    go = np.zeros(1, dtype=np.int64)
    naive, shared = (PaperSearch(mechanism, system, 0.3, 0.9, naive=n) for n in (True, False))
    for outcome in (
        naive.run(naive.initial(), 10**6, go),
        shared.run(shared.initial(), 10**6, go),
        run_pipelined(shared, shared.initial(), 10**6, go),
    ):
        order = np.lexsort(outcome.found_lower.T)
        answers.append((outcome.counters, outcome.found_lower[order], outcome.found_upper[order]))
    for other in answers[1:]:
        assert other[0] == answers[0][0]
        np.testing.assert_array_equal(other[1], answers[0][1])
        np.testing.assert_array_equal(other[2], answers[0][2])


@pytest.mark.parametrize("unit", ["corner_products", "project", "clip_loop"])
def test_a_unit_that_fails_ends_the_pipeline(unit, monkeypatch):
    def fail(*_):
        raise RuntimeError("broken unit")

    search = PaperSearch(library.get("bennett"), System.of(library.get("bennett")), 0.3, 0.9)
    monkeypatch.setattr(paper_kernels, unit, fail)
    with pytest.raises(RuntimeError, match="broken unit"):
        run_pipelined(search, search.initial(), 10, np.zeros(1, dtype=np.int64))


def test_a_limit_leaves_the_rest():
    search = PaperSearch(library.get("bennett"), System.of(library.get("bennett")), 0.3, 0.9)
    part = run_pipelined(search, search.initial(), 20, np.zeros(1, dtype=np.int64))
    assert part.counters.processed == 20
    assert part.settled + part.left.share.sum() == pytest.approx(1.0)
