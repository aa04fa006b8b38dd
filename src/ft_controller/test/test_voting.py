import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import Fault, Timing, voting
from ft_controller.voting import Reconfiguration


def test_quorum_is_more_than_half_of_the_working_set():
    assert [voting.quorum((1 << w) - 1) for w in range(1, 9)] == [1, 2, 2, 3, 3, 4, 4, 5]


def test_nan_and_infinity_equal_nothing():
    a = np.array([1.0, np.nan, np.inf, -0.0])
    assert voting.equal(a, a.copy(), 0, 1, 0.0) == -1
    assert voting.equal(a, a.copy(), 1, 1, 0.0) == 1
    assert voting.equal(a, a.copy(), 2, 1, 0.0) == 2
    assert voting.equal(a, a.copy(), 0, 4, 1e-3) == 1
    assert voting.equal(a, np.array([1.0, 0.0, 0.0, 0.0]), 3, 1, 0.0) == -1


def test_tolerance_is_relative_above_one_and_absolute_below():
    a, b = np.array([1000.0, 1e-9]), np.array([1000.5, 2e-9])
    assert voting.equal(a, b, 0, 2, 0.0) == 0
    assert voting.equal(a, b, 0, 2, 1e-3) == -1
    assert voting.equal(a, b, 0, 2, 1e-4) == 0


@settings(deadline=None)
@given(st.integers(1, 16), st.data())
def test_a_minority_never_votes_an_honest_processor_out(w, data):
    """For every working set: fewer than half of the others are not enough."""
    working = (1 << w) - 1
    candidate = data.draw(st.integers(0, w - 1))
    votes = data.draw(st.integers(0, w - 1))
    assert voting.voted_out(votes, working, candidate) == (votes > 0 and votes > (w - 1) / 2)


def owners(working, p, scheme, n, locked=()):
    owner = np.zeros(n, np.int64)
    flags = np.zeros(n)
    flags[list(locked)] = 1.0
    voting.assign(working, p, scheme, flags, owner)
    return owner.tolist()


def test_round_robin_gives_a_failed_processors_joint_to_its_left_neighbour():
    assert owners(0b1111, 4, Reconfiguration.ROUND_ROBIN, 4) == [0, 1, 2, 3]
    assert owners(0b1101, 4, Reconfiguration.ROUND_ROBIN, 4) == [0, 0, 2, 3]
    assert owners(0b1001, 4, Reconfiguration.ROUND_ROBIN, 4) == [0, 0, 0, 3]
    assert owners(0b1110, 4, Reconfiguration.ROUND_ROBIN, 4) == [3, 1, 2, 3]
    assert owners(0b0100, 4, Reconfiguration.ROUND_ROBIN, 4) == [2, 2, 2, 2]
    assert owners(0, 4, Reconfiguration.ROUND_ROBIN, 4) == [-1] * 4


def test_balanced_spreads_what_round_robin_heaps_up():
    assert sorted(owners(0b1001, 4, Reconfiguration.BALANCED, 4)) == [0, 0, 3, 3]
    heaped = np.bincount(
        owners(0b0000000011111111, 16, Reconfiguration.ROUND_ROBIN, 16), minlength=16
    )
    spread = np.bincount(owners(0b0000000011111111, 16, Reconfiguration.BALANCED, 16), minlength=16)
    assert heaped.max() == 9
    assert spread.max() == 2


@settings(deadline=None, max_examples=300)
@given(st.integers(3, 16), st.integers(1, 40), st.data())
def test_every_joint_has_a_working_owner_and_balanced_is_balanced(p, n, data):
    working = data.draw(st.integers(1, (1 << p) - 1))
    locked = data.draw(st.sets(st.integers(0, n - 1), max_size=n))
    for scheme in (Reconfiguration.ROUND_ROBIN, Reconfiguration.BALANCED):
        owner = owners(working, p, scheme, n, locked)
        assert all((working >> k) & 1 for k in owner)
        if scheme == Reconfiguration.BALANCED:
            load = [
                sum(owner[i] == k and i not in locked for i in range(n))
                for k in range(p)
                if (working >> k) & 1
            ]
            assert max(load) - min(load) <= 1


def test_the_processor_of_a_locked_joint_relieves_the_others():
    # Processor 1 has failed and joint 3 is locked: processor 3 has nothing to do but 1's work.
    assert owners(0b1101, 4, Reconfiguration.BALANCED, 4, locked=[3]) == [0, 3, 2, 3]
    # Eight joints on four processors, joints 0 and 4 locked: processor 0 would have none.
    load = np.bincount(
        [
            k
            for i, k in enumerate(owners(0b1111, 4, Reconfiguration.BALANCED, 8, [0, 4]))
            if i not in (0, 4)
        ]
    )
    assert load.tolist() == [1, 1, 2, 2] or sorted(load.tolist()) == [1, 1, 2, 2]


def test_who_answers_but_does_not_vote_counts_for_the_torque(groups):
    """Seed 0 falls silent after its data: with another that is wrong, three still agree."""
    bench = groups(4)
    bench.group.set_timing(Timing(grace=0.01, hard=5.0, late=0.05, probe=0.0005, stall=0.0))
    bench.group.inject(Fault((0,), "wrong_element", 0.0, 10.0, 22, 0.5), bench.t)
    bench.group.inject(Fault((1,), "silent", 0.0, 10.0, seed=0), bench.t)
    result, tau = bench.tick()
    assert result.voted and (result.torque == tau).all()
    bench.group.set_timing(Timing.lockstep())


KINDS = ("wrong_element", "nan", "silent", "corrupted_memory", "crash")


def patterns(p):
    """Every pattern of up to two faults: none, one of each kind, all pairs, colluding pairs."""
    yield ()
    for k, kind in itertools.product(range(p), KINDS):
        yield (((k,), kind),)
    for pair in itertools.combinations(range(p), 2):
        yield ((pair, "colluding"),)
        for a, b in itertools.combinations_with_replacement(KINDS[:4], 2):
            yield (((pair[0],), a), ((pair[1],), b))


def expected(p, pattern):
    """The truth table, by counting alone: what the first faulty tick must give."""
    faulty = {k for who, _ in pattern for k in who}
    if len(faulty) == 2 and pattern[0][1] == "colluding" and p // 2 < 2:
        return "outvoted"  # two liars of three that agree: not tolerated, and said so
    return "masked" if p - len(faulty) > p // 2 else "held"


@pytest.mark.slow
@pytest.mark.parametrize("p", [3, 4, 5])
def test_truth_table_of_every_pattern_of_up_to_two_faults(groups, p):
    bench = groups(p)
    group = bench.group
    counts = {}
    for pattern in patterns(p):
        want = expected(p, pattern)
        for who, kind in pattern:
            # tau of joint 2, so that wrong values would go straight to a motor; unequal errors.
            # Seed 4: silent from the first round on, damaged before anybody reads.
            size = 1.0 if kind == "colluding" else 0.5 + who[0]
            group.inject(Fault(who, kind, 0.0, 10.0, element=22, magnitude=size, seed=4), bench.t)
        if want == "held" and any(kind == "silent" for _, kind in pattern):
            # Nobody will come: no need to wait for long.
            group.set_timing(Timing(grace=0.01, hard=0.05, late=0.05, probe=0.0005, stall=0.0))
        result, tau = bench.tick()
        got = "held"
        if result.voted:
            got = "masked" if (result.torque == tau).all() else "outvoted"
        assert got == want, (p, pattern, [vars(x) for x in group.processors()])
        counts[got] = counts.get(got, 0) + 1
        if got == "masked":
            # Named, by what it did; the honest ones stay.
            honest = ((1 << p) - 1) & ~sum(1 << k for who, _ in pattern for k in who)
            assert group.working_set & honest == honest
            for who, kind in pattern:
                if kind in ("wrong_element", "nan", "corrupted_memory", "colluding"):
                    assert all(not (group.working_set >> k) & 1 for k in who), (pattern, who)
        group.set_timing(Timing.lockstep())
        bench.clean()
    assert counts["masked"] >= 16
    assert (counts.get("outvoted", 0) == 3) == (p == 3)
