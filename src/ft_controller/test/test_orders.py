"""Orders to a control loop, in simulated time."""

import numpy as np
import pytest

from benchmarks.baselines.ft_simulation import Simulation
from ft_controller import Arm, ArmError, State, Trajectory, orders

START = np.array([0.3, 0.4, 0.5, 0.6])
FAR = START + np.array([4.0, 0.0, 0.0, 0.0])
NAMES = ("a", "b", "c", "d")


@pytest.fixture
def simulation():
    """An arm that rests under control."""
    return Simulation(start=START).run(0.2)


def test_a_motion_beyond_the_limits_is_refused_and_nothing_changes(simulation):
    loop = simulation.loop
    before = loop.follower.trajectory
    with pytest.raises(ArmError, match="positions"):
        orders.follow(loop, Trajectory.rest(FAR))
    assert loop.follower.trajectory is before
    loop.group.lock(0)  # a locked joint is not asked
    orders.follow(loop, Trajectory.rest(FAR))
    assert loop.follower.trajectory is not before


def test_a_goal_is_planned_from_where_the_arm_should_be(simulation):
    plan = orders.move(simulation.loop, [0.6, 0.8], speed=1.5, acceleration=4.0)
    assert plan.trajectory.sample(0.0)[0] == pytest.approx(simulation.loop.follower.desired[0])
    simulation.follow(plan.trajectory)
    simulation.run(plan.trajectory.duration + 1.0)
    tip = Arm.four_link().end_effector(simulation.plant.q)
    assert tip[:2] == pytest.approx([0.6, 0.8], abs=1e-3)


def test_new_limits_lead_back_inside_and_must_hold_where_the_arm_is(simulation):
    loop = simulation.loop
    orders.follow(loop, Trajectory.through([0.0, 2.0], [START, START + 0.5]))
    simulation.run(0.3)
    orders.set_joint_limits(loop, [1, 2], np.array([-1.0, -1.0]), np.array([0.6, 0.7]), NAMES, 1.5)
    simulation.run(3.0)
    assert (simulation.plant.q[1:3] <= [0.61, 0.71]).all() and simulation.state == State.RUN
    with pytest.raises(ArmError, match=r"d is at .* rad now: move it first"):
        orders.set_joint_limits(loop, [3], np.array([2.0]), np.array([2.5]), NAMES, 1.5)
    assert loop.group.safety.limits.upper[3] == np.pi


def test_a_stopped_arm_is_refused_until_it_is_reset(simulation):
    loop = simulation.loop
    orders.refuse_if_stopped(loop)
    simulation.run(2.0, lost=True).run(0.1)
    assert simulation.state == State.STOPPED
    with pytest.raises(ArmError, match=r"stopped \(joint states are missing.*reset it first"):
        orders.refuse_if_stopped(loop)
    assert orders.start_point(loop)[0] == pytest.approx(simulation.plant.q)
    orders.reset(loop)
    simulation.run(0.1)
    assert simulation.state == State.RUN


def test_nothing_begins_without_joint_states(simulation):
    simulation.run(2.0, lost=True)
    for order in (orders.start_point, orders.reset):
        with pytest.raises(ArmError, match="no joint states"):
            order(simulation.loop)


def test_a_joint_that_is_freed_stays_where_it_is(simulation):
    loop = simulation.loop
    owners = orders.lock(loop, 2, True)
    assert loop.group.locked.tolist() == [False, False, True, False] and len(owners) == 4
    orders.follow(loop, Trajectory.rest(START + 0.2))
    simulation.run(2.0)
    orders.lock(loop, 2, False)
    assert loop.follower.trajectory.sample(0.0)[0] == pytest.approx(simulation.plant.q, abs=1e-6)
