"""Regions of configurations along the directions of a Jacobian, and which boxes lie in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.intervals import helper

__all__ = ["Region", "Regions", "held"]

Array = NDArray[np.float64]


@helper
def held(
    regions: Any, cyclic: NDArray[np.bool_], centre: Array, directions: Array, half: Array
) -> bool:
    """Whether {centre + D s} with |s| <= half lies in a region, whole turns of angles apart.

    Args:
        regions: Regions, from ``Regions.tables``.
        cyclic: Which variables are angles on the full circle, shape (V,).
        centre: Its centre, shape (V,).
        directions: The matrix D, shape (V, V).
        half: Half of its sides, shape (V,).
    """
    x, V, lower, upper = regions
    n = centre.size
    gap = np.empty(n)
    for r in range(x.shape[0]):
        # The inverse of V is its transpose, and gap is exact, but for a few units in the last
        # place.
        pad = 0.0
        for k in range(n):
            gap[k] = centre[k] - x[r, k]
            if cyclic[k]:
                gap[k] -= 2.0 * math.pi * round(gap[k] / (2.0 * math.pi))
            pad += 1e-14 * (abs(gap[k]) + half[k]) + 4e-15 * (1.0 + abs(x[r, k]) + abs(centre[k]))
        inside = True
        for l in range(n):
            middle = 0.0
            reach = pad
            for k in range(n):
                middle += V[r, k, l] * gap[k]
                along = 0.0
                for j in range(n):
                    along += V[r, j, l] * directions[j, k]
                reach += abs(along) * half[k]
            if middle - reach < lower[r, l] or middle + reach > upper[r, l]:
                inside = False
                break
        if inside:
            return True
    return False


@njit(cache=True, nogil=True)
def hold(
    regions: Any, cyclic: NDArray[np.bool_], lower: Array, upper: Array, out: NDArray[np.bool_]
) -> None:
    """Which boxes, shape (N, V), lie in one of some regions; see ``held``."""
    axes = np.eye(lower.shape[1])
    for i in range(lower.shape[0]):
        middle, half = 0.5 * (lower[i] + upper[i]), 0.5 * (upper[i] - lower[i])
        out[i] = held(regions, cyclic, middle, axes, half)


@dataclass(frozen=True)
class Region:
    """The points x + V s with s in a box around zero (system units).

    Attributes:
        x: Its origin, shape (V,).
        V: Its directions, a nearly orthogonal matrix, shape (V, V).
        lower: Lower ends of the box of s, shape (V,).
        upper: Upper ends of the box of s, shape (V,).
    """

    x: Array
    V: Array
    lower: Array
    upper: Array

    @property
    def width(self) -> float:
        """Its longest side."""
        return float((self.upper - self.lower).max())

    def _seen_from(self, other: Region, cyclic: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Middle and half-widths of a box around it in the coordinates s of another one."""
        gap = self.x - other.x
        gap = gap - np.where(cyclic, np.round(gap / (2.0 * math.pi)) * (2.0 * math.pi), 0.0)
        M = other.V.T @ self.V
        half = np.abs(M) @ (0.5 * (self.upper - self.lower))
        pad = 1e-14 * float(np.abs(gap).sum() + half.sum() + 1.0 + np.abs(self.x).max())
        return other.V.T @ gap + M @ (0.5 * (self.lower + self.upper)), half + pad

    def inside(self, other: Region, cyclic: NDArray[np.bool_]) -> bool:
        """Whether it lies in another one, whole turns of cyclic angles apart."""
        middle, half = self._seen_from(other, cyclic)
        return bool(np.all((middle - half >= other.lower) & (middle + half <= other.upper)))

    def apart(self, other: Region, cyclic: NDArray[np.bool_]) -> bool:
        """Whether it certainly has no point in common with another one."""
        middle, half = self._seen_from(other, cyclic)
        return bool(np.any((middle - half > other.upper) | (middle + half < other.lower)))


class Regions:
    """Regions in each of which at most one solution lies."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self._x, self._V = np.empty((8, size)), np.empty((8, size, size))
        self._lower, self._upper = np.empty((8, size)), np.empty((8, size))

    def add(self, region: Region) -> None:
        """Add one."""
        if self.count == len(self._x):
            self._x, self._V = np.repeat(self._x, 2, axis=0), np.repeat(self._V, 2, axis=0)
            self._lower = np.repeat(self._lower, 2, axis=0)
            self._upper = np.repeat(self._upper, 2, axis=0)
            for array in (self._x, self._V, self._lower, self._upper):
                array[: self.count] = array[: 2 * self.count : 2].copy()
        self._x[self.count], self._V[self.count] = region.x, region.V
        self._lower[self.count], self._upper[self.count] = region.lower, region.upper
        self.count += 1

    @property
    def tables(self) -> tuple[Array, Array, Array, Array]:
        """Origins, directions, lower and upper ends, as ``held`` takes them."""
        k = self.count
        return self._x[:k], self._V[:k], self._lower[:k], self._upper[:k]

    def hold(self, lower: Array, upper: Array, cyclic: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which boxes, shape (N, V), lie in one of them, whole turns apart; shape (N,)."""
        out = np.zeros(len(lower), dtype=np.bool_)
        hold(self.tables, cyclic, np.ascontiguousarray(lower), np.ascontiguousarray(upper), out)
        return out
