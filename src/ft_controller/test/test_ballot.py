import numpy as np
import pytest

from ft_controller.ballot import ANSWER, RECORD, VOTE, Arrival, Ballot
from ft_controller.messages import Layout


@pytest.mark.parametrize("p, n", [(3, 1), (4, 4), (16, 20)])
def test_an_empty_ballot_has_room_for_every_answer(p, n):
    ballot = Ballot.of(Layout(p, n))
    for name, field in ballot._asdict().items():
        assert not np.asarray(field).tobytes().strip(b"\0"), name
    assert ballot.vote.dtype == VOTE and ballot.answers.dtype == ANSWER
    assert ballot.answers.shape == ballot.records.shape == (p,) and ballot.records.dtype == RECORD
    assert ballot.comparisons.shape == ballot.echoes.shape == (p, p)
    assert ballot.data.shape == (p, 1 + n * n + 2 * n)
    assert ballot.results.shape == (p, 1 + 2 * n)
    assert ballot.owner.shape == ballot.tau.shape == (n,)


def test_no_answer_has_arrived_in_an_empty_one_and_two_share_nothing():
    one, other = (Ballot.of(Layout(4, 2)) for _ in range(2))
    for name in ("data", "votes", "result"):
        assert (one.answers[name] == Arrival.AWAITED).all()
    for mine, theirs in zip(one, other, strict=True):
        assert not np.shares_memory(mine, theirs)
