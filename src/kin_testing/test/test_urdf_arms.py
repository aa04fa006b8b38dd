"""Arms that nobody chose: each is one, and the seed decides which."""

import numpy as np
import pytest

from kin_core.inertia import moving_bodies
from kin_core.urdf import load_urdf
from kin_testing.urdf_arms import random_urdf


@pytest.mark.parametrize("n", [1, 4, 12])
@pytest.mark.parametrize("seed", range(10))
def test_every_arm_has_as_many_joints_and_inertias_that_bodies_can_have(seed, n):
    bodies, _ = moving_bodies(load_urdf(random_urdf(seed, n)), "base", "tip")
    assert len(bodies) == n
    for body in bodies:
        moments = np.linalg.eigvalsh(body.inertia.tensor)
        assert body.inertia.mass > 0.0
        assert moments[0] > 0.0
        assert moments[2] <= moments[0] + moments[1] + 1e-12


def test_the_seed_decides():
    assert random_urdf(1, 6) == random_urdf(1, 6)
    assert random_urdf(1, 6) != random_urdf(2, 6)
