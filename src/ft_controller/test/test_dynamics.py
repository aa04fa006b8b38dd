import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import Arm, dynamics

pin = pytest.importorskip("pinocchio")
from benchmarks.baselines.ft_pinocchio import pinocchio_model  # noqa: E402 (needs pinocchio)

Q = np.array([0.1, 0.2, 0.3, 0.4])
V = np.array([1.0, -0.5, 0.25, -0.125])


def lagrange(arm, q, v):
    """The Lagrangian's M and N by the book, in absolute angles: the oracle, slow and plain.

    A_ij = h_ij cos(phi_i - phi_j), N_i = sum_j h_ij sin(phi_i - phi_j) phidot_j^2.
    """
    n = arm.n
    m, l, lc = arm.mass, arm.length, arm.com
    outer = np.array([m[i + 1 :].sum() for i in range(n)])
    h = np.zeros((n, n))
    for i in range(n):
        h[i, i] = arm.inertia[i] + m[i] * lc[i] ** 2 + l[i] ** 2 * outer[i]
        for j in range(i + 1, n):
            h[i, j] = h[j, i] = l[i] * (m[j] * lc[j] + l[j] * outer[j])
    phi, rate = np.cumsum(q), np.cumsum(v)
    difference = phi[:, None] - phi[None, :]
    a = h * np.cos(difference)
    bias = (h * np.sin(difference) * rate[None, :] ** 2).sum(axis=1)
    below = np.triu(np.ones((n, n)))  # suffix sums
    return below @ a @ below.T, below @ bias


def test_golden_inertia_bias_and_torque():
    # Computed with pinocchio 4.1 and with the Lagrangian in mpmath for the default arm.
    arm = Arm.four_link()
    inertia, bias = arm.inertia_matrix(Q), arm.bias(Q, V)
    assert inertia[0, 0] == pytest.approx(5.5645095901454145, rel=2e-15)
    assert inertia[0, 1] == pytest.approx(2.554761069774319, rel=2e-15)
    assert inertia[3, 3] == pytest.approx(0.0133333333333333, rel=1e-14)
    golden = [0.1971135903433969, 0.33801660311540677, 0.20917533466222138, 0.05217995688020956]
    assert bias == pytest.approx(golden, rel=2e-15)
    tau = dynamics.computed_torque(arm.links, dynamics.joints(Q, V, np.full(4, 0.5)))
    golden = [226.55314061998874, 114.63863050894949, 38.59558637959735, 5.748465077806805]
    assert tau == pytest.approx(golden, rel=2e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20, 50])
def test_agrees_with_the_lagrangian_by_the_book(n):
    random = np.random.default_rng(n)
    arm = Arm.rods(n).perturbed(n, 0.3)
    for _ in range(10):
        q, v = random.uniform(-3, 3, n), random.uniform(-2, 2, n)
        m, bias = lagrange(arm, q, v)
        assert np.abs(arm.inertia_matrix(q) - m).max() <= 1e-14 * np.abs(m).max()
        scale = m.max() * np.abs(np.cumsum(v)).max() ** 2  # the size of what is summed
        assert np.abs(arm.bias(q, v) - bias).max() <= 1e-14 * scale


@pytest.mark.parametrize("n", [4, 5, 7, 10, 16, 20, 30, 40, 50])
def test_torque_within_2e15_of_pinocchio(n):
    # The states of a tracking controller: it lags behind its goal and is pulled after it.
    random = np.random.default_rng(2)
    arm = Arm.rods(n)
    model, data = pinocchio_model(arm)
    for _ in range(20):
        q, v = random.uniform(-1, 1, n), random.uniform(-0.1, 0.1, n)
        qd = q + random.uniform(0.0, 0.1, n)
        a = 100.0 * (qd - q) - 20.0 * v
        theirs = pin.rnea(model, data, q, v, a)
        scale = np.abs(theirs).max()
        ours = dynamics.computed_torque(arm.links, dynamics.joints(q, v, qd))
        assert np.abs(ours - theirs).max() <= 2e-15 * scale
        assert np.abs(arm.inverse_dynamics(q, v, a) - theirs).max() <= 2e-15 * scale


@pytest.mark.parametrize("n", [1, 4, 9])
def test_gravity_and_friction_agree_with_pinocchio(n):
    random = np.random.default_rng(n)
    arm = Arm.rods(n, friction=0.3, gravity=9.81)
    model, data = pinocchio_model(arm)
    for _ in range(20):
        q, v, a = random.uniform(-2, 2, (3, n))
        theirs = pin.rnea(model, data, q, v, a) + arm.friction * v
        scale = np.abs(theirs).max()
        assert np.abs(arm.inverse_dynamics(q, v, a) - theirs).max() <= 1e-14 * scale
        both = arm.inertia_matrix(q) @ a + arm.bias(q, v)
        assert np.abs(both - theirs).max() <= 1e-14 * scale
        kinetic = pin.computeKineticEnergy(model, data, q, v)
        potential = pin.computePotentialEnergy(model, data, q)
        assert arm.energy(q, v) == pytest.approx(kinetic + potential, rel=1e-12)
        back = arm.forward_dynamics(q, v, theirs)
        assert back == pytest.approx(a, rel=1e-8, abs=1e-8)


def test_long_arm_is_closer_to_the_truth_than_rounding_of_its_angles():
    n = 50
    arm = Arm.rods(n)
    random = np.random.default_rng(0)
    q = random.uniform(-np.pi, np.pi, n)
    mpmath.mp.dps = 40
    phi = mpmath.mpf(0)
    worst = 0.0
    tip = mpmath.mpf(0)
    for i in range(n):
        phi += mpmath.mpf(q[i])
        tip += mpmath.mpf(arm.length[i]) * mpmath.cos(phi)
    worst = abs(float(tip - mpmath.mpf(arm.end_effector(q)[0])))
    assert worst < 1e-14


angles = st.floats(-10.0, 10.0, allow_nan=False)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000), st.data())
def test_inertia_is_symmetric_and_positive_definite(n, seed, data):
    arm = Arm.rods(n).perturbed(seed, 0.5)
    q = np.array(data.draw(st.lists(angles, min_size=n, max_size=n)))
    m = arm.inertia_matrix(q)
    assert (m == m.T).all()
    assert np.linalg.eigvalsh(m)[0] > 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000))
def test_turning_the_whole_arm_changes_nothing(n, seed):
    random = np.random.default_rng(seed)
    arm = Arm.rods(n)
    q, v = random.uniform(-3, 3, (2, n))
    turned = q.copy()
    turned[0] += 1.0
    assert arm.inertia_matrix(turned) == pytest.approx(arm.inertia_matrix(q), rel=1e-9, abs=1e-12)
    assert arm.bias(turned, v) == pytest.approx(arm.bias(q, v), rel=1e-8, abs=1e-10)


def test_coriolis_does_no_work():
    # d/dt (qdot' M qdot / 2) = qdot' tau with tau = 0, so Mdot - 2C is skew: by differences.
    arm = Arm.rods(5)
    random = np.random.default_rng(3)
    for _ in range(10):
        q, v = random.uniform(-2, 2, (2, 5))
        step = 1e-6
        rate = (arm.inertia_matrix(q + step * v) - arm.inertia_matrix(q - step * v)) / (2 * step)
        assert v @ (0.5 * rate @ v - arm.bias(q, v)) == pytest.approx(0.0, abs=1e-7)


def test_a_row_has_the_same_bits_whoever_computes_it():
    random = np.random.default_rng(5)
    for n in (1, 3, 4, 16):
        arm = Arm.rods(n)
        q, v = random.uniform(-2, 2, (2, n))
        whole, bias = dynamics.inertia_and_bias(arm.links, q, v)
        work = dynamics.make_work(arm.links)
        for i in reversed(range(n)):
            dynamics.outer_sums(arm.links, q, v, work)
            row = np.empty(n)
            dynamics.inertia_row(work, i, row)
            assert row.tobytes() == whole[i].tobytes()
            assert work[i]["bias"] == bias[i]


@pytest.mark.parametrize(
    "field, change",
    [
        ("mass", {"mass": [1.0, -1.0]}),
        ("mass", {"mass": [np.nan, 1.0]}),
        ("length", {"length": [1.0]}),
        ("length", {"length": [1.0, 0.0]}),
        ("com", {"com": [0.1, -0.1]}),
        ("inertia", {"inertia": [0.0, 0.0], "com": [0.0, 0.0]}),
        ("friction", {"friction": -1.0}),
        ("gravity", {"gravity": np.inf}),
    ],
)
def test_senseless_arms_are_refused_by_field(field, change):
    from ft_controller import ArmError

    with pytest.raises(ArmError, match=field):
        Arm.of(**({"mass": [1.0, 1.0], "length": [1.0, 1.0]} | change))


def test_too_many_links_are_refused():
    from ft_controller import TooLarge

    with pytest.raises(TooLarge):
        Arm.rods(1000)
