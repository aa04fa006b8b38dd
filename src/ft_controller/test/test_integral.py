"""Integral action: what a wrong model leaves of the error goes, and nothing winds up."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.ft_simulation import Simulation
from ft_controller import Arm, ArmError, SpatialArm, State
from ft_controller.integral import Integral
from ft_controller.motion_watch import MotionWatch

ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"


def held_up(ki, **options):
    """A seven-joint arm at rest with a model that is 5 % off."""
    arm = SpatialArm.from_urdf(ROBOTS / "seven.urdf")
    return Simulation(
        arm=arm,
        start=np.full(7, 0.5),
        model_error=0.05,
        watch=MotionWatch(arm, standstill=1e6),
        integral=Integral(arm, ki, 20.0),
        **options,
    )


def error(simulation):
    return float(np.abs(simulation.loop.follower.desired[0] - simulation.plant.q).max())


def test_the_error_of_a_wrong_model_goes():
    without, with_it = held_up(0.0).run(15.0), held_up(50.0).run(15.0)
    assert with_it.state == without.state == State.RUN
    assert error(without) > 1e-2 and error(with_it) < 5e-4


def test_a_stop_does_not_drop_what_the_integral_holds():
    simulation = held_up(50.0).run(15.0)
    where = simulation.plant.q.copy()
    simulation.group.safety.stop(simulation.loop.now())
    simulation.run(5.0)
    assert simulation.state == State.STOPPED
    assert np.abs(simulation.plant.q - where).max() < 1e-3


def test_without_control_it_is_forgotten():
    simulation = held_up(200.0).run(3.0)
    assert np.abs(simulation.loop.integral.term).max() > 0.1
    simulation.run(3.0, lost=True)
    assert (simulation.loop.integral.term == 0.0).all()  # brakes hold the arm


def test_it_grows_with_the_error_up_to_its_limit_and_stands_where_it_must():
    integral = Integral(Arm.four_link(), [10.0, 10.0, 0.0, 10.0], 1.5)
    hold = np.array([False, False, False, True])
    integral.add(np.array([0.1, -0.2, 0.3, 0.4]), 0.5, hold)
    assert integral.term.tolist() == [0.5, -1.0, 0.0, 0.0]
    integral.add(np.array([0.1, -0.2, 0.3, 0.4]), 0.5, hold)
    assert integral.term.tolist() == [1.0, -1.5, 0.0, 0.0]
    integral.forget()
    assert (integral.term == 0.0).all()
    with pytest.raises(ArmError, match="ki"):
        Integral(Arm.four_link(), -1.0)
    with pytest.raises(ArmError, match="integral_limit"):
        Integral(Arm.four_link(), 1.0, -1.0)
