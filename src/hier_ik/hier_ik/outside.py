"""Components that are solved outside the compiled kernel: sparse, or dense as a baseline.

Three ways to take one step of a component with priority levels J_1 dq = -e_1, J_2 dq = -e_2, ...:

* SparseStep: per level a quasi-definite system [mu I, J'; J, -D] factored by qdldl; linear for any
  topology, and so the way for large entangled components.
* CholeskyStep: dense normal equations with N = mu (J'J + mu I)^-1 as the projector.
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
    """Dense normal equations; lower levels through N = mu (J'J + mu)^-1."""

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """See Step."""
        J = self.matrix(values)
        dq = np.zeros(self.n)
        done: list[tuple[Array, float]] = []
        for i, level in enumerate(self.levels):
            Jl = J[level]
            b = -rows[level] - Jl @ dq
            top = float(np.einsum("ij,ij->j", Jl, Jl).max(initial=0.0))
            if top == 0.0:
                continue
            if len(self.levels) > 1 and i == 0:
                mu = max(damping[i], 1e-9) * top
                A = Jl.T @ Jl
                A.reshape(-1)[:: self.n + 1] += mu
                factor = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
                dq = dq + scipy.linalg.cho_solve((factor, True), Jl.T @ b, check_finite=False)
                done.append((factor, mu))
                continue
            M = Jl.T
            for f, mu in done:
                M = mu * scipy.linalg.cho_solve((f, True), M, check_finite=False)
            S = Jl @ M if len(Jl) < self.n or done else None
            if S is None:
                A = Jl.T @ Jl
                A.reshape(-1)[:: self.n + 1] += max(damping[i], 1e-13) * top
                f = scipy.linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
                dq = dq + scipy.linalg.cho_solve((f, True), Jl.T @ b, check_finite=False)
                continue
            S.reshape(-1)[:: len(Jl) + 1] += max(damping[i], 1e-13) * max(float(S.max()), 1e-300)
            f = scipy.linalg.cholesky(S, lower=True, check_finite=False)
            dq = dq + M @ scipy.linalg.cho_solve((f, True), b, check_finite=False)
        dq[held != 0] = 0.0
        return dq


class SvdStep(_Dense):
    """Dense singular values, level by level in the null space of those before."""

    def solve(self, values: Array, rows: Array, damping: list[float], held: Array) -> Array:
        """See Step."""
        J = self.matrix(values)
        dq = np.zeros(self.n)
        P = np.eye(self.n)
        for i, level in enumerate(self.levels):
            Jl = J[level]
            b = -rows[level] - Jl @ dq
            U, s, Vt = np.linalg.svd(Jl @ P if i else Jl, full_matrices=False)
            if not len(s) or s[0] == 0.0:
                continue
            keep = s > 1e-9 * s[0]
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
            if promised <= 1e-11 * merit:
                return cost
            component_kinematics(I, X, k)
            component_rows(I, X, k, I[at.V])
            new = self._merit(P[at.V][: self.m])
            if new < merit:
                gain = (merit - new) / promised
                if gain > 0.75:
                    P[at.LAM][k] = max(0.25 * lam, LAMBDA_MIN)
                elif gain < 0.25:
                    P[at.LAM][k] = min(4.0 * max(lam, 1e-6), LAMBDA_MAX)
                return cost
            q[self.columns] = saved
            component_kinematics(I, X, k)
            P[at.LAM][k] = min(10.0 * max(lam, 1e-4), LAMBDA_MAX)
        P[at.STEP][k] = 0.0
        return cost

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
