"""Positions: the published sample, golden values, oracles in 40 digits, laws, and bad input."""

import math

import mpmath as mp
import numpy as np
import pytest
from delta_oracles import MM, exact_thetas, mp_fk, mp_ik
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.baselines.published_delta import THETA, published_fk, published_ik
from gpu_kinematics import Delta, Geometry, Limits, Status

ROBOT = Delta(MM, backend="cpu")

# alpha -> position [mm], from the robot's geometry in exact arithmetic.
GOLDEN = [
    ((0.1, 0.2, 0.3), (4.42390040339488, 2.607425472741751, -54.118874381113061)),
    ((0.0, 0.0, 0.0), (0.0, 0.0, -45.5384452962549)),
    ((0.5, 0.5, 0.5), (0.0, 0.0, -69.618460890380031)),
    ((-0.5, 0.2, 0.9), (27.573706406800053, 18.598074103247009, -43.696226385658989)),
    ((1.2, -0.3, 0.4), (-40.076631219286688, 15.952338994432658, -48.913221366032463)),
    ((1.5, 1.5, 1.5), (0.0, 0.0, -106.58056691535072)),
]


# -- the published sample


def printed(values):
    """Six significant digits, as the authors' program prints."""
    return [f"{v:.6g}" for v in values]


def test_published_sample_fk_to_every_printed_digit():
    cut = Delta(Geometry(10.5, 40.0, 68.0, (0.0, THETA, 2 * THETA)), backend="cpu")
    for position in (
        cut.fk([0.1, 0.2, 0.3]).position,
        published_fk((0.1, 0.2, 0.3), 10.5, 40.0, 68.0),
    ):
        assert printed(position) == ["4.4239", "2.60742", "-54.1189"]


def test_exact_theta_rounds_differently_in_the_last_digit():
    assert printed(ROBOT.fk([0.1, 0.2, 0.3]).position) == ["4.4239", "2.60743", "-54.1189"]


def test_published_sample_ik_to_every_printed_digit():
    cut = Delta(Geometry(10.5, 40.0, 68.0, (0.0, THETA, 2 * THETA)), backend="cpu")
    sample = (4.4239, 2.60742, -54.1189)
    for robot in (cut, ROBOT):
        assert printed(robot.ik(sample).angle) == ["0.100001", "0.200001", "0.3"]
    assert printed(published_ik(sample, 10.5, 40.0, 68.0, xp=math)) == [
        "0.100001",
        "0.200001",
        "0.3",
    ]
    assert ROBOT.ik(sample).angle == pytest.approx(
        [0.1000005915, 0.2000006316, 0.3000003683], abs=1e-10
    )


def test_printed_radicand_is_wrong():
    right = published_ik((4.4239, 2.60742, -54.1189), 10.5, 40.0, 68.0)
    wrong = published_ik((4.4239, 2.60742, -54.1189), 10.5, 40.0, 68.0, printed=True)
    assert abs(right[0] - 0.1) < 1e-5 < abs(wrong[0] - 0.1)


def test_published_ik_fails_inside_the_workspace_and_ours_does_not():
    point = np.array([0.0, 0.0, -61.26785454053373])
    with np.errstate(all="ignore"):
        found = published_ik(point, 10.5, 40.0, 68.0, (0.0, 2 * np.pi / 3, 4 * np.pi / 3))
    # 0/0: NaN or digits that mean nothing, depending on the last bit of the input.
    assert not abs(found[0] - 0.33945948491155556) < 1e-9
    assert ROBOT.ik(point).angle == pytest.approx([0.33945948491155556] * 3, abs=1e-15)


# -- golden values and oracles


@pytest.mark.parametrize(("angles", "position"), GOLDEN)
def test_golden_values(angles, position):
    found, status = ROBOT.fk(np.array(angles))
    assert status == 0
    np.testing.assert_allclose(found, position, atol=1e-13, rtol=0)
    np.testing.assert_allclose(ROBOT.ik(np.array(position)).angle, angles, atol=1e-13, rtol=0)


@pytest.mark.parametrize(("angles", "position"), GOLDEN)
def test_golden_values_against_mpmath(angles, position):
    exact = mp_fk(10.5, 40, 68, exact_thetas(), angles, position)
    assert max(abs(float(e - mp.mpf(p))) for e, p in zip(exact, position, strict=True)) < 1e-13


def test_random_robots_against_mpmath():
    rng = np.random.default_rng(3)
    for _ in range(25):
        R, La, Lb = rng.uniform(-10, 30), rng.uniform(20, 60), rng.uniform(70, 120)
        thetas = np.array([0.0, 2.0, 4.2]) + rng.uniform(-0.3, 0.3, 3)
        robot = Delta(Geometry(R, La, Lb, thetas), backend="cpu")
        angles = rng.uniform(-0.5, 1.0, 3)
        found, status = robot.fk(angles)
        assert status == 0
        exact = mp_fk(R, La, Lb, [mp.mpf(float(t)) for t in thetas], angles, found)
        np.testing.assert_allclose(found, [float(v) for v in exact], atol=3e-13, rtol=0)
        back = robot.ik(found).angle
        for i in range(3):
            one = mp_ik(R, La, Lb, mp.mpf(float(thetas[i])), found, back[i])
            assert abs(back[i] - float(one)) < 2e-14


def test_other_elbows_of_the_sample():
    angle = ROBOT.ik(np.array(GOLDEN[0][1]), elbows=7).angle
    np.testing.assert_allclose(angle, [-3.018, -2.960, -2.902], atol=5e-4)


# -- laws

lengths = st.tuples(
    st.floats(-0.02, 0.05), st.floats(0.02, 0.1), st.floats(1.1, 2.5), st.floats(0.5, 1.5)
)


@given(lengths, st.lists(st.floats(-0.6, 1.2), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_ik_of_fk_and_fk_of_ik(dimensions, angles, seed):
    R, La, ratio, _ = dimensions
    rng = np.random.default_rng(seed)
    thetas = np.array([0.0, 2.1, 4.2]) + rng.uniform(-0.4, 0.4, 3)
    robot = Delta(Geometry(R, La, ratio * (La + abs(R)), thetas), backend="cpu")
    position, status = robot.fk(np.array(angles))
    assume(status == 0)
    measures = robot.measures(np.array(angles))
    assume(abs(measures.serial) > 1e-3 and abs(measures.parallel) > 1e-3)
    found = robot.ik_all(position).angle
    gap = np.abs(np.angle(np.exp(1j * (found - np.array(angles))))).min(axis=0)
    assert gap.max() < 1e-10
    elbows = sum(
        1 << i for i in range(3) if abs(found[0][i] - angles[i]) > abs(found[7][i] - angles[i])
    )
    again = robot.fk(robot.ik(position, elbows=elbows).angle)
    both = robot.fk_both(robot.ik(position, elbows=elbows).angle).position
    assert again.status == 0
    assert np.abs(both - position).max(axis=1).min() < 1e-11


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 5e-15), ("float32", 1e-6)])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_round_trip(dtype, bound, scale):
    robot = Delta(Geometry(10.5 * scale, 40 * scale, 68 * scale), backend="cpu")
    angles = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 400_000)).astype(dtype)
    position, status = robot.fk(angles)
    assert not status.any() and position.dtype == angles.dtype
    assert np.abs(robot.ik(position).angle - angles).max() <= bound


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_round_trip_at_the_published_zero_over_zero(dtype):
    tolerance = 5e-15 if dtype == "float64" else 1e-6
    line = np.zeros((3, 2001), dtype)
    line[2] = -61.26785454053373 + np.linspace(-1e-3, 1e-3, 2001)
    angle = ROBOT.ik(line).angle
    assert np.isfinite(angle).all()
    again = ROBOT.ik(ROBOT.fk(angle).position).angle
    assert np.abs(again - angle).max() <= tolerance


@given(st.lists(st.floats(-0.6, 1.2), min_size=3, max_size=3))
def test_turning_the_robot_by_120_degrees(angles):
    x, y, z = ROBOT.fk(np.array(angles)).position
    turned = ROBOT.fk(np.array([angles[2], angles[0], angles[1]])).position
    c, s = math.cos(2 * math.pi / 3), math.sin(2 * math.pi / 3)
    np.testing.assert_allclose(turned, [c * x - s * y, s * x + c * y, z], atol=1e-11)


def test_other_assembly_mirrors_in_the_plane_of_the_elbows():
    angles = np.array([0.3, 0.3, 0.3])
    down, up = ROBOT.fk_both(angles).position
    plane = -40 * math.sin(0.3)
    assert down[2] < plane < up[2]
    assert down[2] + up[2] == pytest.approx(2 * plane, abs=1e-12)
    for position in (down, up):
        elbow = np.array([10.5 + 40 * math.cos(0.3), 0.0, plane])
        assert np.linalg.norm(position - elbow) == pytest.approx(68.0, abs=1e-12)


def test_order_of_arms_does_not_turn_the_platform_over():
    clockwise = Delta(Geometry(10.5, 40, 68, (0.0, 4 * np.pi / 3, 2 * np.pi / 3)), backend="cpu")
    np.testing.assert_allclose(
        clockwise.fk([0.1, 0.3, 0.2]).position, ROBOT.fk([0.1, 0.2, 0.3]).position, atol=1e-12
    )


@pytest.mark.parametrize("theta", [(np.pi / 2, -np.pi / 2, 0.3), (-np.pi / 2, 0.5, 2.6)])
def test_theta_of_ninety_degrees(theta):
    robot = Delta(Geometry(10.5, 40, 68, theta), backend="cpu")
    angles = np.array([0.2, 0.25, 0.3])
    position, status = robot.fk(angles)
    assert status == 0
    exact = mp_fk(10.5, 40, 68, [mp.mpf(t) for t in theta], angles, position)
    np.testing.assert_allclose(position, [float(v) for v in exact], atol=1e-11)
    np.testing.assert_allclose(robot.ik(position).angle, angles, atol=1e-12)


def test_radius_zero_and_negative():
    for R in (0.0, -5.0):
        robot = Delta(Geometry(R, 40, 68), backend="cpu")
        angles = np.array([0.1, 0.4, 0.2])
        position, status = robot.fk(angles)
        assert status == 0
        np.testing.assert_allclose(robot.ik(position).angle, angles, atol=1e-13)


# -- where there is no solution


def test_unreachable_says_which_arm_and_why():
    angle, status = ROBOT.ik(np.array([0.0, 0.0, -108.0]))
    assert np.isnan(angle).all() and status == 0x111
    angle, status = ROBOT.ik(np.array([-80.0, 0.0, -40.0]))
    assert status == 0x110 and np.isnan(angle[1:]).all() and np.isfinite(angle[0])
    near = Delta(Geometry(0.0, 20.0, 68.0), backend="cpu").ik(np.array([0.0, 0.0, -40.0]))
    assert near.status == 0x222 and np.isnan(near.angle).all()


def test_one_arm_out_of_reach_leaves_the_others():
    position = np.array([-45.0, 0.0, -94.0])
    angle, status = ROBOT.ik(position)
    assert status == Status.TOO_FAR and np.isnan(angle[0]) and np.isfinite(angle[1:]).all()


def test_stretched_arm_on_the_axis():
    z = -math.sqrt((40 + 68) ** 2 - 10.5**2)
    assert z == pytest.approx(-107.48837146, abs=1e-8)
    angle, status = ROBOT.ik(np.array([0.0, 0.0, z * (1 - 1e-12)]))
    assert status == 0 and angle == pytest.approx([1.66817236] * 3, abs=1e-5)
    assert ROBOT.ik(np.array([0.0, 0.0, z * (1 + 1e-12)])).status == 0x111


def test_rods_that_cannot_meet():
    short = Delta(Geometry(10.5, 40.0, 30.0), backend="cpu")
    position, status = short.fk(np.array([0.0, 0.0, 0.0]))
    assert np.isnan(position).all() and status == Status.NO_ASSEMBLY


def test_elbows_on_one_line_are_singular():
    flat = Delta(Geometry(10.5, 40.0, 68.0, (0.0, 0.0, 0.0)), backend="cpu")
    position, status = flat.fk(np.array([0.2, 0.2, 0.2]))
    assert status == Status.SINGULAR and np.isnan(position).all()


def test_published_h2_zero_is_solved():
    # r1 r2 + r2 r3 + r3 r1 = 0 with r = R + La cos a: the published formula divides by zero here.
    angles = np.array([0.0, 0.0, math.acos((-50.5 / 2 - 10.5) / 40)])
    position, status = ROBOT.fk(angles)
    assert status == 0
    exact = mp_fk(10.5, 40, 68, exact_thetas(), angles, position)
    np.testing.assert_allclose(position, [float(v) for v in exact], atol=1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300, 8193.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bad_numbers_give_nan_and_a_bit(bad, dtype):
    with np.errstate(over="ignore"):
        angles = np.array([[0.1, 0.1], [bad, 0.2], [0.3, 0.3]]).astype(dtype)
    position, status = ROBOT.fk(angles)
    assert status[0] & Status.INVALID and np.isnan(position[:, 0]).all()
    assert status[1] == 0 and np.isfinite(position[:, 1]).all()
    angle, status = ROBOT.ik(angles)
    assert status[0] != 0 and np.isnan(angle[:, 0]).any()


def test_angles_of_many_turns():
    angles = np.array([0.1, 0.2, 0.3])
    turned = angles + 2 * np.pi * np.array([100, -500, 1300])
    np.testing.assert_allclose(ROBOT.fk(turned).position, ROBOT.fk(angles).position, atol=1e-9)


def test_joint_limits_are_marked_and_values_kept():
    robot = Delta(MM, Limits([-0.5, 0.15, -0.5], [0.05, 1.0, 0.35]), backend="cpu")
    result = robot.ik(robot.fk(np.array([0.1, 0.1, 0.3])).position)
    assert result.status == Status.ABOVE_LIMIT | (Status.BELOW_LIMIT << 4)
    assert np.isfinite(result.angle).all()
    assert robot.fk(np.array([0.1, 0.1, 0.4])).status == 0x8 | 0x40 | 0x800
