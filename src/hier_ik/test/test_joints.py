"""The twelve joint types: motion, coordinates, and a closed loop through each."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hier_ik import JOINT_TYPES, Linkage, Solver
from hier_ik.joints import joint_coordinates, joint_motion

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_frame

TYPES = list(JOINT_TYPES)


def test_catalogue_is_complete():
    assert len(TYPES) == 12
    for kind in JOINT_TYPES.values():
        assert kind.dof + kind.rows == 6
        assert len(kind.angular) == kind.dof


@pytest.mark.parametrize("joint_type", TYPES)
@given(seed=st.integers(0, 10_000))
def test_coordinates_invert_motion_and_close(joint_type, seed):
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.4, 1.4, JOINT_TYPES[joint_type].dof)
    X = joint_motion(joint_type, q)
    np.testing.assert_allclose(joint_coordinates(joint_type, X), q, atol=1e-12)
    kind = JOINT_TYPES[joint_type]
    assert np.abs([X[i, 3] for i in range(3) if kind.held[i]] or [0]).max() < 1e-14


@pytest.mark.parametrize("closing", [True, False])
@pytest.mark.parametrize("joint_type", TYPES)
def test_a_closed_loop_through_each_type(joint_type, closing):
    """A loop that closes at one posture is pulled apart and closes again, to 1e-10."""
    rng = np.random.default_rng(100 + TYPES.index(joint_type))
    tree = ["spherical", "universal", "revolute", "prismatic"]
    closure = joint_type if closing else "revolute"
    if not closing:
        tree[2] = joint_type
    l = Linkage()
    l.add_link("l0")
    for i, t in enumerate(tree):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}",
            t,
            f"l{i}",
            f"l{i + 1}",
            origin=random_frame(rng),
            closure=False,
            value=rng.uniform(-0.5, 0.5, JOINT_TYPES[t].dof),
        )
    end = l.link_poses()["l4"]
    X = joint_motion(closure, rng.uniform(-0.5, 0.5, JOINT_TYPES[closure].dof))
    l.add_joint("c", closure, "l0", "l4", origin=end @ np.linalg.inv(X), closure=True)
    for name in l.values:
        l.values[name] = l.values[name] + rng.uniform(-0.15, 0.15, len(l.values[name]))
    s = Solver(l)
    result = s.solve(tolerance=1e-11)
    assert result.success, result.message
    poses = s.poses()
    X = np.linalg.inv(l.joints["c"].origin) @ poses["l4"]
    X0 = joint_motion(closure, joint_coordinates(closure, X))
    assert np.abs(X - X0).max() < 1e-10
    np.testing.assert_allclose(result.values["c"], joint_coordinates(closure, X), atol=1e-10)
