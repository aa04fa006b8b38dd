"""Components that are too large or too entangled for the compiled kernel, solved from Python.

SparseStep takes one step of a component with priority levels J_1 dq = -e_1, J_2 dq = -e_2, ... by
a quasi-definite system [mu I, J'; J, -D] per level, factored by qdldl: linear for any topology.
dense.py has other ways, for comparison.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import qdldl
import scipy.sparse
from numpy.typing import NDArray

from hier_ik.component import task_matrix
from hier_ik.steps import (
    NOTHING,
    SHORT,
    TRIALS,
    apply_step,
    damp_more,
    follow_gain,
    limit_step,
    restore,
    try_step,
)
from hier_ik.tables import Array, Ints, Tables

__all__ = ["FallbackComponent", "SparseStep", "Step"]


class Step(Protocol):
    """One way to solve the levels of a component."""

    def __init__(self, indptr: Ints, indices: Ints, columns: int, levels: list[slice]) -> None: ...

    def solve(self, values: Array, rows: Array, damping: list[float], held: Ints) -> Array:
        """Return dq of all columns; the columns of ``values`` that are held are zero already."""
        ...


class SparseStep:
    """Quasi-definite systems, one per level, with a pattern that is analysed once."""

    #: How much heavier the rows of higher levels are while a lower one is solved.
    HARD = 1e-6

    def __init__(self, indptr: Ints, indices: Ints, columns: int, levels: list[slice]) -> None:
        self.n, self.levels = columns, levels
        self.systems: list[tuple[int, NDArray[np.int32], NDArray[np.int32], Ints, Ints]] = []
        self.solvers: list[Any] = [None] * len(levels)
        for level in levels:
            m, n = level.stop, int(indptr[level.stop])
            # Numbered entries show where those of J' go; the two diagonals are negative.
            J = scipy.sparse.csr_array(
                (np.arange(1.0, n + 1.0), indices[:n], indptr[: m + 1]), shape=(m, columns)
            )
            first, second = (-scipy.sparse.eye_array(size) for size in (columns, m))
            K = scipy.sparse.block_array([[first, J.T], [None, second]], format="csc")
            K.sort_indices()
            place = np.flatnonzero(K.data > 0.0).astype(np.int64)
            data_of = K.data[place].astype(np.int64) - 1
            index, pointer = K.indices.astype(np.int32), K.indptr.astype(np.int32)
            self.systems.append((K.nnz, index, pointer, data_of, place))

    def solve(self, values: Array, rows: Array, damping: list[float], held: Ints) -> Array:
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


class FallbackComponent:
    """One component with its pattern; step() does what solve_single() does in the kernel."""

    def __init__(self, tables: Tables, k: int, method: type[Step]) -> None:
        self.tables, self.record = tables, tables.components[k]
        c = self.record
        self.m, self.n = int(c["rows"]), int(c["columns"])
        self.columns = tables.index[c["freedom_begin"] : c["freedom_end"]]
        closures = tables.closures[c["closure_begin"] : c["closure_end"]]
        chains = [tables.chain["column"][f["chain_begin"] : f["chain_end"]] for f in closures]
        counts = closures["rows"].tolist()
        self.indices = np.concatenate(
            [chain for chain, rows in zip(chains, counts, strict=True) for _ in range(rows)]
            or [np.empty(0, np.int64)]
        )
        widths = np.repeat([len(chain) for chain in chains], counts).astype(np.int64)
        self.indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
        level = np.unique(closures["level"], return_inverse=True)[1]
        ends = np.cumsum(np.bincount(level, closures["rows"])).astype(int).tolist()
        self.levels = [slice(b, e) for b, e in pairwise([0, *ends])]
        self.method = method(self.indptr, self.indices, self.n, self.levels)
        self.row_of = np.repeat(np.arange(self.m), widths)
        first = int(closures["matrix"][0]) if len(closures) else 0
        self._values = tables.work[first : first + len(self.indices)]
        self._rows = tables.work[c["e"] : c["e"] + self.m]
        self._new_rows = tables.work[c["v"] : c["v"] + self.m]
        self._dq = tables.work[c["dq"] : c["dq"] + self.n]
        self._held = tables.index[c["held"] : c["held"] + self.n]

    def _merit(self, rows: NDArray[Any]) -> float:
        return sum(
            0.1**i * float(np.linalg.norm(rows[level])) for i, level in enumerate(self.levels)
        )

    def step(self) -> float:
        """One damped step with limits and gain control; returns the squared residual before it."""
        t, c = self.tables, self.record
        task_matrix(t.bodies, t.freedoms, t.closures, t.chain, t.work, c["e"], c)
        cost = float(c["cost"])
        c["step"] = 0.0
        if cost < NOTHING or self.n == 0:
            return cost
        rows, values = self._rows.copy(), self._values.copy()
        costs = [float(rows[level] @ rows[level]) for level in self.levels]
        merit = self._merit(rows)
        most = t.freedoms["step_max"][self.columns]
        for _ in range(TRIALS):
            damping = float(c["damping"])
            dq = self._within_limits(values, rows, [damping * min(x, 1.0) for x in costs])
            expected = rows + np.bincount(self.row_of, values * dq[self.indices], minlength=self.m)
            promised = merit - self._merit(expected)
            largest = float(np.max(np.abs(dq) / most, initial=0.0))
            c["step"] = largest
            uphill = promised < -1e-11 * merit and largest > SHORT
            if promised <= 1e-11 * merit and not uphill:
                apply_step(t.freedoms, t.index, t.work, c, c["dq"])
                return cost
            try_step(t.bodies, t.freedoms, t.closures, t.index, t.work, c)
            new = self._merit(self._new_rows)
            if new < merit and not uphill:
                follow_gain(c, (merit - new) / promised)
                return cost
            restore(t.bodies, t.freedoms, t.index, t.work, c)
            damp_more(c, cost)
        return cost  # not at rest: the next iteration goes on with the damping reached here

    def _within_limits(self, values: Array, rows: Array, damping: list[float]) -> Array:
        """Clamp, lock and solve again until no limit is passed."""
        t, held, dq = self.tables, self._held, self._dq
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
            if limit_step(t.freedoms, t.index, t.work, self.record) == 0:
                break
        return dq.copy()
