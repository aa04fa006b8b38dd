"""Spatial arms under control: replicas, faults, payloads, limits, and stops that keep them up."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.ft_simulation import Simulation
from ft_controller import ArmError, Fault, Limits, Plant, SpatialArm, State, Trajectory, orders
from ft_controller.controllers import CONTROLLERS
from ft_controller.motion_watch import MotionWatch
from ft_controller.safety_supervisor import Reason

ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"
ARMS = {name: SpatialArm.from_urdf(ROBOTS / f"{name}.urdf") for name in ("six", "seven")}


def limits_of(arm, **changes):
    usual = Limits.of(arm, arm.effort)
    mine = {"lower": arm.lower, "upper": arm.upper, "speed": arm.speed, "overspeed": 0.1}
    return dataclasses.replace(usual, **{**mine, "hold": 0.3, **changes})


# ---------------------------------------------------------------------- replicas


@pytest.fixture(scope="module")
def bench(make_bench):
    """Four processors of the seven-joint arm."""
    return make_bench(ARMS["seven"], limits=limits_of(ARMS["seven"], torque=np.full(7, 1e5)))


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_gives_the_torque_of_one_computation(bench, controller):
    bench.clean()
    bench.group.set_controller(controller)
    assert bench.run(10) == (10, 0, 0)


@pytest.mark.parametrize("kind", ["wrong_element", "nan", "silent", "two_faced", "sigkill"])
def test_a_faulty_processor_is_masked_and_named(bench, kind):
    bench.clean()
    for k, element in enumerate((0, 30, 50, 62)):  # of M, M, N and tau
        bench.group.inject(Fault((k,), kind, 0.0, 0.006, element, 3.0, seed=k), bench.t)
        right, wrong, missing = bench.run(12)
        assert (wrong, missing) == (0, 0) and right == 12
        assert bench.group.errors[k] > 0
        bench.clean()


def test_a_payload_is_taken_over_between_two_ticks(bench):
    bench.clean()
    light, heavy = bench.arm, bench.arm.loaded(2.0, (0.0, 0.0, 0.1))
    q = np.full(7, 0.5)
    assert np.abs(heavy.bias(q, 0 * q) - light.bias(q, 0 * q)).max() > 5.0
    bench.group.set_arm(heavy)
    ticks = 0
    while bench.arm is light:
        result, tau = bench.tick()
        ticks += 1
        # The last tick is still one of the processors of before.
        assert result.voted and (bench.arm is heavy or (result.torque == tau).all())
    assert ticks > 1 and bench.arm is heavy
    assert bench.run(10) == (10, 0, 0)
    with pytest.raises(ArmError, match="7 joints"):
        bench.group.set_arm(ARMS["six"])


# ---------------------------------------------------------------------- stops


def simulated(name, error=0.0, **options):
    """An arm under control at rest."""
    arm = ARMS[name]
    # As the node has it: a light wrist may stand still although the model would have it move.
    watch = MotionWatch(arm, standstill=0.1 * arm.effort / arm.own_inertia)
    simulation = Simulation(
        arm=arm,
        start=np.full(arm.n, 0.3),
        model_error=error,
        limits=limits_of(arm),
        watch=watch,
        **options,
    ).run(1.0)
    assert simulation.state == State.RUN
    return simulation


def on_its_way(name, error=0.0, **options):
    simulation = simulated(name, error, **options)
    start = simulation.plant.q.copy()
    simulation.follow(Trajectory.through([0.0, 2.0], [start, start + 0.6]))
    return simulation.run(1.0)


def sag(simulation, seconds=10.0):
    """Largest distance from where the arm is now."""
    begin, worst = simulation.plant.q.copy(), 0.0
    for _ in range(round(seconds / 0.1)):
        simulation.run(0.1)
        worst = max(worst, float(np.abs(simulation.plant.q - begin).max()))
    return worst


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_that_is_stopped_on_its_way_comes_to_rest_and_stays(name):
    simulation = on_its_way(name)
    simulation.group.safety.stop(simulation.loop.now())
    simulation.run(2.5)
    assert simulation.state == State.STOPPED and simulation.reason == Reason.STOP_ASKED
    assert "kept up" in simulation.group.reason() and not simulation.group.safety.needs_brakes
    assert simulation.fastest < 1.5 and sag(simulation) < 1e-3
    simulation.reset()
    assert simulation.run(1.0).state == State.RUN


def test_a_stop_decelerates_along_the_plan():
    simulation = simulated("seven")
    start = simulation.plant.q.copy()
    middle, end = start + 0.3 * np.sin(np.arange(7)), start + 0.3 * np.cos(np.arange(7))
    plan = Trajectory.through([0.0, 1.0, 2.0], [start, middle, end])
    simulation.follow(plan)
    simulation.run(0.9)
    clock = simulation.loop.follower.clock
    simulation.group.safety.stop(simulation.loop.now())
    way = np.array([plan.sample(s)[0] for s in np.linspace(clock, clock + 1.0, 2001)])
    assert np.abs(way[1000] - way[0]).max() > 0.05
    for _ in range(200):
        simulation.run(0.01)
        assert np.abs(way - simulation.plant.q).max(axis=1).min() < 2e-3
    assert simulation.state == State.STOPPED and simulation.speed < 1e-3
    assert clock + 0.05 < simulation.loop.follower.clock < clock + 0.5


@pytest.mark.parametrize("name", ARMS)
def test_a_stopped_arm_stays_although_the_model_is_wrong(name):
    simulation = simulated(name, error=0.05).run(3.0)
    simulation.group.safety.stop(simulation.loop.now())
    simulation.run(2.0)
    assert simulation.state == State.STOPPED and simulation.reason == Reason.STOP_ASKED
    assert sag(simulation, 5.0) < 5e-3  # as restless as a light wrist is while it runs
    assert simulation.loop.follower.desired[0] == pytest.approx(np.full(ARMS[name].n, 0.3))


@pytest.mark.parametrize("trouble", [{"silent": True}, {"lost": True}], ids=str)
def test_brakes_are_asked_for_when_nobody_can_keep_the_arm_up(trouble):
    simulation = on_its_way("six").run(2.0, **trouble)
    assert simulation.state == State.STOPPED and simulation.group.safety.needs_brakes
    assert "brakes are asked for" in simulation.group.reason()
    assert simulation.speed == 0.0 and simulation.fastest < 6.0
    assert sag(simulation, 2.0) < 0.1  # until they are back, and no farther
    simulation.run(1.0)
    assert not simulation.group.safety.needs_brakes  # the quorum keeps it up again
    assert simulation.state == State.STOPPED and sag(simulation) < 1e-3


def test_an_arm_without_gravity_is_stopped_as_before():
    arm = SpatialArm.from_urdf(ROBOTS / "six.urdf", gravity=(0.0, 0.0, 0.0))
    assert not arm.falls and ARMS["six"].falls
    simulation = Simulation(arm=arm, start=np.zeros(6), limits=limits_of(arm)).run(0.5)
    simulation.group.safety.stop(simulation.loop.now())
    simulation.run(1.0)
    assert simulation.state == State.STOPPED and not simulation.group.safety.needs_brakes
    assert (simulation.sent[-1].torque == 0.0).all()


def test_one_processor_that_is_left_keeps_the_arm_up(make_bench):
    arm = ARMS["six"]
    group = make_bench(arm, processors=3, restart=False, limits=limits_of(arm)).group
    plant, zero, period = Plant(arm, q=np.full(6, 0.3)), np.zeros(6), 0.01
    begin = plant.q.copy()

    def tick(k):
        q, v = plant.measure()
        plant.step(group.tick(q, v, begin, zero, zero, period * k).torque, period)

    for k in range(20):
        tick(k)
    group.inject(Fault((0, 2), "sigkill"), 0.0)
    k = 20
    while group.working_set != 0b010:
        tick(k)
        k += 1
    group.safety.stop(period * k)
    for i in range(1000):
        tick(k + i)
    assert group.safety.state == State.STOPPED and group.safety.kept_up and group.unverified
    assert np.abs(plant.q - begin).max() < 1e-3


# ---------------------------------------------------------------------- limits


def test_motions_keep_to_the_velocities_and_positions_of_the_urdf():
    simulation = simulated("six")
    start = simulation.plant.q.copy()
    far = start.copy()
    far[1] = 2.3
    with pytest.raises(ArmError, match=r"joint 1 has .* allowed -2.2 to 2.2"):
        orders.follow(simulation.loop, Trajectory.rest(far))
    with pytest.raises(ArmError, match="velocities"):
        orders.follow(simulation.loop, Trajectory.through([0.0, 0.4], [start, start + 1.0]))
    with pytest.raises(ArmError, match="planar arms"):
        orders.move(simulation.loop, [0.5, 0.5])


@pytest.mark.parametrize("share, state", [(1.05, State.RUN), (1.15, State.RAMP)])
def test_a_measured_speed_beyond_that_of_the_urdf_stops_the_arm(share, state):
    simulation = simulated("six")
    v = np.zeros(6)
    v[4] = share * ARMS["six"].speed[4]
    safety, tau = simulation.group.safety, np.zeros(6)
    safety.step(simulation.loop.now() + 0.01, True, True, tau, simulation.plant.q, v)
    assert safety.state == state and (state == State.RUN or safety.reason == Reason.OVERSPEED)
