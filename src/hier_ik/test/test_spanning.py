"""Finding the spanning tree, and turning joints round for it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import JOINT_TYPES, Linkage, assign_roles
from hier_ik.joints import joint_motion
from hier_ik.spanning import reversed_joint

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_frame

TYPES = list(JOINT_TYPES)


@pytest.mark.parametrize("joint_type", [t for t in TYPES if JOINT_TYPES[t].reversible])
def test_reversed_joints_keep_their_coordinates(joint_type):
    rng = np.random.default_rng(5)
    l = Linkage()
    l.add_link("a")
    l.add_link("b")
    j = l.add_joint(
        "j",
        joint_type,
        "a",
        "b",
        origin=random_frame(rng),
        child_origin=random_frame(rng),
        closure=False,
    )
    q = rng.uniform(-1, 1, j.dof)
    r = reversed_joint(j)
    forth = j.origin @ joint_motion(j.type, q) @ np.linalg.inv(j.child_origin)
    back = r.origin @ joint_motion(r.type, q) @ np.linalg.inv(r.child_origin)
    np.testing.assert_allclose(forth @ back, np.eye(4), atol=1e-13)


def test_roles_are_found_and_joints_turned():
    """A four-bar written without roles, one joint the wrong way round."""
    l = Linkage()
    for n in ("g", "a", "b", "c"):
        l.add_link(n)
    l.add_joint("1", "revolute", "g", "a")
    l.add_joint("2", "revolute", "b", "a", xyz=(-1, 0, 0))  # seen from b
    l.add_joint("3", "revolute", "b", "c", xyz=(0, -1, 0))
    l.add_joint("4", "spherical", "c", "g", child_origin=(1.0, 0, 0), xyz=(0, -1, 0))
    assert assign_roles(l)
    assert [j.name for j in l.closure_joints()] == ["4"]
    assert l.joints["2"].parent == "a"
    assert not assign_roles(l)
