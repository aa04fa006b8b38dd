"""Dense ways to take one step of a component with priority levels; the flat modes use them.

* CholeskyStep: normal equations with N = mu (J'J + mu I)^-1, twice, as the projector.
* SvdStep: singular values with exact projectors; what the paper calls the usual way.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from hier_ik.tables import Array, Ints

__all__ = ["CholeskyStep", "SvdStep"]


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

    def solve(self, values: Array, rows: Array, damping: list[float], held: Ints) -> Array:
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

    def solve(self, values: Array, rows: Array, damping: list[float], held: Ints) -> Array:
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
