"""Goals in simulated time, case by case against what joint_trajectory_controller does.

The loop, the safety supervisor and the arm are the real ones; see benchmarks/baselines.
"""

import re

import numpy as np
import pytest

from benchmarks.baselines.ft_simulation import Simulation
from ft_controller import Arm, ArmError, Limits, State, Trajectory
from ft_controller.trajectory_goals import Code, Tolerances, TrajectoryGoals, tolerance
from ft_controller.waypoints import Waypoints

NAMES = ("shoulder", "elbow", "wrist", "hand")
START = np.array([0.3, 0.4, 0.5, 0.6])
STEP = np.array([0.4, -0.3, 0.2, 0.3])
ALL = np.ones(4, np.bool_)
PERIOD = 0.01


def waypoints(times, positions, *, speeds=True, named=ALL):
    """Points at which the arm rests, or which it passes in straight lines."""
    p = np.array(positions, dtype=float)
    none = np.full_like(p, np.nan)
    v = np.zeros_like(p) if speeds else none
    return Waypoints(np.array(times, dtype=float), p, v, v, np.array(named), NAMES)


THERE = waypoints([1.0, 2.0], [START + 0.5 * STEP, START + STEP])
BACK = waypoints([1.5], [START])


def within(path=0.0, goal=0.0, goal_time=0.0, stopped=0.01):
    """Tolerances that are the same for all joints."""
    return Tolerances(
        np.array([np.full(4, path), np.zeros(4)]),
        np.array([np.full(4, goal), np.full(4, stopped)]),
        goal_time,
    )


def by(*step):
    """A place beside the start."""
    return START + np.array(step)


class Scene:
    """A controlled arm and its goals."""

    def __init__(self, **options):
        self.simulation = Simulation(start=START, **{"state_timeout": 0.3, **options})
        self.loop = self.simulation.loop
        self.goals = TrajectoryGoals(self.loop, NAMES)
        self.simulation.run(0.2)

    @property
    def q(self):
        return self.simulation.plant.q

    def go(self, points=THERE, tolerances=None, after=None, **options):
        """Take up a goal that starts now, or some time from now."""
        stamp = None if after is None else self.loop.clock() + round(1e9 * after)
        return self.goals.pass_through(points, tolerances or within(), stamp, **options)

    def run(self, seconds, **trouble):
        self.simulation.run(seconds, **trouble)
        return self

    def until_over(self, goal, seconds=10.0, **trouble):
        """Let time pass until a goal is over; how long that took."""
        began = self.simulation.time
        while goal.outcome is None:
            assert self.simulation.time < began + seconds, goal
            self.simulation.run(PERIOD, **trouble)
        return self.simulation.time - began

    def rests(self, where, tolerance=2e-3):
        """Whether the arm stays somewhere."""
        self.run(1.5)
        near = np.abs(self.q - where).max() < tolerance
        return near and self.simulation.speed < 0.01 and self.simulation.state == State.RUN


@pytest.fixture
def scene():
    """An arm that rests under control."""
    return Scene()


# ---------------------------------------------------------------------- to the end


@pytest.mark.parametrize("speeds", [True, False])
def test_a_goal_is_reached_at_its_time(scene, speeds):
    points = waypoints([1.0, 2.0], [START + 0.5 * STEP, START + STEP], speeds=speeds)
    goal = scene.go(points, within(path=0.05, goal=0.01, goal_time=1.0))
    taken = scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL and not goal.outcome.cancelled
    assert 2.0 - 2 * PERIOD <= taken <= 2.5
    assert scene.goals.active is None and scene.rests(START + STEP)


def test_what_is_seen_on_the_way_is_the_trajectory_and_the_arm(scene):
    goal = scene.go()
    scene.run(0.7)
    seen = goal.seen
    assert seen.clock == pytest.approx(0.7, abs=2 * PERIOD)
    assert (seen.reference == goal.trajectory.sample(seen.clock)).all()
    assert seen.q == pytest.approx(seen.reference[0], abs=0.01)


def test_the_trajectory_of_the_goal_is_followed_bit_for_bit(scene):
    goal = scene.go(after=0.123)
    for _ in range(250):
        scene.run(PERIOD)
        reference = scene.loop.follower.reference
        if reference[0] is goal.trajectory:
            late = 1e-9 * (scene.loop.clock() - goal.start_ns)
            assert reference[1] == pytest.approx(late, abs=1e-9)
            assert scene.loop.follower.desired == pytest.approx(
                goal.trajectory.sample(late), abs=1e-9
            )


# ---------------------------------------------------------------------- tolerances


def test_path_tolerance_violated_at_the_start(scene):
    """A first point of now that is not where the arm is."""
    far = waypoints([0.0, 2.0], [START + 0.3, START + STEP])
    goal = scene.go(far, within(path=0.1))
    assert scene.until_over(goal) <= 3 * PERIOD
    assert goal.outcome.code == Code.PATH_TOLERANCE_VIOLATED
    assert re.match(r"\w+ is 0\.\d+ \(allowed 0\.1\) from its path at 0\.0", goal.outcome.sentence)
    assert scene.rests(START)
    # A path that allows it is entered at the speed of planned motions, and then followed.
    goal = scene.go(far)
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL and scene.rests(START + STEP)
    assert scene.simulation.fastest < 2.0


def test_path_tolerance_violated_at_the_start_by_a_single_point_of_now(scene):
    goal = scene.go(waypoints([0.0], [START + 0.3]), within(path=0.1))
    assert scene.until_over(goal) <= 3 * PERIOD
    assert goal.outcome.code == Code.PATH_TOLERANCE_VIOLATED


def test_path_tolerance_violated_in_the_middle(scene):
    goal = scene.go(tolerances=within(path=0.03))
    scene.run(0.8)
    assert goal.outcome is None
    scene.until_over(goal, 1.0, push=0.1)
    assert goal.outcome.code == Code.PATH_TOLERANCE_VIOLATED
    # It stays where it is, which is not where it should have been.
    here = scene.q.copy()
    assert scene.rests(here, 0.1)
    assert np.abs(scene.q - START - STEP).max() > 0.1


def test_path_tolerance_of_velocities(scene):
    tight = Tolerances(np.array([np.zeros(4), np.full(4, 0.1)]), within().goal)
    goal = scene.go(tolerances=tight)
    scene.until_over(goal, push=0.2)
    assert goal.outcome.code == Code.PATH_TOLERANCE_VIOLATED
    assert "/s (allowed 0.1/s) from its path" in goal.outcome.sentence


def test_path_tolerance_is_not_looked_at_behind_the_last_point(scene):
    goal = scene.go(tolerances=within(path=0.02, goal=0.001))
    scene.run(2.05)
    scene.run(0.5, push=0.1)
    assert goal.outcome is None
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL


def test_goal_tolerance_violated_at_the_end(scene):
    goal = scene.go(tolerances=within(goal=0.001, goal_time=0.5))
    taken = scene.until_over(goal, push=0.05)
    assert goal.outcome.code == Code.GOAL_TOLERANCE_VIOLATED
    assert taken == pytest.approx(2.5, abs=3 * PERIOD)
    assert re.search(
        r"is 0\.\d+ \(allowed 0\.001\) from the goal 0\.5\d* s after its time, allowed 0\.5 s",
        goal.outcome.sentence,
    )


def test_without_a_goal_time_it_is_waited_for(scene):
    goal = scene.go(tolerances=within(goal=0.001))
    scene.run(4.0, push=0.05)
    assert goal.outcome is None
    scene.until_over(goal, 2.0)
    assert goal.outcome.code == Code.SUCCESSFUL


def test_a_goal_is_not_reached_before_the_arm_rests(scene):
    goal = scene.go(tolerances=within(stopped=1e-9, goal_time=1.0))
    scene.until_over(goal)
    assert goal.outcome.code == Code.GOAL_TOLERANCE_VIOLATED
    assert "/s (allowed 1e-09/s) from the goal" in goal.outcome.sentence
    goal = scene.go(BACK, within(stopped=0.0))
    assert scene.until_over(goal) == pytest.approx(1.5, abs=3 * PERIOD)


def test_a_motion_that_was_held_up_is_late(scene):
    """The clock of a motion stands in a pause; that of the goal does not."""
    goal = scene.go(tolerances=within(goal_time=0.2))
    scene.run(0.5).run(0.08, node_stopped=True)
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL  # so little is made up for
    goal = scene.go(BACK, within(goal_time=0.1))
    scene.run(0.5).run(0.3, node_stopped=True)
    scene.until_over(goal)
    if goal.outcome.code == Code.GOAL_TOLERANCE_VIOLATED:
        assert "not at its end" in goal.outcome.sentence
    else:
        assert goal.outcome.sentence.startswith("the arm is stopped")


@pytest.mark.parametrize(
    "usual, asked, found", [(0.1, 0.0, 0.1), (0.1, 0.3, 0.3), (0.1, -1.0, 0.0), (0.0, 0.0, 0.0)]
)
def test_zero_leaves_a_tolerance_and_minus_one_takes_it_away(usual, asked, found):
    assert tolerance("path_tolerance.position", usual, asked) == found


@pytest.mark.parametrize("asked", [-0.5, -2.0, np.nan, np.inf])
def test_other_negative_tolerances_are_none(asked):
    with pytest.raises(ArmError, match=r"path_tolerance.position: must be positive, 0 .* or -1"):
        tolerance("path_tolerance.position", 0.1, asked)


# ---------------------------------------------------------------------- cancel and replace


def test_cancel_in_flight_brakes_on_the_path_and_holds(scene):
    goal = scene.go()
    scene.run(0.6)
    scene.goals.cancel(goal)
    speeds, clocks = [], []
    while goal.outcome is None:
        scene.run(PERIOD)
        reference = scene.loop.follower.reference
        if reference[0] is goal.trajectory:
            clocks.append(reference[1])
            assert scene.loop.follower.desired[0] == pytest.approx(
                goal.trajectory.sample(reference[1])[0], abs=1e-9
            )
        speeds.append(scene.loop.follower.desired[1])
    assert goal.outcome.cancelled and "the arm has come to rest" in goal.outcome.sentence
    assert 0.1 <= PERIOD * len(speeds) <= 1.0
    assert np.abs(np.diff(speeds, axis=0)).max() <= 2.0 * 4.0 * PERIOD  # its own and the braking
    assert (speeds[-1] == 0.0).all() and (np.diff(clocks) >= 0.0).all()
    assert scene.rests(goal.trajectory.sample(clocks[-1])[0])


def test_cancel_on_the_way_to_a_far_beginning_brakes_there(scene):
    goal = scene.go(waypoints([0.0, 2.0], [START + 1.0, START + STEP]))
    scene.run(0.5)
    scene.goals.cancel(goal)
    scene.until_over(goal, 2.0)
    assert goal.outcome.cancelled
    here = scene.q.copy()
    assert scene.rests(scene.loop.follower.desired[0])
    assert np.abs(scene.q - here).max() < 0.4 and np.abs(scene.q - START - 1.0).max() > 0.2


def test_cancel_before_the_start(scene):
    goal = scene.go(after=1.0)
    scene.run(0.3)
    scene.goals.cancel(goal)
    assert scene.until_over(goal) <= 2 * PERIOD
    assert goal.outcome.cancelled and scene.rests(START)


def test_what_is_over_cannot_be_cancelled(scene):
    first = scene.go()
    second = scene.go(BACK)
    scene.goals.cancel(first)
    scene.run(0.1)
    assert first.outcome.code == Code.INVALID_GOAL and not first.outcome.cancelled
    assert not second.cancelling
    scene.until_over(second)
    assert second.outcome.code == Code.SUCCESSFUL


def test_replacement_in_flight(scene):
    """Preempted: the old goal is aborted at once, and the arm goes over without a jump."""
    old = scene.go()
    scene.run(0.6)
    before = scene.loop.follower.desired
    new = scene.go(BACK, within(path=0.05))
    assert old.outcome.code == Code.INVALID_GOAL
    assert old.outcome.sentence == "another goal has replaced it"
    assert new.trajectory.sample(0.0) == pytest.approx(before)
    path = [before]
    while new.outcome is None:
        scene.run(PERIOD)
        path.append(scene.loop.follower.desired)
    assert new.outcome.code == Code.SUCCESSFUL and scene.rests(START)
    assert np.abs(np.diff([p[1] for p in path], axis=0)).max() < 0.05


def test_a_refused_goal_replaces_nothing(scene):
    goal = scene.go()
    scene.run(0.5)
    with pytest.raises(ArmError):
        scene.go(waypoints([1.0], [START + 9.0]))
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL


def test_another_motion_ends_a_goal(scene):
    goal = scene.go()
    scene.run(0.5)
    scene.loop.follower.follow(Trajectory.rest(START))
    scene.until_over(goal, 0.1)
    assert goal.outcome.code == Code.INVALID_GOAL
    assert goal.outcome.sentence == "another motion replaced it"
    assert scene.rests(START)


def test_an_order_to_halt_ends_a_goal_and_holds(scene):
    goal = scene.go()
    scene.run(0.6)
    scene.goals.halt("an empty trajectory has stopped it")
    assert goal.outcome.sentence == "an empty trajectory has stopped it"
    scene.run(0.5)
    assert scene.rests(scene.loop.follower.desired[0])


# ---------------------------------------------------------------------- stamps


def test_a_goal_of_the_future_waits_for_its_time(scene):
    goal = scene.go(after=0.7)
    scene.run(0.69)
    assert np.abs(scene.q - START).max() < 1e-3 and goal.seen.clock < 0.0
    taken = 0.69 + scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL and 2.7 - 2 * PERIOD <= taken <= 3.2


def test_until_a_goal_of_the_future_starts_the_old_motion_goes_on(scene):
    old = scene.go()
    scene.run(0.3)
    new = scene.go(BACK, within(path=0.05, goal_time=1.0), after=0.5)
    assert old.outcome.sentence == "another goal has replaced it"
    speeds = []
    for _ in range(49):
        scene.run(PERIOD)
        late = 0.3 + PERIOD * (len(speeds) + 1)
        assert scene.loop.follower.desired[0] == pytest.approx(
            old.trajectory.sample(late)[0], abs=2e-2
        )
        speeds.append(scene.loop.follower.desired[1])
    while new.outcome is None:
        scene.run(PERIOD)
        speeds.append(scene.loop.follower.desired[1])
    assert new.outcome.code == Code.SUCCESSFUL and scene.rests(START)
    assert np.abs(np.diff(speeds, axis=0)).max() < 0.05


@pytest.mark.parametrize("late", [0.4, 1.3])
def test_of_a_late_goal_the_past_is_skipped(scene, late):
    goal = scene.go(tolerances=within(path=0.1), after=-late)
    assert goal.trajectory.duration == pytest.approx(2.0 - late, abs=2 * PERIOD)
    taken = scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL
    assert 2.0 - late - 2 * PERIOD <= taken <= 2.5 - late
    assert scene.rests(START + STEP)


def test_a_goal_of_the_past_is_refused(scene):
    for late in (2.1, 1e6):
        with pytest.raises(ArmError, match=r"header.stamp: the trajectory ended"):
            scene.go(after=-late)
    assert scene.goals.active is None and scene.rests(START)


def test_a_clock_that_is_set_back_ends_a_goal():
    scene = Scene()
    shift = [0]
    loop = scene.loop
    measured = type(loop).__mro__[2].measured  # of ControlLoop

    def sensed(q, qdot, age):
        measured(loop, q, qdot, age, loop.time_ns + shift[0])

    loop.sensed = sensed
    loop.clock = lambda: loop.time_ns + shift[0]
    goal = scene.go()
    scene.run(0.5)
    shift[0] = -(10**10)
    scene.until_over(goal, 0.1)
    assert goal.outcome.code == Code.INVALID_GOAL and "set back" in goal.outcome.sentence
    scene.run(0.5)
    assert scene.rests(scene.loop.follower.desired[0])


def test_a_simulation_at_another_speed_slows_the_motion_down():
    """Motions run by their own clock, whatever the machine's says."""
    scene = Scene()
    loop = scene.loop
    measured = type(loop).__mro__[2].measured
    loop.sensed = lambda q, qdot, age: measured(loop, q, qdot, age, loop.time_ns // 2)
    loop.clock = lambda: loop.time_ns // 2
    scene.run(0.1)
    goal = scene.go(tolerances=within(goal_time=0.3))
    assert scene.until_over(goal) == pytest.approx(4.0, abs=0.3)
    assert goal.outcome.code == Code.SUCCESSFUL


# ---------------------------------------------------------------------- limits and stops


@pytest.mark.parametrize(
    "points, sentence",
    [
        (
            waypoints([1.0, 2.0], [START, [0.3, 3.5, 0.5, 0.6]]),
            r"points.positions: elbow would be at 3.5 at point 1 \(2.000 s\), "
            r"allowed -3.142 to 3.142",
        ),
        (
            waypoints([2.0, 2.001], [START, by(0.1, 0.0, 0.0, 0.0)], speeds=False),
            r"points.velocities: shoulder would move at 100 at point 0 \(2.000 s\), "
            r"allowed -20 to 20",
        ),
        (
            waypoints([1.0, 1.04], [START, by(0.0, 0.0, 0.5, 0.0)]),
            r"points.velocities: wrist would move at .* on the way to point 1 \(1.0\d* s\)",
        ),
    ],
)
def test_goals_beyond_the_limits_are_refused_with_joint_point_and_value(scene, points, sentence):
    with pytest.raises(ArmError, match=sentence):
        scene.go(points)
    assert scene.goals.active is None and scene.rests(START)


def test_goals_beyond_the_torque_are_refused_with_joint_point_and_value():
    scene = Scene(limits=Limits.of(Arm.four_link(), [100.0, 100.0, 20.0, 5.0]))
    fast = waypoints([1.0, 1.4], [START, by(0.0, 1.5, 0.0, 0.0)])
    sentence = r"points.accelerations: shoulder would need -?\d+.* N m on the way to point 1 \(1.0"
    with pytest.raises(ArmError, match=sentence):
        scene.go(fast)
    slow = waypoints([1.0, 2.4], [START, by(0.0, 1.5, 0.0, 0.0)])
    goal = scene.go(slow)
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL and not scene.loop.group.safety.saturated


def test_a_locked_joint_is_not_asked(scene):
    scene.loop.group.lock(0)
    scene.simulation.plant.lock(0, True)
    goal = scene.go(waypoints([1.0], [by(4.0, 0.1, 0.0, 0.0)]))
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL and scene.q[0] == START[0]


def test_a_safe_stop_aborts_the_goal_with_its_reason(scene):
    goal = scene.go()
    scene.run(0.5)
    scene.until_over(goal, 2.0, lost=True)
    assert goal.outcome.code == Code.INVALID_GOAL
    assert goal.outcome.sentence.startswith("the arm is stopped: joint states are missing")


def test_after_a_recovery_an_aborted_goal_is_not_taken_up_again():
    for attended, arrives in ((True, False), (False, True)):
        scene = Scene(recover_after=1.0)
        goal = scene.go(attended=attended)
        scene.run(0.5).run(2.0, lost=True).run(6.0)
        assert scene.simulation.state == State.RUN
        assert (np.abs(scene.q - START - STEP).max() < 2e-3) == arrives
        assert goal.outcome.code == (Code.SUCCESSFUL if arrives else Code.INVALID_GOAL)


def test_one_held_tick_is_no_end(scene):
    goal = scene.go()
    scene.run(0.5).run(0.05, silent=True)
    scene.until_over(goal)
    assert goal.outcome.code == Code.SUCCESSFUL


def test_a_goal_that_is_dropped_says_why(scene):
    goal = scene.go()
    scene.goals.drop("the controller is being deactivated")
    assert goal.outcome.sentence == "the controller is being deactivated"


# ---------------------------------------------------------------------- some joints


def test_joints_that_are_not_named_stay(scene):
    named = np.array([False, True, False, True])
    goal = scene.go(waypoints([1.0], [START + STEP], named=named))
    scene.until_over(goal)
    assert scene.rests(START + np.where(named, STEP, 0.0))


def test_joints_that_are_no_longer_named_come_to_rest(scene):
    scene.go()
    scene.run(0.6)
    before = scene.loop.follower.desired
    named = np.array([False, True, False, True])
    goal = scene.go(waypoints([1.0], [START], named=named), within(path=0.05))
    speeds = [before[1]]
    while goal.outcome is None:
        scene.run(PERIOD)
        speeds.append(scene.loop.follower.desired[1])
    assert goal.outcome.code == Code.SUCCESSFUL
    assert np.abs(np.diff(speeds, axis=0)).max() < 0.08
    assert scene.q[named] == pytest.approx(START[named], abs=2e-3)
    ahead = (scene.q - before[0])[~named] * np.sign(STEP[~named])
    assert (ahead > 0.0).all() and (ahead < 0.2).all()


def test_a_goal_before_the_arm_is_under_control_begins_where_the_arm_is():
    simulation = Simulation(start=START)
    goals = TrajectoryGoals(simulation.loop, NAMES)
    with pytest.raises(ArmError, match="no joint states to start from"):
        goals.pass_through(THERE, within())
    simulation.loop.sensed(START, np.zeros(4), 0.0)
    goal = goals.pass_through(THERE, within())
    simulation.run(3.5)
    assert goal.outcome.code == Code.SUCCESSFUL
    assert np.abs(simulation.plant.q - START - STEP).max() < 2e-3
