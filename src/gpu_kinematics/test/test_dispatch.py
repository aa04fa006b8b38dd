"""Settings of calls, the short way of small batches, what others put together themselves."""

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import CpuBackend, Delta, Geometry, Limits

ROBOT = Delta(MM, backend="cpu")
ANGLES = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 1000))
TRUE = ROBOT.fk(ANGLES).position


@pytest.mark.parametrize(
    "make",
    [
        lambda: Delta(MM, backend="gpu"),
        lambda: Delta(MM, backend="cpu", mode="loose"),
        lambda: Delta(MM, backend="cpu", layout="xyz"),
        lambda: Delta(MM, backend="cpu", threads=-1),
        lambda: Delta("robot", backend="cpu"),
        lambda: CpuBackend(threads=True),
        lambda: Limits(1.0, -1.0),
        lambda: Limits([0.0, 1.0], 2.0),
        lambda: ROBOT.fk(ANGLES, platform="side"),
        lambda: ROBOT.fk(ANGLES, layout="xyz"),
        lambda: ROBOT.ik(ANGLES, elbows=8),
        lambda: ROBOT.control(ANGLES, ANGLES, gain=-1.0, max_rate=1.0),
        lambda: ROBOT.control(ANGLES, ANGLES[:, :3], gain=1.0, max_rate=1.0),
        lambda: ROBOT.forward_motion(ANGLES, ANGLES.astype(np.float32)),
    ],
)
def test_bad_settings_are_refused(make):
    from kin_core.errors import InvalidInput

    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 7, 4095, 4097])
def test_small_and_large_batches_give_the_same_bits(n, dtype):
    """Below 4096 robots a call takes the short way; with an array for its results it does not."""
    angles = np.random.default_rng(n).uniform(-0.8, 1.4, (3, n)).astype(dtype)
    for status in (True, False):
        short = ROBOT.fk(angles, status=status)
        long = ROBOT.fk(angles, out=np.empty_like(angles), status=status)
        assert same_bits(short.position, long.position)
        assert (short.status is None) == (not status)
        assert not status or (short.status == long.status).all()


def test_constants_are_kept_within_bounds():
    for gain in np.linspace(1.0, 2.0, 600):
        rate = ROBOT.control(ANGLES[:, :3], TRUE[:, :3], gain=gain, max_rate=1.0).rate
        assert np.abs(rate).max() < 1e-9


def test_head_of_a_call():
    geometry, options = ROBOT.head(np.dtype(np.float64), 5)
    assert geometry.array.shape == (13, 1) and geometry.step == 0 and options.array.shape == (11,)
    each = Delta(Geometry(np.full(5, 10.5), 40.0, 68.0), backend="cpu")
    assert each.head(np.dtype(np.float32), 5)[0].step == 1
