"""Components that are solved outside the compiled kernel: sparse, or dense as a baseline.

Three ways to take one step of a component with priority levels J_1 dq = -e_1, J_2 dq = -e_2, ...:

* SparseStep: per level a quasi-definite system [mu I, J'; J, -D] factored by qdldl; linear for any
  topology, and so the way for large entangled components.
* CholeskyStep: dense normal equations with N = mu (J'J + mu I)^-1, twice, as the projector.
* SvdStep: dense singular values with exact projectors; what the paper calls the usual way.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import qdldl
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from hier_ik import layout as at
from hier_ik.compile import Packed
from hier_ik.iteration import component_matrix
from hier_ik.kernels import (
    LAMBDA_MAX,
    LAMBDA_MIN,
    NOTHING,
    SHORT,
    apply_step,
    component_kinematics,
    component_rows,
    limit_step,
)

__all__ = ["CholeskyStep", "OutsideComponent", "SparseStep", "SvdStep"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Step(Protocol):
    """One way to solve the levels of a component."""

    def __init__(self, indptr: Ints, indices: Ints, columns: int, levels: list[slice]) -> None: ...

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """Return dq of all columns; the columns of ``values`` that are held are zero already."""
        ...


class SparseStep:
    """Quasi-definite systems, one per level, with a pattern that is analysed once."""

    #: How much heavier the rows of higher levels are while a lower one is solved.
    HARD = 1e-6

    def __init__(self, indptr: Ints, indices: Ints, columns: int, levels: list[slice]) -> None:
        self.n, self.levels = columns, levels
        self.systems: list[tuple[int, Ints, Ints, Ints, Ints]] = []
        self.solvers: list[Any] = [None] * len(levels)
        for level in levels:
            m = level.stop
            data_of: list[Ints] = []
            place: list[Ints] = []
            index: list[Ints] = [np.arange(columns)]
            pointer = [np.arange(columns + 1)]
            end = columns
            for r in range(m):
                part = np.arange(indptr[r], indptr[r + 1])
                part = part[np.argsort(indices[part], kind="stable")]
                data_of.append(part)
                place.append(end + np.arange(len(part)))
                index.append(np.append(indices[part], columns + r))
                end += len(part) + 1
                pointer.append(np.array([end]))
            empty = np.empty(0, np.int64)
            self.systems.append(
                (
                    end,
                    np.concatenate(index).astype(np.int32),
                    np.concatenate(pointer).astype(np.int32),
                    np.concatenate(data_of) if data_of else empty,
                    np.concatenate(place) if place else empty,
                )
            )

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """See Step."""
        n = self.n
        dq = np.zeros(n)
        wanted = -rows.copy()
        for i, level in enumerate(self.levels):
            end, index, pointer, data_of, place = self.systems[i]
            m = level.stop
            mine = values[data_of]
            top = float((mine * mine).max(initial=0.0))
            if top == 0.0:
                continue
            data = np.empty(end)
            data[:n] = max(damping[i], 1e-9) * top
            data[place] = mine
            data[pointer[n + 1 :] - 1] = np.where(np.arange(m) < level.start, -self.HARD, -1.0)
            K = scipy.sparse.csc_matrix((data, index, pointer), shape=(n + m, n + m))
            if self.solvers[i] is None:
                self.solvers[i] = qdldl.Solver(K, upper=True)
            else:
                self.solvers[i].update(K, upper=True)
            rhs = np.concatenate([np.zeros(n), wanted[:m]])
            x = self.solvers[i].solve(rhs)
            full = K + scipy.sparse.triu(K, 1).T
            # Heavy rows give way by HARD times their multiplier; taking that back (the method of
            # multipliers) leaves the square of it.
            rhs[n : n + level.start] -= self.HARD * x[n : n + level.start]
            x += self.solvers[i].solve(rhs - full @ x)
            dq = x[:n]
            J = scipy.sparse.csc_matrix(K[:n, n:]).T
            wanted[:m] = J @ dq  # what the higher levels keep from now on
        dq[held != 0] = 0.0
        return dq


class _Dense:
    """What the dense baselines share: the matrix of all levels."""

    def __init__(self, indptr: Ints, indices: Ints, columns: int, levels: list[slice]) -> None:
        m = len(indptr) - 1
        self.n, self.levels = columns, levels
        self.J = np.zeros((m, columns))
        self.flat = np.repeat(np.arange(m), np.diff(indptr)) * columns + indices

    def matrix(self, values: Array) -> Array:
        """The dense Jacobian; entries outside the pattern stay zero."""
        self.J.reshape(-1)[self.flat] = values
        return self.J


class CholeskyStep(_Dense):
    """Dense normal equations; lower levels through the null space of those before.

    N = mu (J'J + mu)^-1 is a projector but for mu / s^2 along a singular value s. Applied twice,
    with lower levels damped by much more than is left, it keeps the higher level to about 1e-9 of
    the step.
    """

    #: Least damping, as a share of the largest squared column (or row) norm.
    LEAST = 1e-9

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """See Step."""
        J = self.matrix(values)
        dq = np.zeros(self.n)
        first: tuple[Array, float] | None = None  # factor of J'J + mu, and mu
        later: list[tuple[Array, Array, Array]] = []  # J, N J', factor of J N J' + mu

        def project(v: Array) -> Array:
            if first is not None:
                factor, mu = first
                v = mu * mu * _solve(factor, _solve(factor, v))
            for Jl, M, factor in later:
                v = v - M @ _solve(factor, Jl @ v)
            return v

        for i, level in enumerate(self.levels):
            Jl = J[level]
            b = -rows[level] - Jl @ dq
            last = i + 1 == len(self.levels)
            share = max(damping[i], self.LEAST)
            if i == 0 and (not last or len(Jl) >= self.n):
                mu = share * float(np.einsum("ij,ij->j", Jl, Jl).max(initial=0.0))
                if mu == 0.0:
                    continue
                first = (_factor(Jl.T @ Jl, mu), mu)
                step = _solve(first[0], Jl.T @ b)
                if share == self.LEAST:  # refine: what is left is mu^2 / s^4 of the residual
                    step = step + _solve(first[0], Jl.T @ (b - Jl @ step))
                dq = dq + step
                continue
            mu = share * float(np.einsum("ij,ij->i", Jl, Jl).max(initial=0.0))
            if mu == 0.0:
                continue
            M = project(Jl.T)
            factor = _factor(Jl @ M, mu)
            dq = dq + M @ _solve(factor, b)
            later.append((Jl, M, factor))
        dq[held != 0] = 0.0
        return dq


def _factor(A: Array, mu: float) -> Array:
    """The lower Cholesky factor of A + mu I; A is overwritten."""
    A.reshape(-1)[:: len(A) + 1] += mu
    factor: Array = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    return factor


def _solve(factor: Array, b: Array) -> Array:
    x: Array = scipy.linalg.cho_solve((factor, True), b, check_finite=False)
    return x


class SvdStep(_Dense):
    """Dense singular values, level by level in the null space of those before."""

    #: Singular values below this share of the largest row count as zero.
    RANK = 1e-9

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """See Step."""
        J = self.matrix(values)
        dq = np.zeros(self.n)
        P = np.eye(self.n)
        for i, level in enumerate(self.levels):
            Jl = J[level]
            b = -rows[level] - Jl @ dq
            largest = float(np.sqrt(np.einsum("ij,ij->i", Jl, Jl).max(initial=0.0)))
            U, s, Vt = np.linalg.svd(Jl @ P if i else Jl, full_matrices=False)
            keep = s > self.RANK * largest  # of the rows as they are: projected ones may be noise
            if not keep.any():
                continue
            s, U, Vt = s[keep], U[:, keep], Vt[keep]
            mu = max(damping[i], 1e-13) * s[0] ** 2
            dq = dq + Vt.T @ (s / (s * s + mu) * (U.T @ b))
            if i + 1 < len(self.levels):
                P = P - Vt.T @ Vt
        dq[held != 0] = 0.0
        return dq


class OutsideComponent:
    """One component with its pattern; step() does what solve_single() does in the kernel."""

    def __init__(self, packed: Packed, k: int, method: type[Step]) -> None:
        self.packed, self.k = packed, k
        comp = packed[at.COMPS][k]
        self.m, self.n = int(comp[at.ROWS]), int(comp[at.COLUMNS])
        self.dofs = int(packed.I[at.COMP_DOFS] + comp[at.DOF_BEGIN])
        self.columns = packed[at.COMP_DOFS][comp[at.DOF_BEGIN] : comp[at.DOF_END]]
        pointer, indices = [0], []
        level_rows: dict[int, int] = {}
        for c in packed[at.COMP_CLOSURES][comp[at.CLOSURE_BEGIN] : comp[at.CLOSURE_END]]:
            row = packed[at.CLOSURES][c]
            chain = packed[at.CHAIN][row[5] : row[6], 2]
            for _ in range(int(row[4])):
                indices.append(chain)
                pointer.append(pointer[-1] + len(chain))
            level_rows[int(row[7])] = level_rows.get(int(row[7]), 0) + int(row[4])
        self.indptr = np.array(pointer, np.int64)
        self.indices = np.concatenate(indices) if indices else np.empty(0, np.int64)
        self.levels: list[slice] = []
        begin = 0
        for level in sorted(level_rows):
            self.levels.append(slice(begin, begin + level_rows[level]))
            begin += level_rows[level]
        self.method = method(self.indptr, self.indices, self.n, self.levels)
        self.row_of = np.repeat(np.arange(self.m), np.diff(self.indptr))

    def _merit(self, rows: NDArray[Any]) -> float:
        return sum(
            0.1**i * float(np.linalg.norm(rows[level])) for i, level in enumerate(self.levels)
        )

    def step(self) -> float:
        """One damped step with limits and gain control; returns the squared residual before it."""
        P, k = self.packed, self.k
        I, X = P.I, P.X
        cost = float(component_matrix(I, X, k))
        P[at.STEP][k] = 0.0
        if cost < NOTHING or self.n == 0:
            return cost
        rows = P[at.E][: self.m].copy()
        values = P[at.W][: len(self.indices)].copy()
        costs = [float(rows[level] @ rows[level]) for level in self.levels]
        merit = self._merit(rows)
        q = P[at.Q]
        for _ in range(8):
            lam = float(P[at.LAM][k])
            dq = self._within_limits(values, rows, [lam * min(c, 1.0) for c in costs])
            expected = rows + np.bincount(self.row_of, values * dq[self.indices], minlength=self.m)
            promised = merit - self._merit(expected)
            largest = float(np.max(np.abs(dq) / P[at.STEP_MAX][self.columns], initial=0.0))
            P[at.STEP][k] = largest
            saved = q[self.columns].copy()
            apply_step(I, X, self.n, self.dofs, I[at.DQ])
            uphill = promised < -1e-11 * merit and largest > SHORT
            if promised <= 1e-11 * merit and not uphill:
                return cost
            component_kinematics(I, X, k)
            component_rows(I, X, k, I[at.V])
            new = self._merit(P[at.V][: self.m])
            if new < merit and not uphill:
                gain = (merit - new) / promised
                if gain > 0.75:
                    P[at.LAM][k] = max(0.25 * lam, LAMBDA_MIN)
                elif gain < 0.25:
                    P[at.LAM][k] = min(4.0 * max(lam, 1e-6), LAMBDA_MAX)
                return cost
            q[self.columns] = saved
            component_kinematics(I, X, k)
            P[at.LAM][k] = min(10.0 * max(lam, 1e-4), LAMBDA_MAX / min(cost, 1.0))
        return cost  # not at rest: the next iteration goes on with the damping reached here

    def _within_limits(self, values: Array, rows: Array, damping: list[float]) -> Array:
        """Clamp, lock and solve again until no limit is passed; the step is also in DQ."""
        P = self.packed
        held, dq = P[at.HELD][: self.n], P[at.DQ][: self.n]
        held[:] = 0
        dq[:] = 0.0
        for _ in range(self.n + 1):
            fixed = held != 0
            active = np.where(fixed[self.indices], 0.0, values) if fixed.any() else values
            moved = np.where(fixed, dq, 0.0)
            shifted = rows
            if moved.any():
                shifted = rows + np.bincount(
                    self.row_of, values * moved[self.indices], minlength=self.m
                )
            new = self.method.solve(active, shifted, damping, held)
            dq[~fixed] = new[~fixed]
            if limit_step(P.I, P.X, self.n, self.dofs) == 0:
                break
        return dq.copy()
