"""Laws that hold for every robot: frames, scale, symmetry."""

import dataclasses

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from continuum_ik import ContinuumRobot, ContinuumSolver, Limits, Load, Rod, make_pose

LAW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PLAIN = ContinuumRobot(load=Load(force=(0.4, -0.3, -1.0), moment=(0.01, 0.0, 0.02)))
angles = st.floats(-np.pi, np.pi)
#: Position beside the axis and above the base [m], and a rotation vector.
poses = st.tuples(
    st.floats(-0.05, 0.05),
    st.floats(-0.05, 0.05),
    st.floats(0.4, 0.55),
    *[st.floats(-0.2, 0.2)] * 3,
)


def pose_of(numbers):
    return make_pose(numbers[:3], Rotation.from_rotvec(numbers[3:]).as_matrix())


def solve(robot, pose):
    return ContinuumSolver(robot, 1e-12, detours=False).solve(pose)


def same(a, b, lengths_of_b):
    """Same verdict, and the same lengths up to what 1e-12 leaves open."""
    assert a.code == b.code
    assert a.stable == b.stable
    if a.success:
        np.testing.assert_allclose(a.lengths, lengths_of_b, rtol=0, atol=3e-9)


def turned_load(load, R):
    return Load(force=tuple(R @ load.force), moment=tuple(R @ load.moment), point=load.point)


@LAW
@given(poses, angles)
def test_a_frame_that_is_turned_about_the_axis_changes_nothing(numbers, angle):
    """Base holes, load and pose turn together; the platform's own frame stays."""
    R = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()
    pose = pose_of(numbers)
    turned = dataclasses.replace(
        PLAIN, base=PLAIN.base @ R.T, load=turned_load(PLAIN.load, R), platform=PLAIN.platform @ R.T
    )
    turned = dataclasses.replace(
        turned, load=dataclasses.replace(turned.load, point=tuple(R @ PLAIN.load.point))
    )
    other = make_pose(R @ pose[:3], R @ pose[3:].reshape(3, 3) @ R.T)
    a, b = solve(PLAIN, pose), solve(turned, other)
    same(a, b, b.lengths)
    if a.success:
        np.testing.assert_allclose(b.forces, a.forces @ R.T, rtol=0, atol=1e-5)


@LAW
@given(poses, st.floats(0.1, 10.0))
def test_a_robot_of_another_size_has_legs_of_that_size(numbers, scale):
    """Lengths by s, radii by s: forces go by s^2, moments by s^3, all angles stay."""
    pose = pose_of(numbers)
    load = PLAIN.load
    limits = PLAIN.limits
    large = ContinuumRobot(
        base=scale * PLAIN.base,
        platform=scale * PLAIN.platform,
        rods=tuple(
            Rod(
                radius=scale * rod.radius,
                youngs_modulus=rod.youngs_modulus,
                shear_modulus=rod.shear_modulus,
            )
            for rod in PLAIN.rods
        ),
        load=Load(
            force=tuple(scale**2 * np.array(load.force)),
            moment=tuple(scale**3 * np.array(load.moment)),
        ),
        limits=Limits(
            length=(scale * limits.length[0], scale * limits.length[1]),
            curvature=limits.curvature / scale,
            force=limits.force * scale**2,
            height=limits.height * scale,
        ),
        home_height=scale * PLAIN.home_height,
    )
    a, b = solve(PLAIN, pose), solve(large, make_pose(scale * pose[:3], pose[3:]))
    same(a, b, b.lengths / scale)


@LAW
@given(poses)
def test_rods_may_be_numbered_in_any_order(numbers):
    order = np.array([3, 0, 5, 1, 4, 2])
    pose = pose_of(numbers)
    other = dataclasses.replace(
        PLAIN,
        base=PLAIN.base[order],
        platform=PLAIN.platform[order],
        rods=tuple(PLAIN.rods[k] for k in order),
    )
    a, b = solve(PLAIN, pose), solve(other, pose)
    same(b, a, a.lengths[order])


@LAW
@given(poses)
def test_a_mirrored_robot_has_mirrored_answers(numbers):
    """The plane y = 0: positions and forces mirror, moments and rotations the other way."""
    M = np.diag([1.0, -1.0, 1.0])
    pose = pose_of(numbers)
    load = PLAIN.load
    other = dataclasses.replace(
        PLAIN,
        base=PLAIN.base @ M,
        platform=PLAIN.platform @ M,
        load=Load(force=tuple(M @ load.force), moment=tuple(-M @ load.moment)),
    )
    mirrored = make_pose(M @ pose[:3], M @ pose[3:].reshape(3, 3) @ M)
    a, b = solve(PLAIN, pose), solve(other, mirrored)
    same(a, b, b.lengths)
    if a.success:
        np.testing.assert_allclose(b.forces, a.forces @ M, rtol=0, atol=1e-5)


@LAW
@given(poses, st.integers(1, 2))
def test_a_third_of_a_turn_is_a_symmetry_of_the_tutorials_robot(numbers, thirds):
    """Without load its rods are three equal pairs: a turned pose has the lengths in turn."""
    robot = ContinuumRobot()
    R = Rotation.from_rotvec([0.0, 0.0, thirds * 2.0 * np.pi / 3.0]).as_matrix()
    pose = pose_of(numbers)
    other = make_pose(R @ pose[:3], R @ pose[3:].reshape(3, 3) @ R.T)
    a, b = solve(robot, pose), solve(robot, other)
    same(a, b, np.roll(b.lengths, -2 * thirds))
