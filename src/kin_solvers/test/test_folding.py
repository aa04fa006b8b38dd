"""Folded constants: the enclosure holds every product of what the constants stand for."""

import mpmath as mp
import numpy as np
import pytest

from kin_core.rotations import exp_so3, inverse_transform, transform
from kin_solvers.folding import SPREAD, fold

mp.mp.dps = 50


def random_transform(rng, size):
    return transform(exp_so3(rng.normal(size=3)), size * rng.normal(size=3))


def meant(rng, stored, part):
    """A rigid transform in 50 digits that a stored one stands for: ``part`` of the spread away."""
    M = mp.matrix(stored.tolist())
    R = M[:3, :3]
    for _ in range(6):
        R = R * (3 * mp.eye(3) - R.T * R) / 2
    axis = rng.normal(size=3)
    axis *= 0.999 * part * SPREAD / np.sqrt(2.0) / np.linalg.norm(axis)
    x, y, z = (mp.mpf(float(v)) for v in axis)
    skew = mp.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn = mp.eye(3) + skew + skew * skew / 2
    for _ in range(2):
        turn = turn * (3 * mp.eye(3) - turn.T * turn) / 2
    M[:3, :3] = R * turn
    direction = rng.normal(size=3)
    direction *= 0.999 * part * SPREAD * np.linalg.norm(stored[:3, 3]) / np.linalg.norm(direction)
    for r in range(3):
        M[r, 3] += mp.mpf(float(direction[r]))
    return M


def norm(matrix):
    return mp.sqrt(sum(x * x for x in matrix))


@pytest.mark.parametrize("part", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_enclosure_holds_what_is_meant(seed, part):
    rng = np.random.default_rng(seed)
    K = random_transform(rng, 10.0 ** rng.uniform(0.0, 5.5))
    small = [random_transform(rng, 10.0 ** rng.uniform(-4.0, 0.0)) for _ in range(2)]
    stored = [K, small[0], inverse_transform(K), small[1]]
    folded = fold([[(m, False) for m in stored]])[0]
    product = mp.eye(4)
    for matrix in stored:
        product = product * meant(rng, matrix, part)
    inverse = product**-1
    for exact, middle, radius in (
        (product, folded.matrix, folded.translation),
        (inverse, folded.inverse, folded.inverse_translation),
    ):
        error = exact - mp.matrix(middle.tolist())
        assert norm(error[:3, :3]) <= folded.rotation
        assert norm(error[:3, 3]) <= radius
    assert folded.length >= norm(product[:3, 3])


def test_the_enclosure_is_no_wider_than_the_constants_ask():
    """A table of an arm keeps 15 digits; a frame far away costs what its length costs."""
    rng = np.random.default_rng(9)
    near = fold([[(random_transform(rng, 0.5), False) for _ in range(3)]])[0]
    assert near.rotation < 4 * SPREAD
    assert near.translation < 8 * SPREAD
    K = random_transform(rng, 1e4)
    far = fold([[(K, False), (inverse_transform(K), False)]])[0]
    assert np.abs(far.matrix - np.eye(4)).max() < 1e-11
    assert 1e4 * SPREAD < far.translation < 20e4 * SPREAD


def test_no_constants_are_the_identity_exactly():
    nothing, something = fold([[], [(np.eye(4), False)]])
    assert something.rotation > 0.0
    assert np.array_equal(nothing.matrix, np.eye(4))
    assert (nothing.rotation, nothing.translation, nothing.length) == (0.0, 0.0, 0.0)
