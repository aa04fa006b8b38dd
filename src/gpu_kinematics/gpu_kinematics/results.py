"""What the calls of ``Delta`` give; arrays are of the kind of the caller's."""

from __future__ import annotations

from typing import NamedTuple

from gpu_kinematics.call import Array

__all__ = [
    "Control",
    "Forward",
    "ForwardMotion",
    "Inverse",
    "InverseMotion",
    "Jacobian",
    "Measures",
]


class Forward(NamedTuple):
    """Forward kinematics: positions [m] and status masks (None if not asked for)."""

    position: Array
    status: Array


class Inverse(NamedTuple):
    """Inverse kinematics: angles [rad] and status masks (None if not asked for)."""

    angle: Array
    status: Array


class Jacobian(NamedTuple):
    """Positions [m], Jacobians dp/da [m/rad] of shape (3, 3, N) or (N, 3, 3), status masks."""

    position: Array
    jacobian: Array
    status: Array


class Measures(NamedTuple):
    """How far each robot is from singular.

    Attributes:
        condition: 2-norm condition number of J = J_x^-1 J_q; infinite at a singularity.
        sigma_min: Smallest singular value of J [m/rad].
        sigma_max: Largest singular value of J [m/rad].
        det_x: det J_x, rows p - c_i [m^3]; 0 at a type 2 (parallel) singularity.
        det_q: det J_q = prod (p - c_i).dc_i/da [m^6/rad^3]; 0 at a type 1 (serial) singularity.
        det: det J = det J_q / det J_x [m^3/rad^3].
        parallel: det J_x of unit rods, -1..1.
        serial: det J_q / (La Lb)^3, -1..1.
        status: Status masks.
    """

    condition: Array
    sigma_min: Array
    sigma_max: Array
    det_x: Array
    det_q: Array
    det: Array
    parallel: Array
    serial: Array
    status: Array


class ForwardMotion(NamedTuple):
    """Positions [m], velocities [m/s], accelerations [m/s^2] and status masks."""

    position: Array
    velocity: Array
    acceleration: Array
    status: Array


class InverseMotion(NamedTuple):
    """Angles [rad], rates [rad/s], accelerations [rad/s^2] and status masks."""

    angle: Array
    rate: Array
    rate2: Array
    status: Array


class Control(NamedTuple):
    """Joint rates to command [rad/s], distance to the target [m] and status masks."""

    rate: Array
    error: Array
    status: Array
