"""The clock of a motion stands without control; motions are entered from where the arm is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import Arm, ArmError, Trajectory, plan
from ft_controller.follower import Entry, Follower

START = np.array([0.3, 0.4, 0.5, 0.6])
MOVE = plan(Arm.four_link(), START, [0.6, 0.8], duration=2.0).trajectory
ZERO = np.zeros(4)
TICK = 10_000_000  # [ns]
ENTRY = Entry(speed=1.5, acceleration=4.0, pause=0.1, regular=0.025)


class Driver:
    """An arm that is where it should be, tick by tick."""

    def __init__(self, trajectory=MOVE, entry=ENTRY):
        self.follower = Follower(4, entry)
        self.now = 0
        self.q, self.v = START.copy(), ZERO.copy()
        self.path = []
        self.tick()
        self.follower.follow(trajectory)

    def tick(self, ticks=1, gap=1, accepted=True, controlled=True):
        for _ in range(ticks):
            self.now += gap * TICK
            desired = self.follower.propose(self.now, self.q, self.v, controlled)
            if accepted:
                self.follower.accept()
                self.q, self.v = desired[0].copy(), desired[1].copy()
                self.path.append(desired.copy())
        return self

    def steps(self):
        """Largest changes from tick to tick of position and velocity."""
        path = np.array(self.path)
        return np.abs(np.diff(path[:, 0], axis=0)).max(), np.abs(np.diff(path[:, 1], axis=0)).max()


def test_without_trouble_it_is_the_trajectory_bit_for_bit():
    driver = Driver().tick(250)
    for k, desired in enumerate(driver.path[1:], start=1):
        assert (desired == MOVE.sample(1e-9 * (k * TICK))).all()
    assert not driver.follower.entering


def test_the_arm_stays_where_it_is_until_there_is_a_trajectory():
    follower = Follower(4, ENTRY)
    assert (follower.propose(TICK, START, ZERO, False)[0] == START).all()
    follower.accept()
    assert (follower.propose(2 * TICK, START + 0.01, ZERO, True)[0] == START).all()


def test_a_trajectory_that_came_before_the_arm_begins_where_the_arm_is():
    follower = Follower(4, ENTRY)
    follower.follow(MOVE)
    away = START + np.array([0.5, -0.5, 0.2, 0.0])
    assert (follower.propose(TICK, away, ZERO, False)[0] == away).all()


@pytest.mark.parametrize("gap", [11, 20, 100, 1000, 360_000])
@pytest.mark.parametrize("drift", [0.0, 0.05, 1.0])
def test_after_a_pause_the_motion_goes_on_from_where_the_arm_is(gap, drift):
    driver = Driver().tick(80)
    before = driver.follower.clock
    driver.q = driver.q + drift * np.array([1.0, -1.0, 0.5, 0.0])
    driver.v = ZERO.copy()
    driver.path.clear()
    driver.tick(1, gap)
    assert (driver.path[-1][0] == driver.q).all() and (driver.path[-1][1:] == 0.0).all()
    assert driver.follower.clock == before  # it stood
    driver.tick(600)
    position, velocity = driver.steps()
    assert position <= 0.01 * 1.5 + 0.01 * 1.0 + 1e-9
    assert velocity <= 0.01 * (4.0 + 4.0 + 4.0)  # offset, start of the clock, trajectory
    assert driver.q == pytest.approx(MOVE.sample(2.0)[0], abs=1e-9)  # and it arrives
    assert not driver.follower.entering


def test_a_few_lost_ticks_are_made_up_for():
    driver = Driver().tick(50).tick(1, gap=8)
    assert (driver.path[-1] == MOVE.sample(1e-9 * (58 * TICK))).all()
    # Unless the arm went elsewhere meanwhile.
    driver.q = driver.q + 0.2
    stood = driver.follower.clock
    driver.tick(1, gap=8)
    assert (driver.path[-1][0] == driver.q).all() and driver.follower.clock == stood


def test_what_is_not_accepted_has_not_happened():
    driver = Driver().tick(50)
    clock, desired = driver.follower.clock, driver.follower.desired
    driver.tick(5, accepted=False)
    assert driver.follower.clock == clock and (driver.follower.desired == desired).all()
    driver.follower.follow(Trajectory.rest(START))
    driver.tick(2, accepted=False)
    assert driver.follower.clock == clock


def test_without_a_new_measurement_nothing_changes():
    driver = Driver().tick(50)
    path = driver.path[-1]
    driver.tick(20, gap=0)
    assert all((desired == path).all() for desired in driver.path[-20:])


def test_a_new_trajectory_is_entered_from_the_old_one():
    # From a motion to a stop: the desired velocity does not jump.
    driver = Driver().tick(100)
    driver.path[:] = driver.path[-1:]
    driver.follower.follow(Trajectory.rest(driver.q))
    driver.tick(300)
    position, velocity = driver.steps()
    assert velocity <= 0.04 + 1e-9 and position <= 0.02
    assert (driver.v == 0.0).all()
    # To one that begins elsewhere.
    driver.path[:] = driver.path[-1:]
    driver.follower.follow(Trajectory.rest(START + 1.0))
    driver.tick(400)
    position, velocity = driver.steps()
    assert velocity <= 0.04 + 1e-9 and position <= 0.015 + 1e-9
    assert (driver.q == START + 1.0).all()
    # One that continues the old one is followed without a stop.
    driver.follower.follow(MOVE)
    driver.tick(600)
    driver = Driver().tick(100)
    now = driver.follower.desired
    end = START + 0.5
    follow = Trajectory.through([0.0, 2.0], [now[0], end], [now[1], ZERO], [now[2], ZERO])
    driver.follower.follow(follow)
    driver.tick(1)
    assert driver.path[-1] == pytest.approx(follow.sample(0.01), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_offset_is_taken_down_within_its_limits(seed):
    """From any place and any speed: never faster than at the start or the limit, and it arrives."""
    random = np.random.default_rng(seed)
    period = 10.0 ** random.uniform(-2.5, -1.3)
    speed, acceleration = 10.0 ** random.uniform(-0.3, 1), 10.0 ** random.uniform(0.3, 2)
    follower = Follower(2, Entry(speed, acceleration, pause=1.0, regular=0.0))
    q0, v0 = random.uniform(-3.0, 3.0, 2), random.uniform(-10.0, 10.0, 2)
    follower.follow(Trajectory.rest(np.zeros(2)))
    bound = np.maximum(acceleration, v0**2)  # comes to rest within half a radian
    tick = int(1e9 * period)
    previous = follower.propose(tick, q0, v0, False)
    follower.accept()
    longest = 2.0 + 2.0 * np.abs(v0).max() / acceleration + 20.0 / speed
    longest += 10.0 / np.sqrt(acceleration) + 200.0 * period
    now = tick
    while follower.entering and now < 1e9 * longest:
        now += tick
        desired = follower.propose(now, q0, v0, True)
        follower.accept()
        assert (np.abs(desired[1]) <= np.maximum(np.abs(v0), speed) + 1e-9).all()
        jump = np.abs(desired[1] - previous[1])
        assert (jump <= bound * period * (1.0 + 1e-6) + 1e-9).all()
        assert (
            np.abs(desired[0] - previous[0])
            <= period * 2.0 * (np.maximum(np.abs(v0), speed) + bound * period)
        ).all()
        previous = desired
    assert not follower.entering
    assert (previous[:2] == 0.0).all()


@settings(max_examples=30, deadline=None)
@given(ticks=st.integers(1, 190), stands=st.integers(60, 200))
def test_a_halted_motion_ends_on_its_way_and_goes_on_from_there(ticks, stands):
    driver = Driver().tick(ticks)
    began = driver.follower.clock
    driver.follower.halted = True
    driver.path.clear()
    driver.tick(stands)
    assert (driver.v == 0.0).all() and driver.follower.clock >= began
    # Every place on the way down is one of the trajectory, in its order.
    clocks = np.linspace(began, driver.follower.clock, 2001)
    way = np.array([MOVE.sample(s)[0] for s in clocks])
    nearest = []
    for desired in driver.path:
        distance = np.abs(way - desired[0]).max(axis=1)
        nearest.append(int(np.argmin(distance)))
        assert distance.min() < 1e-3
    assert nearest == sorted(nearest)
    # The speed goes down within the limits: what the clock takes, and what the trajectory has.
    assert driver.steps()[1] <= TICK * 1e-9 * (2.0 * 4.0 + 4.0) if ticks > 1 else True
    driver.follower.halted = False
    driver.tick(600)
    assert driver.q == pytest.approx(MOVE.sample(2.0)[0], abs=1e-9)


def test_a_trajectory_begins_at_its_time_and_the_old_one_goes_on_until_then():
    driver = Driver().tick(50)
    start = driver.now + 20 * TICK + TICK // 3  # between two ticks
    state = driver.follower.ahead(start)
    assert state == pytest.approx(MOVE.sample(1e-9 * (start - TICK)), abs=1e-9)
    new = Trajectory.through([0.0, 2.0], [state[0], START], [state[1], ZERO], [state[2], ZERO])
    driver.follower.follow(new, start)
    assert driver.follower.follows(new) and driver.follower.trajectory is MOVE
    driver.tick(20)
    assert (driver.path[-1] == MOVE.sample(1e-9 * (70 * TICK))).all()
    driver.tick(30)
    assert driver.follower.trajectory is new
    late = 1e-9 * (driver.now - start)
    assert driver.follower.clock == pytest.approx(late, abs=1e-9)
    assert driver.path[-1] == pytest.approx(new.sample(late), abs=1e-9)
    assert not driver.follower.entering


def test_of_a_time_that_is_past_the_trajectory_has_run_on():
    driver = Driver().tick(50)
    now = driver.follower.desired
    new = Trajectory.through([0.0, 2.0], [now[0], START], [now[1], ZERO], [now[2], ZERO])
    driver.follower.follow(new, driver.now - 2 * TICK)
    driver.tick(60)
    assert driver.follower.clock == pytest.approx(0.62, abs=1e-9)
    assert driver.path[-1] == pytest.approx(new.sample(0.62), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 230), st.integers(0, 30))
def test_a_halt_brakes_on_the_way_and_stays(ticks, lost):
    driver = Driver().tick(ticks)
    driver.follower.halt()
    driver.tick(lost, accepted=False)  # and what is not accepted has not happened
    driver.now -= lost * TICK
    driver.path[:] = driver.path[-1:]
    clock = driver.follower.clock
    for _ in range(80):
        driver.tick()
        if driver.follower.trajectory is MOVE:
            assert clock <= driver.follower.clock
            clock = driver.follower.clock
            assert driver.path[-1][0] == pytest.approx(MOVE.sample(clock)[0], abs=1e-12)
    assert driver.follower.trajectory is not MOVE and not driver.follower.entering
    assert driver.path[-1][0] == pytest.approx(MOVE.sample(clock)[0], abs=0.02)
    assert (driver.path[-1][1:] == 0.0).all()
    _, velocity = driver.steps()
    assert velocity <= 0.01 * (4.0 + 4.0) + 1e-9  # braking, and what the trajectory does itself
    # A trajectory after that is followed as ever.
    driver.follower.follow(Trajectory.rest(START))
    driver.tick(400)
    assert (driver.q == START).all()


def test_a_clock_that_is_set_back_does_not_run_the_motion_back():
    driver = Driver().tick(80)
    clock, where = driver.follower.clock, driver.q.copy()
    driver.now -= 1000 * TICK
    driver.tick()
    assert driver.follower.clock == clock and (driver.q == where).all()
    driver.tick(300)
    assert driver.q == pytest.approx(MOVE.sample(2.0)[0], abs=1e-9)


@pytest.mark.parametrize("field", ["speed", "acceleration", "pause"])
def test_senseless_entries_are_refused(field):
    with pytest.raises(ArmError, match=field):
        Entry(**{field: 0.0})
