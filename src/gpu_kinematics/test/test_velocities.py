"""Jacobian, velocities, accelerations and singularity measures."""

import numpy as np
import pytest
from delta_oracles import MM, joint_motion, poses

from gpu_kinematics import Delta, Geometry, Status

ROBOT = Delta(MM, backend="cpu")
SAMPLE = np.array([0.1, 0.2, 0.3])


def test_jacobian_of_the_sample():
    matrix = ROBOT.jacobian(SAMPLE).jacobian
    golden = [
        [-27.651679670106, 15.814055289974, 16.195671604599],
        [0.662829507856, -25.058251044522, 27.044331250482],
        [-18.112923545233, -15.776934641082, -13.415933163052],
    ]
    np.testing.assert_allclose(matrix, golden, atol=1e-11)
    measures = ROBOT.measures(SAMPLE)
    assert measures.condition == pytest.approx(1.34646, abs=5e-6)
    assert abs(measures.det) == pytest.approx(36220.4086, abs=1e-4)


@pytest.mark.parametrize("layout", ["soa", "aos"])
def test_jacobian_against_differences(layout):
    angles = poses(500)
    given_angles = angles if layout == "soa" else angles.T
    _position, matrix, status = ROBOT.jacobian(given_angles, layout=layout)
    matrix = matrix if layout == "soa" else np.moveaxis(matrix, 0, -1)
    assert not status.any()
    h = 1e-6
    for i in range(3):
        step = np.zeros((3, 1))
        step[i] = h
        slope = (ROBOT.fk(angles + step).position - ROBOT.fk(angles - step).position) / (2 * h)
        np.testing.assert_allclose(matrix[:, i], slope, atol=2e-6)


def test_measures_against_numpy():
    angles = poses(300)
    matrices = np.moveaxis(ROBOT.jacobian(angles).jacobian, -1, 0)
    values = np.linalg.svd(matrices, compute_uv=False)
    found = ROBOT.measures(angles)
    np.testing.assert_allclose(found.sigma_max, values[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found.sigma_min, values[:, 2], rtol=1e-11)
    np.testing.assert_allclose(found.condition, values[:, 0] / values[:, 2], rtol=1e-11)
    np.testing.assert_allclose(found.det, np.linalg.det(matrices), rtol=1e-10)
    np.testing.assert_allclose(found.det, found.det_q / found.det_x, rtol=1e-12)
    at = ROBOT.dexterity(ROBOT.fk(angles).position)
    np.testing.assert_allclose(at.condition, found.condition, rtol=1e-8)


def test_singular_values_of_ill_conditioned_poses():
    z = -np.sqrt(108.0**2 - 10.5**2) * (1 - np.array([1e-4, 1e-6, 1e-8]))
    position = np.stack([np.zeros(3), np.zeros(3), z])
    found = ROBOT.dexterity(position)
    matrices = np.moveaxis(ROBOT.jacobian(ROBOT.ik(position).angle).jacobian, -1, 0)
    values = np.linalg.svd(matrices, compute_uv=False)
    np.testing.assert_allclose(found.condition, values[:, 0] / values[:, 2], rtol=1e-6)


def test_serial_singularity_is_marked():
    z = -np.sqrt(108.0**2 - 10.5**2) * (1 - 1e-14)
    result = ROBOT.dexterity(np.array([0.0, 0.0, z]))
    assert result.status == Status.SINGULAR and abs(result.serial) < 1e-9


def test_parallel_singularity_is_marked():
    # Rods in the plane of the elbows: r = Lb, so that the platform has no height left.
    robot = Delta(Geometry(28.0, 40.0, 68.0), backend="cpu", singular=1e-3)
    result = robot.measures(np.array([1e-9, 1e-9, 1e-9]))
    assert result.status & (Status.SINGULAR | Status.NO_ASSEMBLY)
    near = robot.jacobian(np.array([2e-7, 2e-7, 2e-7]))
    assert near.status == Status.SINGULAR


def test_motion_against_differences():
    t = np.linspace(0, 3, 200)
    _position, velocity, acceleration, status = ROBOT.forward_motion(*joint_motion(t))
    assert not status.any()
    h = 1e-4
    p = [ROBOT.fk(joint_motion(t + k * h)[0]).position for k in (-2, -1, 0, 1, 2)]
    np.testing.assert_allclose(velocity, (p[0] - 8 * p[1] + 8 * p[3] - p[4]) / (12 * h), atol=1e-7)
    second = (-p[0] + 16 * p[1] - 30 * p[2] + 16 * p[3] - p[4]) / (12 * h * h)
    np.testing.assert_allclose(acceleration, second, atol=1e-4)


@pytest.mark.parametrize("layout", ["soa", "aos"])
def test_inverse_motion_undoes_forward_motion(layout):
    turn = (lambda a: a) if layout == "soa" else (lambda a: np.ascontiguousarray(a.T))
    joints = [turn(a) for a in joint_motion(np.linspace(0, 3, 300))]
    motion = ROBOT.forward_motion(*joints, layout=layout)
    back = ROBOT.inverse_motion(*motion[:3], layout=layout)
    assert not back.status.any()
    for found, expected in zip(back[:3], joints, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-11)


def test_motion_without_rates_is_rest():
    motion = ROBOT.forward_motion(poses(10))
    assert (motion.velocity == 0).all() and np.abs(motion.acceleration).max() == 0


def test_bad_rates_are_marked():
    rate = np.array([[np.nan], [0.0], [0.0]])
    assert ROBOT.forward_motion(SAMPLE[:, None], rate).status[0] & Status.INVALID
    position = ROBOT.fk(SAMPLE[:, None]).position
    assert ROBOT.inverse_motion(position, rate).status[0] & Status.INVALID
