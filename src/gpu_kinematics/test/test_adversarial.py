"""What every result keeps, on geometries and numbers made to break it.

The closure |p - c_i| = L_B is stated a second time in extended precision; nothing of the kernels is
used for it.
"""

import numpy as np
import pytest

from gpu_kinematics import Delta, Geometry, Limits, Status, explain

NO_POSITION = Status.INVALID | Status.SINGULAR | Status.NO_ASSEMBLY | Status.BAD_GEOMETRY
ODD = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 8192.0, 8193.0, 1e-160, 1e25])
N = 20_000


def odd_robots(rng, n, on_bad="mask"):
    """Lengths over eight decades, radii of any sign, arms in any directions; some unusable."""
    size = 10.0 ** rng.uniform(-3.5, 3.5, n)
    upper = size * 10.0 ** rng.uniform(-0.5, 0.5, n)
    lower = size * 10.0 ** rng.uniform(-0.5, 0.5, n)
    radius = size * rng.choice([0.0, 1e-9, 0.3, -0.3, 1.0, 3.0], n)
    theta = rng.uniform(-4, 4, (3, n))
    even = rng.random(n) < 0.5
    theta[:, even] = np.array([[0.0], [2.0943951], [4.1887902]])
    if on_bad == "mask":
        broken = rng.random(n) < 0.05
        upper[broken] = rng.choice([np.nan, 0.0, -1.0, 1e-300, 1e9, np.inf], broken.sum())
    return Geometry(radius, upper, lower, theta, on_bad=on_bad)


def with_odd(rng, values, share=0.1):
    hit = rng.random(values.shape) < share
    out = values.copy()
    out[hit] = rng.choice(ODD, hit.sum())
    return out


def long(x):
    return np.asarray(x, np.longdouble)


def elbows(geometry, angle):
    """The ends of the driven arms, (3 arms, 3, N), in extended precision."""
    R, La = long(geometry.radius), long(geometry.upper)
    th, a = long(geometry.theta), long(angle)
    r = R + La * np.cos(a)
    return np.stack([r * np.cos(th), r * np.sin(th), -La * np.sin(a)], axis=1)


def open_by(geometry, angle, position):
    """How far each rod is from its length, as a share of the robot's size, (3, N)."""
    gap = long(position)[None] - elbows(geometry, angle)
    size = np.abs(long(geometry.radius)) + geometry.upper + geometry.lower
    return np.abs(np.sqrt((gap**2).sum(axis=1)) - geometry.lower) / size


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-11), ("float32", 5e-3)])
def test_a_position_is_a_solution_or_nan_with_a_reason(dtype, bound):
    rng = np.random.default_rng(1)
    geometry = odd_robots(rng, N)
    robot = Delta(geometry, backend="cpu")
    with np.errstate(over="ignore"):
        angle = with_odd(rng, rng.uniform(-4, 4, (3, N)), 0.03).astype(dtype)
    for position, status in (robot.fk(angle), *zip(*robot.fk_both(angle), strict=True)):
        status = np.asarray(status)
        none = (status & int(NO_POSITION)) != 0
        finite = np.isfinite(position)
        assert (finite.all(axis=0) == ~none).all()
        assert (finite.any(axis=0) == ~none).all()
        with np.errstate(all="ignore"):
            missed = open_by(geometry, angle, position)[:, ~none].max(axis=0)
        assert np.quantile(missed, 0.999) <= bound
        assert (~none).sum() > N // 20 and none.sum() > N // 20
    assert {bit for bit in (4096, 8192, 16384, 32768) if (status & bit).any()} >= {
        4096,
        16384,
        32768,
    }
    assert all(explain(int(m)) != "ok" for m in np.unique(status[none]))


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("choice", range(8))
def test_an_angle_is_a_solution_or_nan_with_a_reason(dtype, bound, choice):
    rng = np.random.default_rng(2)
    geometry = odd_robots(rng, N)
    robot = Delta(geometry, backend="cpu")
    size = np.abs(geometry.radius) + np.nan_to_num(geometry.upper, posinf=1.0) + geometry.lower
    with np.errstate(over="ignore"):
        position = with_odd(rng, rng.uniform(-1, 1, (3, N)) * size, 0.03).astype(dtype)
    angle, status = robot.ik(position, elbows=choice)
    whole = (status & int(Status.INVALID | Status.BAD_GEOMETRY)) != 0
    with np.errstate(all="ignore"):
        missed = open_by(geometry, angle, position)
    for arm in range(3):
        out = (status & (0x3 << (4 * arm))) != 0
        assert (np.isfinite(angle[arm]) == ~(out | whole)).all(), arm
        assert np.quantile(missed[arm][~(out | whole)], 0.999) <= bound
        assert (np.abs(angle[arm][~(out | whole)]) <= np.pi + 1e-6).all()
        # Against the distances themselves, where they are not on the edge.
        with np.errstate(all="ignore"):
            th = long(geometry.theta)[arm]
            x = long(position[0]) * np.cos(th) + long(position[1]) * np.sin(th)
            y = long(position[1]) * np.cos(th) - long(position[0]) * np.sin(th)
            flat = np.sqrt((x - geometry.radius) ** 2 + long(position[2]) ** 2)
            reach = np.sqrt(long(geometry.lower) ** 2 - y**2)  # of the rod in the arm's plane
            far = flat - (geometry.upper + reach)
            near = np.abs(geometry.upper - reach) - flat
        sure = ~whole & np.isfinite(flat) & (np.abs(long(position)).max(axis=0) < 1e5)
        edge = (1e-6 if dtype == "float64" else 1e-2) * size
        within = sure & (far < -edge) & (near < -edge) & np.isfinite(reach)
        beyond = sure & ((far > edge) | (near > edge) | (y**2 > (geometry.lower + edge) ** 2))
        assert not (out & within).any(), arm
        assert not (~out & beyond).any(), arm
        assert within.sum() > N // 50 and beyond.sum() > N // 50


def test_the_eight_angles_are_every_solution():
    """Arm by arm the closure changes its sign only at angles among them."""
    rng = np.random.default_rng(3)
    n = 400
    geometry = odd_robots(rng, n, on_bad="raise")
    robot = Delta(geometry, backend="cpu")
    size = np.abs(geometry.radius) + geometry.upper + geometry.lower
    position = rng.uniform(-0.7, 0.7, (3, n)) * size
    found = robot.ik_all(position).angle  # (8, 3, n)
    assert found.shape == (8, 3, n)
    scan = np.linspace(-np.pi, np.pi, 2001)
    roots = 0
    for arm in range(3):
        th = geometry.theta[arm]
        r = geometry.radius + geometry.upper * np.cos(scan)[:, None]
        gap = np.stack(
            [
                position[0] - r * np.cos(th),
                position[1] - r * np.sin(th),
                position[2] + geometry.upper * np.sin(scan)[:, None],
            ]
        )
        f = np.sqrt((gap**2).sum(axis=0)) - geometry.lower
        for at, k in np.argwhere(np.signbit(f[1:]) != np.signbit(f[:-1])):
            away = np.abs(np.angle(np.exp(1j * (found[:, arm, k] - scan[at])))).min()
            assert away <= 2 * np.pi / 2000, (arm, k)
            roots += 1
        lone = np.isfinite(found[:, arm]).all(axis=0)
        assert (np.isfinite(found[:, arm]).any(axis=0) == lone).all()
    assert roots > 300
    # The bits of the choice are the three arms': each takes one of two angles.
    for choice in range(8):
        for arm in range(3):
            same = found[7 if choice >> arm & 1 else 0, arm]
            np.testing.assert_array_equal(found[choice, arm], same)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lengths_in_another_unit_give_the_same_bits(dtype):
    """A power of two times the lengths: the same angles and statuses, scaled positions."""
    rng = np.random.default_rng(4)
    first = odd_robots(rng, N, on_bad="raise")
    angle = rng.uniform(-1, 1.5, (3, N)).astype(dtype)
    p1, s1 = Delta(first, backend="cpu").fk(angle)
    a1, t1 = Delta(first, backend="cpu").ik(p1)
    for factor in (0.25, 2.0):
        other = Geometry(
            first.radius * factor, first.upper * factor, first.lower * factor, first.theta,
            on_bad="mask",
        )  # fmt: skip
        p2, s2 = Delta(other, backend="cpu").fk(angle)
        a2, t2 = Delta(other, backend="cpu").ik(p2)
        kept = (s2 & int(Status.BAD_GEOMETRY)) == 0
        assert kept.sum() > N // 2
        np.testing.assert_array_equal(s1[kept], s2[kept])
        np.testing.assert_array_equal(p1[:, kept] * np.dtype(dtype).type(factor), p2[:, kept])
        np.testing.assert_array_equal(t1[kept], t2[kept])
        np.testing.assert_array_equal(a1[:, kept], a2[:, kept])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_call_gives_a_number_for_invalid_input(dtype):
    """No output of a robot whose mask says that its input is invalid is a finite number."""
    rng = np.random.default_rng(6)
    n = 4000
    robot = Delta(odd_robots(rng, n), backend="cpu")
    with np.errstate(over="ignore"):
        a, p = (with_odd(rng, rng.uniform(-1.5, 1.5, (3, n)), 0.1).astype(dtype) for _ in range(2))
    w, e = rng.uniform(-3, 3, (2, 3, n)).astype(dtype)
    for result in (
        robot.fk(a), robot.fk_both(a), robot.jacobian(a), robot.measures(a),
        robot.forward_motion(a, w, e), robot.ik(p), robot.ik_all(p), robot.dexterity(p),
    ):  # fmt: skip
        masks = np.asarray(result.status).reshape(-1, n)
        refused = (masks & int(Status.INVALID | Status.BAD_GEOMETRY)) != 0
        assert refused.any()
        for name, values in result._asdict().items():
            if name == "status" or values is None:
                continue
            values = np.asarray(values).reshape(len(masks), -1, n)
            for row, bad in zip(values, refused, strict=True):
                assert not np.isfinite(row[:, bad]).any(), (type(result).__name__, name)


def test_limits_mark_and_change_nothing():
    rng = np.random.default_rng(5)
    geometry = odd_robots(rng, N)
    angle = rng.uniform(-1.5, 1.5, (3, N))
    free = Delta(geometry, Limits(-np.inf, np.inf), backend="cpu")
    tight = Delta(geometry, Limits([-0.5, -0.1, 0.2], [0.5, 0.1, 0.2]), backend="cpu")
    p, s = free.fk(angle)
    q, t = tight.fk(angle)
    np.testing.assert_array_equal(p, q)
    np.testing.assert_array_equal(s, t & ~np.uint16(Status.LIMITS))
    low, high = np.array([-0.5, -0.1, 0.2]), np.array([0.5, 0.1, 0.2])
    good = (s & int(Status.INVALID | Status.BAD_GEOMETRY)) == 0
    for arm in range(3):
        np.testing.assert_array_equal(
            (t[good] & (0x4 << 4 * arm)) != 0, angle[arm][good] < low[arm]
        )
        np.testing.assert_array_equal(
            (t[good] & (0x8 << 4 * arm)) != 0, angle[arm][good] > high[arm]
        )
