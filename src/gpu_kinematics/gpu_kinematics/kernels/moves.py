"""Jerk-limited moves: planned once, sampled at any time."""

from __future__ import annotations

from gpu_kinematics.kernels.elementary import cbrt
from gpu_kinematics.kernels.language import rint, select, sqrt
from gpu_kinematics.kernels.records import (
    Joints,
    MoveRows,
    Options,
    Path,
    Profile,
    Robot,
    Vector,
)
from gpu_kinematics.kernels.velocities import ik_motion

__all__ = ["plan", "profile", "ramp", "trajectory"]


def profile(L: float, move: MoveRows) -> Profile:
    """The jerk-limited move over the distance L.

    Seven phases, rest to rest. If the speed limit is not reached Tv = 0; if the acceleration limit
    is not reached either, Ta = 2 Tj and L = 2 j Tj^3.
    """
    v = move.vmax
    a = move.amax
    j = move.jmax
    Ts = sqrt(v / j)
    Tc = a / j
    Tj = select(Ts < Tc, Ts, Tc)
    Ta = Tj + v / (j * Tj)
    Tv = L / v - Ta
    cruise = Tv > 0.0
    wide = (2.0 * a) * (Tc * Tc) <= L
    Tn = cbrt(L / (2.0 * j))
    half = 0.5 * Tc
    Tw = half + sqrt(half * half + L / a)
    return Profile(
        select(cruise, Tj, select(wide, Tc, Tn)),
        select(cruise, Ta, select(wide, Tw, 2.0 * Tn)),
        select(cruise, Tv, 0.0),
        select(L > 0.0, j / select(L > 0.0, L, 1.0), 0.0),
    )


def ramp(time: float, leg: Profile) -> tuple[float, float, float]:
    """Share of the way, its rate and its second derivative at a time of a profile.

    The second half mirrors the first: s(t) = 1 - s(Tp - t).
    """
    Tj = leg.Tj
    Ta = leg.Ta
    j = leg.j
    Tp = 2.0 * Ta + leg.Tv
    begun = select(time > 0.0, time, 0.0)
    ended = select(begun < Tp, begun, Tp)
    late = 2.0 * ended > Tp
    t = select(late, Tp - ended, ended)
    ap = j * Tj
    vp = ap * (Ta - Tj)
    u = Ta - t
    in1 = t < Tj
    in2 = u > Tj
    in3 = u > 0.0
    s1 = (((j * t) * t) * t) / 6.0
    s2 = ap * ((0.5 * t) * (t - Tj) + (Tj * Tj) / 6.0)
    s3 = 0.5 * (vp * Ta) - (vp * u - (((j * u) * u) * u) / 6.0)
    s4 = 0.5 * (vp * Ta) - vp * u
    s = select(in1, s1, select(in2, s2, select(in3, s3, s4)))
    d1 = ((0.5 * j) * t) * t
    d2 = ap * (t - 0.5 * Tj)
    d3 = vp - ((0.5 * j) * u) * u
    d = select(in1, d1, select(in2, d2, select(in3, d3, vp)))
    f = select(in1, j * t, select(in2, ap, select(in3, j * u, 0.0)))
    still = j == 0.0
    return (
        select(still, 0.0, select(late, 1.0 - s, s)),
        select(still, 0.0, d),
        select(still, 0.0, select(late, -f, f)),
    )


def plan(start: Vector, goal: Vector, move: MoveRows) -> tuple[Path, float]:
    """The path of a move, and its duration.

    The across leg begins ``overlap`` times the deceleration time before the lift ends, and so on
    down.
    """
    line = move.kind < 0.5
    top = select(start.z > goal.z, start.z, goal.z) + move.height
    h1 = select(line, 0.0, top - start.z)
    h3 = select(line, 0.0, top - goal.z)
    dx = goal.x - start.x
    dy = goal.y - start.y
    dz = select(line, goal.z - start.z, 0.0)
    lift = profile(h1, move)
    across = profile(sqrt((dx * dx + dy * dy) + dz * dz), move)
    drop = profile(h3, move)
    T1 = 2.0 * lift.Ta + lift.Tv
    t2 = T1 - move.overlap * lift.Ta
    end2 = t2 + (2.0 * across.Ta + across.Tv)
    early = end2 - move.overlap * drop.Ta
    t3 = select(early > T1, early, T1)
    end3 = t3 + (2.0 * drop.Ta + drop.Tv)
    Tp = select(end3 > end2, end3, end2)
    cyclic = select(move.kind > 1.5, 1.0, 0.0)
    whole = Tp * move.scale
    duration = select(move.kind > 1.5, 2.0 * (whole + move.pause), whole)
    way = Vector(dx, dy, dz)
    legs = Path(start, way, h1, h3, lift, t2, across, t3, drop, Tp, move.pause, cyclic, move.scale)
    return legs, duration


def path_clock(t: float, path: Path) -> tuple[float, float]:
    """Time on the forward path, and the direction of travel (+1, -1, 0 while waiting)."""
    Tp = path.Tp
    tau = t / path.lam
    half = Tp + path.dwell / path.lam
    turn = 2.0 * half
    q = tau / select(turn > 0.0, turn, 1.0)
    k = rint(q)
    lap = tau - turn * select(k > q, k - 1.0, k)
    back = lap - half
    forth = select(lap < Tp, lap, Tp)
    home = select(back < Tp, Tp - back, 0.0)
    looped = select(back < 0.0, forth, home)
    way = select(back < 0.0, select(lap < Tp, 1.0, 0.0), select(back < Tp, -1.0, 0.0))
    loops = path.cyclic > 0.5
    return select(loops, looped, tau), select(loops, way, 1.0)


def trajectory(
    robot: Robot, options: Options, time: float, path: Path
) -> tuple[Vector, Vector, Vector, Joints, Joints, Joints, float]:
    """Position, velocity, acceleration, joint angles, rates and accelerations, status."""
    tau, way = path_clock(time, path)
    p1, v1, f1 = ramp(tau, path.lift)
    p2, v2, f2 = ramp(tau - path.t2, path.across)
    p3, v3, f3 = ramp(tau - path.t3, path.drop)
    speed = way / path.lam
    push = (way * way) / (path.lam * path.lam)
    d = path.way
    h1 = path.h1
    h3 = path.h3
    p = Vector(
        path.start.x + d.x * p2,
        path.start.y + d.y * p2,
        ((path.start.z + d.z * p2) + h1 * p1) - h3 * p3,
    )
    v = Vector((d.x * v2) * speed, (d.y * v2) * speed, ((d.z * v2 + h1 * v1) - h3 * v3) * speed)
    u = Vector((d.x * f2) * push, (d.y * f2) * push, ((d.z * f2 + h1 * f1) - h3 * f3) * push)
    angle, rate, rate2, status = ik_motion(robot, options, p, v, u)
    return p, v, u, angle, rate, rate2, status
