"""Constants between two motions multiplied together, with a bound on what that leaves unknown.

A constant of a mechanism stands for every rigid transform near it: one whose rotation differs from
the nearest rotation of the stored matrix by at most ``SPREAD`` (Frobenius norm), and whose
translation t differs by at most ``SPREAD`` |t|. Products are taken in 106 bits, so that only this
spread counts; where lengths cancel, it is larger than the rounding of what is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_solvers.double_double import add, helper, jit, product, rigid, times

__all__ = ["SPREAD", "UNIT_ROUNDOFF", "Folded", "fold"]

Array = NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-53
#: Distance from its stored form within which every constant is covered, relative.
SPREAD = 16.0 * UNIT_ROUNDOFF
#: What is added to a bound for the rounding of the bound itself, relative.
_UP = 1.0 + 1e-9


@dataclass(frozen=True)
class Folded:
    """An enclosure of a product of constants.

    Attributes:
        matrix: Middle, shape (4, 4).
        inverse: Middle of the inverse, shape (4, 4).
        rotation: Largest distance of the rotation from its middle (Frobenius norm), of the inverse
            from its middle as well.
        translation: Largest distance of the translation from its middle [m].
        inverse_translation: The same for the inverse [m].
    """

    matrix: Array
    inverse: Array
    rotation: float
    translation: float
    inverse_translation: float

    @cached_property
    def length(self) -> float:
        """Largest length of the translation [m]."""
        return (float(np.linalg.norm(self.matrix[:3, 3])) + self.translation) * _UP


def fold(gaps: Sequence[Sequence[tuple[Array, bool]]]) -> list[Folded]:
    """Products of lists of constants, each with whether it is exact or stands for a ball.

    Args:
        gaps: For each product its factors: shape (4, 4), and whether it is exact (a permutation).
    """
    factors = [factor for gap in gaps for factor in gap]
    stack = np.array([m for m, _ in factors]).reshape(-1, 4, 4)
    spread = np.array([0.0 if exact else SPREAD for _, exact in factors])
    ends = np.cumsum([len(gap) for gap in gaps])
    matrix, inverse = np.zeros((len(gaps), 4, 4)), np.zeros((len(gaps), 4, 4))
    radii = np.zeros((len(gaps), 3))
    _fold_all(stack, spread, ends, matrix, inverse, radii)
    return [Folded(matrix[k], inverse[k], *(float(r) for r in radii[k])) for k in range(len(gaps))]


@jit
def _fold_all(stack: Any, spread: Any, ends: Any, matrix: Any, inverse: Any, radii: Any) -> Any:
    """Middles of products and of their inverses, and the radii of ``Folded``."""
    start = 0
    for k in range(ends.size):
        end = ends[k]
        a, b = _fold(stack[start:end], spread[start:end], matrix[k], inverse[k])
        if end > start:
            size = math.sqrt(matrix[k, 0, 3] ** 2 + matrix[k, 1, 3] ** 2 + matrix[k, 2, 3] ** 2)
            # Rounding the middle to doubles: u in every entry.
            a = (a + 2.0 * UNIT_ROUNDOFF) * _UP
            radii[k, 0] = a
            radii[k, 1] = (b + UNIT_ROUNDOFF * size) * _UP
            radii[k, 2] = (b + a * size + 2.0 * UNIT_ROUNDOFF * size) * _UP
        start = end


@helper
def _fold(stack: Any, spread: Any, matrix: Any, inverse: Any) -> Any:
    """Middle of one product and of its inverse; returns its radii (rotation, translation)."""
    M = np.zeros((3, 4, 2))
    for i in range(3):
        M[i, i, 0] = 1.0
    G = np.empty((3, 4, 2))
    X = np.empty((3, 4, 2))
    a = 0.0
    b = 0.0
    for k in range(stack.shape[0]):
        rigid(stack[k], G)
        product(M, G, X)
        M[:, :, :] = X
        size = math.sqrt(G[0, 3, 0] ** 2 + G[1, 3, 0] ** 2 + G[2, 3, 0] ** 2)
        mine = spread[k] * size
        # (R + dR)(t' + dt') + t + dt, and (R + dR)(R' + dR'); 1e-24 for the middle (see ``rigid``)
        b += a * (size + mine) + mine + 1e-24 * size
        a += spread[k] + a * spread[k] + 1e-24
    for i in range(3):
        for j in range(4):
            matrix[i, j] = M[i, j, 0]
        for j in range(3):
            inverse[j, i] = M[i, j, 0]
        s = 0.0
        e = 0.0
        for m in range(3):
            x, y = times(M[m, i, 0], M[m, i, 1], M[m, 3, 0], M[m, 3, 1])
            s, e = add(s, e, -x, -y)
        inverse[i, 3] = s
    matrix[3, 3] = 1.0
    inverse[3, 3] = 1.0
    return a, b
