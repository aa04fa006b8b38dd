"""Residuals and Jacobians of the loop equations at points, for Newton steps and curve tracing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.planar import parallel_axis, plane_of
from kin_solvers.system import System

__all__ = ["Equations", "LoopEquations", "independent_rows"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

jit = njit(cache=True, nogil=True)


class LoopEquations(NamedTuple):
    """The loop equations as the kernels take them; names as in ``System``.

    Attributes:
        translation: Shape (V,).
        offsets: Shape (L + 1,).
        owner: The variable of each factor, shape (F,).
        C: Shape (F, 16).
        C_first: Shape (L, 16).
        point: Shape (L,).
        unknown: What the constants leave unknown of the residuals (Euclidean norm).
    """

    translation: BoolArray
    offsets: IntArray
    owner: IntArray
    C: Array
    C_first: Array
    point: BoolArray
    unknown: float


@jit
def _product(C: Array, f: int, translation: bool, q: float, M: Array) -> None:
    """M <- M Z(q) C[f] on 3 x 4 matrices."""
    for r in range(3):
        a = M[r, 0]
        b = M[r, 1]
        c = M[r, 2]
        d = M[r, 3]
        if translation:
            d += c * q
        else:
            cosine = math.cos(q)
            sine = math.sin(q)
            a, b = a * cosine + b * sine, b * cosine - a * sine
        M[r, 0] = a * C[f, 0] + b * C[f, 4] + c * C[f, 8]
        M[r, 1] = a * C[f, 1] + b * C[f, 5] + c * C[f, 9]
        M[r, 2] = a * C[f, 2] + b * C[f, 6] + c * C[f, 10]
        M[r, 3] = a * C[f, 3] + b * C[f, 7] + c * C[f, 11] + d


@jit
def evaluate(tables: LoopEquations, q: Array, F: Array, J: Array) -> None:
    """Six residuals of every loop (position, rotation vector) and their Jacobian.

    The rotation residual is half the skew part of the product, zero at the identity.
    """
    translation, offsets, owner, C, C_first, point, _ = tables
    J[:, :] = 0.0
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        M = np.zeros((n + 1, 3, 4))
        for r in range(3):
            M[0, r, r] = 1.0
        for t in range(n):
            M[t + 1] = M[t]
            k = owner[o + t]
            _product(C, o + t, translation[k], q[k], M[t + 1])
        end = M[n]
        for r in range(3):
            F[6 * l + r] = end[r, 3] - (C_first[l, 4 * r + 3] if point[l] else 0.0)
        if point[l]:
            for r in range(3):
                F[6 * l + 3 + r] = 0.0
        else:
            F[6 * l + 3] = 0.5 * (end[2, 1] - end[1, 2])
            F[6 * l + 4] = 0.5 * (end[0, 2] - end[2, 0])
            F[6 * l + 5] = 0.5 * (end[1, 0] - end[0, 1])
        trace = end[0, 0] + end[1, 1] + end[2, 2]
        for t in range(n):
            k = owner[o + t]
            ax = M[t, 0, 2]
            ay = M[t, 1, 2]
            az = M[t, 2, 2]
            if translation[k]:
                J[6 * l, k] += ax
                J[6 * l + 1, k] += ay
                J[6 * l + 2, k] += az
                continue
            # d(end)/dq = [a x (column - origin)] for the position, [a]x R for the rotation
            dx = end[0, 3] - M[t, 0, 3]
            dy = end[1, 3] - M[t, 1, 3]
            dz = end[2, 3] - M[t, 2, 3]
            J[6 * l, k] += ay * dz - az * dy
            J[6 * l + 1, k] += az * dx - ax * dz
            J[6 * l + 2, k] += ax * dy - ay * dx
            if not point[l]:
                # [a]x R + R'[a]x = [(trace(R) I - R) a]x
                J[6 * l + 3, k] += 0.5 * (
                    trace * ax - (end[0, 0] * ax + end[0, 1] * ay + end[0, 2] * az)
                )
                J[6 * l + 4, k] += 0.5 * (
                    trace * ay - (end[1, 0] * ax + end[1, 1] * ay + end[1, 2] * az)
                )
                J[6 * l + 5, k] += 0.5 * (
                    trace * az - (end[2, 0] * ax + end[2, 1] * ay + end[2, 2] * az)
                )


@jit
def turned(tables: LoopEquations, q: Array) -> bool:
    """Whether a loop is closed but for a half turn, which the skew part cannot see."""
    translation, offsets, owner, C, _, point, _ = tables
    M = np.empty((3, 4))
    for l in range(point.size):
        if point[l]:
            continue
        M[:, :] = 0.0
        for r in range(3):
            M[r, r] = 1.0
        for f in range(offsets[l], offsets[l + 1]):
            _product(C, f, translation[owner[f]], q[owner[f]], M)
        if M[0, 0] + M[1, 1] + M[2, 2] < 2.0:
            return True
    return False


@jit
def newton(tables: LoopEquations, q: Array, steps: int, tolerance: float) -> bool:
    """Gauss-Newton with minimum-norm steps of at most half a unit, in place; whether it came.

    A residual under ``tolerance`` ends it at once; after all steps one under 1e-9 will do. To both
    comes what the constants leave unknown: where loops have more equations than are independent,
    that much is left over at every solution.
    """
    rows = 6 * tables.point.size
    unknown = tables.unknown
    F = np.empty(rows)
    J = np.empty((rows, q.size))
    cut = max(1e-9, unknown)
    for turn in range(steps + 1):
        evaluate(tables, q, F, J)
        size = 0.0
        for r in range(rows):
            size = max(size, abs(F[r]) - unknown)
            if not math.isfinite(F[r]):
                return False
        if size < (tolerance if turn < steps else 1e-9):
            return not turned(tables, q)
        if turn == steps:
            break
        step = np.linalg.lstsq(J, F, cut)[0]
        norm = np.abs(step).max()
        q -= step * min(1.0, 0.5 / max(norm, 1e-300))
    return False


@jit
def newton_all(tables: LoopEquations, starts: Array, came: BoolArray) -> None:
    """Newton's method from many points, shape (N, V), in place; ``came``, shape (N,): where."""
    for i in range(starts.shape[0]):
        came[i] = newton(tables, starts[i], 12, 1e-12)


@jit
def pinned_newton(tables: LoopEquations, q: Array, direction: Array, value: float) -> bool:
    """Newton's method for the loop equations and ``direction @ q = value``; whether it came."""
    rows = 6 * tables.point.size
    F = np.empty(rows + 1)
    J = np.empty((rows + 1, q.size))
    cut = max(1e-9, tables.unknown)
    for _ in range(12):
        evaluate(tables, q, F[:rows], J[:rows])
        F[rows] = (direction * q).sum() - value
        J[rows] = direction
        size = 0.0
        for r in range(rows):
            size = max(size, abs(F[r]))
        if size <= tables.unknown + 1e-12 and abs(F[rows]) < 1e-13 * (1.0 + abs(value)):
            return not turned(tables, q)
        if not math.isfinite(size):
            return False
        step = np.linalg.lstsq(J, F, cut)[0]
        q -= step * min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
    return False


@jit
def across_folds(
    tables: LoopEquations, dimension: int, q: Array, size: Array, starts: Array, owner: IntArray
) -> int:
    """Starts for Newton's method on other sheets of the solution set; see ``Equations``."""
    rows = 6 * tables.point.size
    n = q.shape[1]
    F = np.empty(rows)
    J = np.empty((rows, n))
    ahead = np.empty((rows, n))
    count = 0
    for i in range(q.shape[0]):
        evaluate(tables, q[i], F, J)
        u, values, vt = np.linalg.svd(J)
        weak = n - 1 - dimension
        if weak >= values.size:
            continue
        v = vt[weak].copy()
        reach = np.inf
        for k in range(n):
            reach = min(reach, size[i, k] / max(abs(v[k]), 1e-300))
        # Along v the residual is about values[weak] s + bend s^2 / 2 in the direction u.
        evaluate(tables, q[i] + 1e-4 * v, F, ahead)
        bend = abs((u[:, weak] * ((ahead - J) @ v)).sum()) / 1e-4
        if 2.0 * values[weak] > 3.0 * reach * bend:
            continue
        for way in (-1.0, 1.0):
            starts[count] = q[i] + way * reach * v
            owner[count] = i
            count += 1
    return count


class Equations:
    """The loop equations of a system as a function of the configuration (system units).

    Attributes:
        system: The system.
        rows: Number of residuals, 6 L.
        independent: Independent combinations of the residuals, shape (M, 6 L).
        tables: The loop equations as ``evaluate`` takes them.
        unknown: What the constants leave unknown of the residuals (Euclidean norm).
    """

    @classmethod
    def of(cls, system: System) -> Equations:
        """The equations of a system; made once."""
        known: Equations | None = system.made.get("equations")
        if known is None:
            known = system.made["equations"] = cls(system)
        return known

    def __init__(self, system: System) -> None:
        self.system = s = system
        self.rows = 6 * len(s.point)
        self.independent = independent_rows(system)
        # The radii bound the translation and the rotation of a loop. Their norm counts for both:
        # least squares leave a part of what is unknown of lengths in the rotations.
        turn, place = s.unknown[:, 0], s.unknown[:, 1] + 2.0 * s.unknown[:, 0] * s.reach
        self.unknown = float(np.linalg.norm([turn, place]))
        C, C_first = s.C.copy(), s.C_first.copy()
        for l in np.flatnonzero(s.spherical):
            # What is left of the lengths is rounding: taken for lengths, it would be equations.
            C[s.offsets[l] : s.offsets[l + 1], 3:12:4] = 0.0
            C_first[l, 3:12:4] = 0.0
        self.tables = LoopEquations(
            s.translation, s.offsets, s.factor_variable, C, C_first, s.point, self.unknown
        )

    def __call__(self, q: Array) -> tuple[Array, Array]:
        """Residuals, shape (6 L,), and Jacobian, shape (6 L, V), at a configuration, shape (V,)."""
        F = np.empty(self.rows)
        J = np.empty((self.rows, self.system.size))
        evaluate(self.tables, np.ascontiguousarray(q, dtype=np.float64), F, J)
        return F, J

    def newton(self, q: Array, *, steps: int = 12, tolerance: float = 1e-12) -> Array | None:
        """Nearest solution by Gauss-Newton with minimum-norm steps; None if it does not come."""
        q = np.array(q, dtype=np.float64)
        return q if newton(self.tables, q, steps, tolerance) else None

    def newton_all(self, starts: Array) -> tuple[Array, BoolArray]:
        """Newton's method from many points, shape (N, V): where it came to, and whether it did."""
        q = np.array(starts, dtype=np.float64)
        came = np.zeros(len(q), dtype=np.bool_)
        newton_all(self.tables, q, came)
        return q, came

    def across_folds(self, dimension: int, q: Array, size: Array) -> tuple[Array, IntArray]:
        """Starts for Newton's method on other sheets of the solution set, near solutions.

        Two sheets that are near each other are so along the weakest direction of the Jacobian, and
        beyond their middle Newton's method leads to the other one.

        Args:
            dimension: Dimension of the solution set.
            q: Solutions, shape (N, V).
            size: How far to look from each, shape (N, V).

        Returns:
            Starts, shape (M, V), and the solution that each belongs to, shape (M,).
        """
        starts = np.empty((2 * len(q), self.system.size))
        owner = np.empty(2 * len(q), dtype=np.int64)
        count = across_folds(
            self.tables, dimension, np.ascontiguousarray(q), np.ascontiguousarray(size), starts,
            owner,
        )  # fmt: skip
        return starts[:count], owner[:count]

    def closes(self, F: Array, tolerance: float) -> bool:
        """Whether residuals, shape (6 L,), vanish, up to what the constants leave unknown."""
        return bool(np.all(np.abs(F) <= self.unknown + tolerance))

    def rank(self, J: Array, tolerance: float) -> int:
        """Rank of a Jacobian, shape (M, V): singular values over a part of the largest one."""
        values = np.linalg.svd(J, compute_uv=False)
        least = max(tolerance, self.unknown)
        return int((values > least * max(float(values[0]), 1e-300)).sum())

    def pinned(self, q: Array, direction: Array, value: float) -> Array | None:
        """The solution near a point at which ``direction @ q`` has a value; None if there is none.

        Args:
            q: The point, shape (V,).
            direction: A unit vector, shape (V,).
            value: The value.
        """
        q = np.array(q, dtype=np.float64)
        return q if pinned_newton(self.tables, q, direction, value) else None


def independent_rows(system: System) -> Array:
    """Independent combinations of the residuals, shape (M, 6 L).

    A loop in space has 6; one closed by a point 3; a spherical one (no reach) its 3 rotations. With
    all rotations about parallel axes only the rotation about them is left, and in a planar loop the
    translations in the plane: the other residuals vanish for every configuration.
    """
    blocks: list[Array] = []
    for l, point in enumerate(system.point):
        parallel = parallel_axis(system, l)
        place, turn = np.eye(3), np.eye(3)
        if parallel is not None:
            turn = parallel.axis[None]
            if parallel.planar:
                place = plane_of(parallel.axis)
        if system.spherical[l]:
            place = np.empty((0, 3))
        if point:
            turn = np.empty((0, 3))
        block = np.zeros((len(place) + len(turn), 6 * len(system.point)))
        block[: len(place), 6 * l : 6 * l + 3] = place
        block[len(place) :, 6 * l + 3 : 6 * l + 6] = turn
        blocks.append(block)
    return np.concatenate(blocks)
