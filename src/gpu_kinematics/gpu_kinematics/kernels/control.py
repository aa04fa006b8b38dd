"""Computed velocity control."""

from __future__ import annotations

from gpu_kinematics.kernels.elementary import dot, finite, minus
from gpu_kinematics.kernels.language import both, fabs, select, sqrt
from gpu_kinematics.kernels.positions import fk
from gpu_kinematics.kernels.records import Joints, Law, Options, Robot, Vector
from gpu_kinematics.kernels.velocities import joint_rates, pose, stretched

__all__ = ["control"]


def damped(w: float, a: float, lo: float, hi: float, gain: float, valid: bool) -> float:
    """Joint rate that cannot pass a joint limit: gain (lo - a) <= w <= gain (hi - a); 0 if bad."""
    most = gain * (hi - a)
    least = gain * (lo - a)
    under = select(w > most, most, w)
    kept = select(under < least, least, under)
    return select(both(valid, kept - kept == 0.0), kept, 0.0)


def control(
    robot: Robot,
    options: Options,
    angle: Joints,
    target: Vector,
    feedforward: Vector,
    law: Law,
) -> tuple[Joints, float, float]:
    """Joint rates w = J_q^-1 J_x (v_d + gain (p_d - p)), position error, status.

    The three rates are scaled together to the limit ``wmax``, so that the direction stays; then
    each is kept from passing its joint limit. Bad input gives zero rates: the robot stops.
    """
    p, status = fk(robot, options, angle)
    at = pose(robot, angle, p)
    e = minus(target, p)
    v = feedforward
    g = Vector(v.x + law.gain * e.x, v.y + law.gain * e.y, v.z + law.gain * e.z)
    w = joint_rates(at, g)
    b12 = select(fabs(w.one) > fabs(w.two), fabs(w.one), fabs(w.two))
    big = select(fabs(w.three) > b12, fabs(w.three), b12)
    f = select(big > law.wmax, law.wmax / select(big > law.wmax, big, 1.0), 1.0)
    known = finite(g)
    solved = status < 4096.0
    valid = both(solved, known)
    lo = options.lower
    hi = options.upper
    rate = Joints(
        damped(w.one * f, angle.one, lo.one, hi.one, law.gain, valid),
        damped(w.two * f, angle.two, lo.two, hi.two, law.gain, valid),
        damped(w.three * f, angle.three, lo.three, hi.three, law.gain, valid),
    )
    flat = stretched(robot, options.tol, at.k)
    bad = select(known, select(flat, 8192.0, 0.0), 4096.0)
    return rate, sqrt(dot(e, e)), status + select(solved, bad, 0.0)
