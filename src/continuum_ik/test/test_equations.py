"""Jacobians against complex steps, and laws of symmetry."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from continuum_ik import ContinuumRobot, ContinuumSolver, Load, Rod, make_pose
from continuum_ik.equations import solve_linear
from continuum_ik.layout import PLATFORM
from continuum_ik.path import linearise, load
from continuum_ik.rod import RODS

TILTED = Rotation.from_rotvec([0.15, -0.1, 0.2]).as_matrix()


def complex_rod(rod, n, m0, L, steps=150):
    """Reduced rod in complex arithmetic, classical Runge-Kutta with many steps."""
    EI, EA, GA = rod.bending_stiffness, rod.axial_stiffness, rod.shear_stiffness
    c = 1.0 / EA - 1.0 / GA

    def slope(y):
        t, m = y[:3], y[3:6]
        f = t * (1.0 + c * (n @ t))
        return np.concatenate([np.cross(m, t) / EI, np.cross(n, f), f + n / GA])

    y = np.concatenate([[0, 0, 1], m0, [0], np.zeros(3)]).astype(complex)
    h = L / steps
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[6:9], y[:3], y[3:6]


def complex_jacobian(robot, pose, y):
    """The 36 x 36 Jacobian, unknowns (n, m0, L) rod by rod, by complex steps: exact to rounding."""
    RE = pose[3:].reshape(3, 3)
    J = np.zeros((36, 36))
    for i in range(6):
        arm = RE @ robot.platform[i]
        for j in range(6):
            x = y[i].astype(complex)
            x[j] += 1e-30j
            p, t, m = complex_rod(robot.rods[i], x[:3], x[3:5], x[5])
            J[5 * i : 5 * i + 3, 6 * i + j] = p.imag / 1e-30
            J[5 * i + 3 : 5 * i + 5, 6 * i + j] = 2.0 * (RE.T @ t).imag[:2] / 1e-30
            J[30:33, 6 * i + j] = -x[:3].imag / 1e-30
            J[33:, 6 * i + j] = -(m + np.cross(arm, x[:3])).imag / 1e-30
    return J


def unknowns(rows):
    return rows[:, :RODS].T.copy()


@pytest.mark.parametrize(
    "pose", [make_pose((0.0, 0.02, 0.48)), make_pose((0.03, -0.05, 0.45), TILTED)]
)
def test_arrowhead_solves_with_the_exact_jacobian(tight, pose):
    """The chord step is J^-1 r: compared with the dense Jacobian from complex steps."""
    tight.solve(pose).check()
    w = tight.named[()]
    load(w, w.answer)
    assert linearise(w)
    J = complex_jacobian(tight.robot, pose, unknowns(w.rods.y))
    rng = np.random.default_rng(5)
    scale = np.concatenate([np.tile([1e-3] * 3 + [1e-2] * 2, 6), [1e-2] * 3, [1e-3] * 3])
    for _ in range(5):
        r = rng.normal(size=36) * scale
        w.residual[:] = 0.0
        w.residual[:5, :RODS] = r[:30].reshape(6, 5).T
        w.residual[PLATFORM, :6] = r[30:]
        solve_linear(w)
        ours = unknowns(w.delta).ravel()
        theirs = np.linalg.solve(J, r)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-3 * np.abs(theirs).max())


@pytest.mark.parametrize(
    "pose", [make_pose((0.0, 0.02, 0.48)), make_pose((0.03, -0.05, 0.45), TILTED)]
)
def test_length_jacobian_is_exact(tight, pose):
    """dL/dpose from fourth-order lanes against the complex-step Jacobian."""
    tight.tolerance = 1e-18
    tight.solve(pose).check()
    y = unknowns(tight.named.answer.y)
    J = complex_jacobian(tight.robot, pose, y)
    RE = pose[3:].reshape(3, 3)
    D = np.zeros((36, 6))
    for i in range(6):
        arm = RE @ tight.robot.platform[i]
        _, t, _ = complex_rod(tight.robot.rods[i], y[i, :3], y[i, 3:5], y[i, 5])
        D[5 * i : 5 * i + 3, :3] = -np.eye(3)
        for j in range(3):
            e = np.eye(3)[j]
            D[5 * i : 5 * i + 3, 3 + j] = -np.cross(e, arm)
            D[5 * i + 3 : 5 * i + 5, 3 + j] = -2.0 * (RE.T @ np.cross(e, t.real))[:2]
            D[33:, 3 + j] -= np.cross(np.cross(e, arm), y[i, :3])
    dy = -np.linalg.solve(J, D)
    theirs = dy.reshape(6, 6, 6)[:, 5]
    ours = tight.analyse()
    np.testing.assert_allclose(ours.length_jacobian, theirs, rtol=0, atol=1e-7)
    # The fold margin is the smallest singular value of the same Jacobian, scaled.
    L, EI = tight.robot.home_height, tight.robot.rods[0].bending_stiffness
    rows = np.concatenate([np.tile([1 / L] * 3 + [1, 1], 6), [L**2 / EI] * 3, [L / EI] * 3])
    columns = np.tile([EI / L**2] * 3 + [EI / L] * 2 + [L], 6)
    smallest = np.linalg.svd(rows[:, None] * J * columns, compute_uv=False)[-1]
    assert ours.fold_margin == pytest.approx(smallest, rel=1e-4)
    assert tight.fold_margin() == pytest.approx(smallest, rel=1e-2)


def test_symmetric_pose_gives_symmetric_legs(tight):
    lengths = tight.solve(make_pose((0.0, 0.0, 0.5))).check().lengths
    np.testing.assert_allclose(lengths, lengths[0], rtol=0, atol=1e-9)
    # The plane x z maps rods (0, 1), (2, 5) and (3, 4) to each other.
    one = tight.solve(make_pose((0.03, 0.02, 0.5))).check().lengths
    other = tight.solve(make_pose((0.03, -0.02, 0.5))).check().lengths
    np.testing.assert_allclose(one, other[[1, 0, 5, 4, 3, 2]], rtol=0, atol=1e-9)


def test_turning_by_a_third_of_a_circle_permutes_the_legs(tight):
    R = Rotation.from_rotvec([0, 0, 2 * np.pi / 3]).as_matrix()
    tilt = Rotation.from_rotvec([0.1, 0.05, 0.0]).as_matrix()
    one = tight.solve(make_pose((0.03, 0.02, 0.5), tilt)).check()
    other = tight.solve(make_pose(R @ (0.03, 0.02, 0.5), R @ tilt @ R.T)).check()
    np.testing.assert_allclose(one.lengths, np.roll(other.lengths, -2), rtol=0, atol=1e-9)


@pytest.mark.parametrize("angle", [0.4, 2.0, -1.3])
def test_turning_the_whole_problem_turns_the_answer(angle):
    """Another base, platform, load and pose, all turned about z: same lengths, turned forces."""
    R = Rotation.from_rotvec([0, 0, angle]).as_matrix()
    first = ContinuumRobot(load=Load(force=(0.5, 0.2, -3.0), moment=(0.02, 0.01, 0.0)))
    turned = ContinuumRobot(
        base=first.base @ R.T,
        platform=first.platform @ R.T,
        load=Load(tuple(R @ first.load.force), tuple(R @ first.load.moment)),
    )
    tilt = Rotation.from_rotvec([0.1, -0.05, 0.1]).as_matrix()
    a = ContinuumSolver(first, 1e-12).solve(make_pose((0.02, 0.03, 0.45), tilt)).check()
    b = ContinuumSolver(turned, 1e-12)
    b = b.solve(make_pose(R @ (0.02, 0.03, 0.45), R @ tilt @ R.T)).check()
    np.testing.assert_allclose(a.lengths, b.lengths, rtol=0, atol=1e-9)
    np.testing.assert_allclose(a.forces @ R.T, b.forces, rtol=0, atol=1e-6)


def test_rods_of_different_kinds():
    """A thicker rod 2: still an exact solution, and no longer symmetric."""
    from continuum_oracle import residual36

    rods = (
        Rod(),
        Rod(),
        Rod(radius=0.0009),
        Rod(),
        Rod(youngs_modulus=70e9, shear_modulus=27e9),
        Rod(),
    )
    robot = ContinuumRobot(rods=rods)
    pose = make_pose((0.02, 0.0, 0.45))
    result = ContinuumSolver(robot, 1e-12).solve(pose).check()
    r = residual36(robot, pose, result.forces, result.moments, result.lengths)
    assert r @ r < 1e-12
    assert np.ptp(result.lengths) > 1e-3
