"""Who drives: the decision alone, with graphs that show things late, in any order."""

import numpy as np
import pytest

from ft_controller.claim import Claim, Rival, Standing


class World:
    """Contenders on one topic; each sees the publishers of the others after a delay of its own."""

    def __init__(self, starts, delays, seconds=1.0, order=None):
        self.starts, self.delays = starts, delays
        self.claims = [Claim(seconds) for _ in starts]
        names = order or range(len(starts))
        self.ids = [bytes([k + 1]) for k in names]
        self.made = [None] * len(starts)  # since when there is a publisher
        self.gone = [-np.inf] * len(starts)
        self.both = 0.0
        self.t = 0.0

    def seen(self, i):
        """What contender i sees of the others now."""
        found = []
        for j, made in enumerate(self.made):
            if j != i and made is not None and self.t - made >= self.delays[i]:
                found.append(Rival(self.ids[j], f"/c{j}", True))
        return found

    def run(self, seconds, step=0.05):
        for _ in range(round(seconds / step)):
            self.t += step
            for i, claim in enumerate(self.claims):
                if self.t < self.starts[i]:
                    continue
                own = None if self.made[i] is None else self.ids[i]
                after = claim.look(self.t, own, self.seen(i))
                if after in (Standing.CLAIMING, Standing.DRIVING):
                    self.made[i] = self.t if self.made[i] is None else self.made[i]
                else:
                    self.made[i] = None
            self.both += step * (len(self.drivers()) > 1)
        return self

    def drivers(self):
        return [i for i, c in enumerate(self.claims) if c.standing == Standing.DRIVING]


def test_alone_it_drives_after_its_time():
    world = World([0.0], [0.0]).run(0.9)
    assert world.drivers() == []
    assert world.run(0.4).drivers() == [0]


def test_who_comes_later_waits_and_says_for_whom():
    world = World([0.0, 5.0], [0.1, 0.1], order=[1, 0]).run(20.0)
    assert world.drivers() == [0] and world.both == 0.0
    assert world.claims[1].standing == Standing.LOOKING
    assert world.claims[1].rival.node == "/c0"
    # When the first one has gone, it is the other's turn.
    world.starts[0], world.made[0] = np.inf, None
    world.claims[0].standing = Standing.LOOKING
    assert world.run(2.0).drivers() == [1]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_that_start_at_once_are_told_apart_by_their_identity(order):
    world = World([0.0, 0.0], [0.1, 0.1], order=order).run(10.0)
    assert world.drivers() == [order.index(0)] and world.both == 0.0


def test_one_drives_in_the_end_however_they_start_and_see():
    """300 seeded worlds of two to four contenders; views up to a second late."""
    random = np.random.default_rng(14)
    worst = 0.0
    for _ in range(300):
        count = int(random.integers(2, 5))
        starts = random.uniform(0.0, random.choice([0.0, 0.2, 2.0]), count)
        delays = random.uniform(0.0, random.choice([0.1, 1.0]), count)
        world = World(starts, delays, order=list(random.permutation(count))).run(20.0)
        assert len(world.drivers()) == 1, (starts, delays)
        worst = max(worst, world.both)
    assert worst <= 3.0  # only where they were seen too late


def test_discovery_in_time_never_lets_two_drive():
    random = np.random.default_rng(15)
    for _ in range(300):
        count = int(random.integers(2, 5))
        starts = random.uniform(0.0, random.choice([0.0, 0.2, 2.0]), count)
        delays = random.uniform(0.0, 0.3, count)
        world = World(starts, delays, order=list(random.permutation(count))).run(15.0)
        assert len(world.drivers()) == 1 and world.both == 0.0


def test_a_stranger_is_not_fought():
    claim, stranger = Claim(1.0), Rival(b"\x09", "/joystick", False)
    for k in range(30):
        claim.look(0.1 * k, b"\x01", [])
    assert claim.standing == Standing.DRIVING
    for k in range(30, 60):
        claim.look(0.1 * k, b"\x01", [stranger])
    assert claim.standing == Standing.LOST and claim.rival == stranger
    claim = Claim(1.0)
    for k in range(30):
        claim.look(0.1 * k, None, [stranger])
    assert claim.standing == Standing.LOOKING and claim.rival == stranger


def test_whoever_comes_and_goes_does_not_stop_the_driver():
    claim = Claim(1.0)
    visitor = Rival(b"\x00", "/c", True)
    for k in range(200):
        claim.look(0.1 * k, b"\x01", [visitor] if k > 30 and k % 12 < 9 else [])
    assert claim.standing == Standing.DRIVING


def test_without_a_time_nobody_looks():
    claim = Claim(0.0)
    assert claim.look(0.0, None, [Rival(b"\x00", "/c", True)]) == Standing.DRIVING
