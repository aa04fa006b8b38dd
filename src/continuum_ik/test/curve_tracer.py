"""The branch by other means: a plain tracer of solution curves, and scipy for the lengths.

Nothing here uses the solver's own mathematics: rods have 18 states (position, rotation matrix,
force, moment), classical Runge-Kutta in place of the eighth-order formula, one dense Jacobian by
central differences, and a curve that is followed by its arc length. Where the arc turns back, the
path has a fold; that is seen from the direction of the curve, not from steps that fail. Slow, and
meant to be: campaigns and tests hold the solver against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from continuum_ik.robot import ContinuumRobot, Rod
from continuum_ik.rod import Array

__all__ = ["Curve", "leg_errors", "residual18", "straight", "trace"]

#: Steps of the integration of a rod along the curve, where the tip is off by some 1e-7 m, more if
#: the rod is tense; and at its end.
STEPS, LAST_STEPS = 48, 480
#: Displacement of the differences, scaled, for a rod that carries nothing.
INCREMENT = 1e-5
#: Largest and smallest step of the arc, largest turn of its direction in one step [rad], and most
#: steps.
STEP_MAX, STEP_MIN, TURN_MAX, TRIES = 0.5, 1e-9, 0.06, 4000


@dataclass(frozen=True, eq=False)
class Curve:
    """How the straight path from one pose to another ends.

    Attributes:
        arrives: Whether the curve of solutions leads to the end without turning back.
        reached: The part of the path that has a solution on the curve; 1 if it arrives.
        lengths: At the end, (6) [m]; NaN if it does not arrive.
        unknowns: Forces, moments and lengths where the curve ends, (36).
        crossings: Places where the determinant changed its sign and the curve went on: crossing
            branches.
        steps: Steps of the arc.
        told: Whether it arrived or was seen to turn back; otherwise its steps came to nothing.
    """

    arrives: bool
    reached: float
    lengths: Array
    unknowns: Array
    crossings: tuple[float, ...]
    steps: int
    told: bool


@njit(cache=True, nogil=True)
def _slope(y: Array, k: Array, out: Array) -> None:
    """Slope of (p, R row by row, n, m); k = 1/GA, 1/EA, 1/EI, 1/GJ."""
    n0, n1, n2 = y[12], y[13], y[14]
    m0, m1, m2 = y[15], y[16], y[17]
    v0 = k[0] * (y[3] * n0 + y[6] * n1 + y[9] * n2)
    v1 = k[0] * (y[4] * n0 + y[7] * n1 + y[10] * n2)
    v2 = 1.0 + k[1] * (y[5] * n0 + y[8] * n1 + y[11] * n2)
    u0 = k[2] * (y[3] * m0 + y[6] * m1 + y[9] * m2)
    u1 = k[2] * (y[4] * m0 + y[7] * m1 + y[10] * m2)
    u2 = k[3] * (y[5] * m0 + y[8] * m1 + y[11] * m2)
    for r in range(3):
        a, b, c = y[3 + 3 * r], y[4 + 3 * r], y[5 + 3 * r]
        out[r] = a * v0 + b * v1 + c * v2
        out[3 + 3 * r] = b * u2 - c * u1
        out[4 + 3 * r] = c * u0 - a * u2
        out[5 + 3 * r] = a * u1 - b * u0
        out[12 + r] = 0.0
    out[15] = n1 * out[2] - n2 * out[1]
    out[16] = n2 * out[0] - n0 * out[2]
    out[17] = n0 * out[1] - n1 * out[0]


@njit(cache=True, nogil=True)
def _shoot(x: Array, k: Array, steps: int, y: Array) -> None:
    """Integrate a rod from n, m0x, m0y and its length; y (18) is the state at the tip."""
    for j in range(18):
        y[j] = 0.0
    y[3], y[7], y[11] = 1.0, 1.0, 1.0
    for j in range(5):
        y[12 + j] = x[j]
    h = x[5] / steps
    a, b, c, d, z = np.empty(18), np.empty(18), np.empty(18), np.empty(18), np.empty(18)
    for _ in range(steps):
        _slope(y, k, a)
        for j in range(18):
            z[j] = y[j] + 0.5 * h * a[j]
        _slope(z, k, b)
        for j in range(18):
            z[j] = y[j] + 0.5 * h * b[j]
        _slope(z, k, c)
        for j in range(18):
            z[j] = y[j] + h * c[j]
        _slope(z, k, d)
        for j in range(18):
            y[j] += h / 6.0 * (a[j] + 2.0 * (b[j] + c[j]) + d[j])


@njit(cache=True, nogil=True)
def _rod_part(i: int, y: Array, x: Array, geometry: Array, pose: Array, out: Array) -> None:
    """What rod i adds to the residual: its own five equations, then six for the platform."""
    arm = np.empty(3)
    for r in range(3):
        arm[r] = 0.0
        for c in range(3):
            arm[r] += pose[3 + 3 * r + c] * geometry[i, 3 + c]
        out[r] = geometry[i, r] + y[r] - pose[r] - arm[r]
    for c in range(2):
        out[3 + c] = 2.0 * (pose[3 + c] * y[5] + pose[6 + c] * y[8] + pose[9 + c] * y[11])
    for r in range(3):
        out[5 + r] = -x[r]
    out[8] = -(y[15] + arm[1] * x[2] - arm[2] * x[1])
    out[9] = -(y[16] + arm[2] * x[0] - arm[0] * x[2])
    out[10] = -(y[17] + arm[0] * x[1] - arm[1] * x[0])


@njit(cache=True, nogil=True)
def _system(
    u: Array,
    scale: Array,
    pose: Array,
    geometry: Array,
    rods: Array,
    load: Array,
    steps: int,
    jacobian: bool,
) -> tuple[Array, Array]:
    """The scaled residual (36) and, if asked for, its Jacobian (36, 36) by central differences.

    u holds six numbers for each rod: n, m0x, m0y, length, all scaled; scale is for these (6) and
    for the equations of a rod (5) and of the platform (6).
    """
    r, J = np.zeros(36), np.zeros((36, 36))
    x, y, part, other = np.empty(6), np.empty(18), np.empty(11), np.empty(11)
    fx, fy, fz = load[0], load[1], load[2]
    c = np.zeros(3)
    for k in range(3):
        for j in range(3):
            c[k] += pose[3 + 3 * k + j] * load[6 + j]
    r[30], r[31], r[32] = fx, fy, fz
    r[33] = load[3] + c[1] * fz - c[2] * fy
    r[34] = load[4] + c[2] * fx - c[0] * fz
    r[35] = load[5] + c[0] * fy - c[1] * fx
    for i in range(6):
        for j in range(6):
            x[j] = u[6 * i + j] * scale[j]
        _shoot(x, rods[i], steps, y)
        _rod_part(i, y, x, geometry, pose, part)
        for k in range(5):
            r[5 * i + k] = part[k]
        for k in range(6):
            r[30 + k] += part[5 + k]
        if not jacobian:
            continue
        # A tense rod carries displacements up by exp(L sqrt(n / EI)).
        pull = math.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
        h = INCREMENT * math.exp(-0.67 * min(abs(x[5]) * math.sqrt(pull * rods[i, 2]), 30.0))
        for j in range(6):
            keep = x[j]
            x[j] = keep + h * scale[j]
            _shoot(x, rods[i], steps, y)
            _rod_part(i, y, x, geometry, pose, part)
            x[j] = keep - h * scale[j]
            _shoot(x, rods[i], steps, y)
            _rod_part(i, y, x, geometry, pose, other)
            x[j] = keep
            for k in range(5):
                J[5 * i + k, 6 * i + j] = (part[k] - other[k]) / (2.0 * h) / scale[6 + k]
            for k in range(6):
                J[30 + k, 6 * i + j] = (part[5 + k] - other[5 + k]) / (2.0 * h) / scale[11 + k]
    for i in range(6):
        for k in range(5):
            r[5 * i + k] /= scale[6 + k]
    for k in range(6):
        r[30 + k] /= scale[11 + k]
    return r, J


def straight(start: Array, end: Array, parts: Array) -> Array:
    """Return poses (n, 12) on the straight path at ``parts`` (n): rotation about a fixed axis."""
    first, last = start[3:].reshape(3, 3), end[3:].reshape(3, 3)
    turn = Rotation.from_matrix(last @ first.T).as_rotvec()
    R = Rotation.from_rotvec(parts[:, None] * turn).as_matrix() @ first
    return np.hstack([start[:3] + parts[:, None] * (end[:3] - start[:3]), R.reshape(-1, 9)])


class _Path:
    """The scaled equations over a path of poses."""

    def __init__(self, robot: ContinuumRobot, start: Array, end: Array) -> None:
        L = robot.home_height
        EI = float(np.mean([rod.bending_stiffness for rod in robot.rods]))
        force, moment = EI / L**2, EI / L
        self.scale = np.array(
            [force] * 3 + [moment] * 2 + [L] + [L] * 3 + [1.0] * 2 + [force] * 3 + [moment] * 3
        )
        self.geometry = np.ascontiguousarray(np.hstack([robot.base, robot.platform]))
        self.rods = np.array(
            [
                [
                    1.0 / rod.shear_stiffness,
                    1.0 / rod.axial_stiffness,
                    1.0 / rod.bending_stiffness,
                    0.5 * rod.youngs_modulus / rod.shear_modulus / rod.bending_stiffness,
                ]
                for rod in robot.rods
            ]
        )
        self.load = np.concatenate([robot.load.force, robot.load.moment, robot.load.point])
        self.steps = STEPS
        self.start, self.first = start[:3], start[3:].reshape(3, 3)
        self.way = end[:3] - start[:3]
        self.turn = Rotation.from_matrix(end[3:].reshape(3, 3) @ self.first.T).as_rotvec()

    def pose(self, part: float) -> Array:
        R = Rotation.from_rotvec(part * self.turn).as_matrix() @ self.first
        return np.concatenate([self.start + part * self.way, R.ravel()])

    def _system(self, u: Array, pose: Array, jacobian: bool) -> tuple[Array, Array]:
        robot = self.geometry, self.rods, self.load
        return _system(u, self.scale, pose, *robot, self.steps, jacobian)

    def residual(self, z: Array) -> Array:
        pose = self.pose(z[36])
        return self._system(z[:36], pose, False)[0]

    def linear(self, z: Array) -> tuple[Array, Array]:
        """The residual, and its derivative by the unknowns and the part of the path: (36, 37)."""
        pose = self.pose(z[36])
        r, J = self._system(z[:36], pose, True)
        h = 1e-5
        up, down = z.copy(), z.copy()
        up[36] += h
        down[36] -= h
        by_part = (self.residual(up) - self.residual(down)) / (2.0 * h)
        return r, np.hstack([J, by_part[:, None]])

    def solve(self, z: Array, rounds: int = 12, close: float = 1e-9) -> Array | None:
        """Plain Newton steps at the pose of z; None if they do not come ``close``."""
        z = z.copy()
        for _ in range(rounds):
            r, A = self.linear(z)
            try:
                step = np.linalg.solve(A[:, :36], r)
            except np.linalg.LinAlgError:
                return None
            z[:36] -= step
            size = float(np.abs(step).max())
            if not size < 10.0:
                return None
            if size < close:
                return z
        return None


def trace(
    robot: ContinuumRobot, start: Array, end: Array, forces: Array, moments: Array, lengths: Array
) -> Curve:
    """Follow the curve of solutions over the straight path from a solved pose.

    Args:
        robot: The robot.
        start: The solved pose, 12 numbers.
        end: The other end of the path.
        forces: Of the rods at the start, (6, 3) [N].
        moments: At the base there, (6, 2) [N m].
        lengths: There, (6) [m].
    """
    path = _Path(robot, start, end)
    z = np.empty(37)
    z[:36] = (np.hstack([forces, moments, lengths[:, None]]) / path.scale[:6]).ravel()
    z[36] = 0.0
    settled = path.solve(z)
    if settled is None:
        raise ValueError("the start is not a solution")
    z = settled
    _, A = path.linear(z)
    direction, sign = _direction(A, np.eye(37)[36])
    step, turned_back = 0.05, False
    crossings: list[float] = []
    for count in range(TRIES):
        if direction[36] > 0.0 and z[36] + step * direction[36] >= 1.0:
            # The step that arrives: solved at the very end of the path.
            last = z + direction * (1.0 - z[36]) / direction[36]
            last[36] = 1.0
            arrived = path.solve(last, 6)
            moved = math.inf if arrived is None else float(np.linalg.norm(arrived - last))
            if arrived is not None and moved <= 0.1 * np.linalg.norm(last - z) + 1e-7:
                _, A = path.linear(arrived)
                d, _ = _direction(A, direction)
                if d @ direction > math.cos(TURN_MAX) and d[36] > 0.0:
                    path.steps = LAST_STEPS
                    polished = path.solve(arrived, close=1e-7)
                    arrived = arrived if polished is None else polished
                    u = arrived[:36].reshape(6, 6) * path.scale[:6]
                    return Curve(True, 1.0, u[:, 5].copy(), u, tuple(crossings), count, True)
            step = min(step, 0.9 * (1.0 - z[36]) / direction[36])
        to = _correct(path, z, direction, step)
        if to is not None:
            _, A = path.linear(to)
            d, s = _direction(A, direction)
            if d @ direction <= math.cos(TURN_MAX):
                to = None
        if to is None:
            step *= 0.5
            if step < STEP_MIN:
                break
            continue
        if d[36] < 0.0:
            # The curve turns back: a fold.
            turned_back = True
            break
        if s != sign:
            crossings.append(float(to[36]))
        turned = math.acos(min(1.0, float(d @ direction)))
        z, direction, sign = to, d, s
        step = min(STEP_MAX, step * (1.5 if turned < 0.4 * TURN_MAX else 1.0))
    u = z[:36].reshape(6, 6) * path.scale[:6]
    return Curve(False, float(z[36]), np.full(6, np.nan), u, tuple(crossings), count, turned_back)


def _direction(A: Array, before: Array) -> tuple[Array, float]:
    """Return the unit tangent along ``before``, and the sign of the bordered determinant."""
    B = np.vstack([A, before])
    t = np.linalg.solve(B, np.eye(37)[36])
    return t / np.linalg.norm(t), float(np.linalg.slogdet(B)[0])


def _correct(path: _Path, z: Array, direction: Array, step: float) -> Array | None:
    """One step of the arc: predict along the direction, correct across it by Newton steps."""
    to = z + step * direction
    guess = to.copy()
    for k in range(5):
        r, A = path.linear(to)
        change = np.linalg.solve(np.vstack([A, direction]), np.append(r, (to - guess) @ direction))
        to = to - change
        size = float(np.linalg.norm(change))
        if not size < (0.3 * step if k == 0 else 0.1 * step + 1e-9):
            return None
        if size < 1e-9:
            return to
    return None


def rod_slope(y: Array, rod: Rod) -> Array:
    """Slope of (p, R row by row, n, m): Cosserat rod with shear, extension, bending and torsion."""
    R, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:18]
    GA, EA, EI = rod.shear_stiffness, rod.axial_stiffness, rod.bending_stiffness
    GJ = 2.0 * EI * rod.shear_modulus / rod.youngs_modulus
    p_s = R @ (R.T @ n / (GA, GA, EA) + (0.0, 0.0, 1.0))
    u = R.T @ m / (EI, EI, GJ)
    hat = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
    return np.concatenate([p_s, (R @ hat).ravel(), np.zeros(3), -np.cross(p_s, n)])


def _slope_along(rod: Rod, _: float, y: Array) -> Array:
    return rod_slope(y, rod)


def residual18(
    robot: ContinuumRobot, pose: Array, forces: Array, moments: Array, lengths: Array
) -> Array:
    """The robot's residual (36) by scipy's DOP853 on the 18 states."""
    RE = pose[3:].reshape(3, 3)
    out: list[float] = []
    force = np.array(robot.load.force)
    moment = np.array(robot.load.moment) + np.cross(RE @ np.array(robot.load.point), force)
    for i, rod in enumerate(robot.rods):
        y = np.concatenate([np.zeros(3), np.eye(3).ravel(), forces[i], moments[i], [0.0]])
        y = solve_ivp(
            partial(_slope_along, rod),
            (0.0, lengths[i]),
            y,
            method="DOP853",
            rtol=1e-12,
            atol=1e-14,
        ).y[:, -1]
        arm = RE @ robot.platform[i]
        out.extend(y[:3] + robot.base[i] - (pose[:3] + arm))
        out.extend(2.0 * (RE.T @ y[3:12].reshape(3, 3)[:, 2])[:2])
        force = force - forces[i]
        moment = moment - (y[15:18] + np.cross(arm, forces[i]))
    return np.concatenate([out, force, moment])


def leg_errors(
    robot: ContinuumRobot, pose: Array, forces: Array, moments: Array, lengths: Array
) -> Array:
    """Return how far six lengths are from a solution, by scipy's residual and the dense Jacobian.

    Returns:
        (6) [m].
    """
    path = _Path(robot, pose, pose)
    u = (np.hstack([forces, moments, lengths[:, None]]) / path.scale[:6]).ravel()
    _, J = _system(u, path.scale, pose, path.geometry, path.rods, path.load, STEPS, True)
    r = residual18(robot, pose, forces, moments, lengths)
    r[:30] /= np.tile(path.scale[6:11], 6)
    r[30:] /= path.scale[11:]
    return np.linalg.solve(J, r).reshape(6, 6)[:, 5] * path.scale[5]
