"""Poses and axes of the compiled kinematics, against plain products of transforms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hier_ik import JOINT_TYPES, Solver
from hier_ik.bodies import pose_rows, unpack
from hier_ik.kinematics import kinematics

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import chain_with

TYPES = list(JOINT_TYPES)


def test_solver_poses_equal_products_of_transforms():
    rng = np.random.default_rng(3)
    l = chain_with(TYPES, "general", rng)
    poses, plain = Solver(l).poses(), l.link_poses()
    for name in l.links:
        np.testing.assert_allclose(poses[name], plain[name], atol=1e-12)


@pytest.mark.parametrize("joint_type", [t for t in TYPES if JOINT_TYPES[t].dof])
@given(seed=st.integers(0, 10_000))
def test_an_axis_is_the_velocity_of_its_freedom(joint_type, seed):
    """Turned by a small angle about its axis, or moved along it, a body is where it says."""
    rng = np.random.default_rng(seed)
    s = Solver(chain_with([joint_type], "general", rng))
    t, h = s.tables, 1e-6
    t.freedoms["q"] *= float(rng.choice([0.01, 1.0, 2.5]))  # balls use series for small angles
    order = np.arange(1, len(t.bodies))

    def poses(q):
        t.freedoms["q"] = q
        kinematics(t.bodies, t.freedoms, order, 0, len(order))
        return [unpack(row) for row in pose_rows(t.bodies["pose"])]

    q0 = t.freedoms["q"].copy()
    poses(q0)
    axes = np.array([t.freedoms["axis"][n] for n in "xyz"]).T.copy()
    for d in range(JOINT_TYPES[joint_type].dof):
        b = t.freedoms["body"][d]
        step = h * (np.arange(len(q0)) == d)
        before, after = poses(q0 - step)[b], poses(q0 + step)[b]
        if t.freedoms["turns"][d]:
            turn = (after[:3, :3] - before[:3, :3]) / (2 * h) @ poses(q0)[b][:3, :3].T
            velocity = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
        else:
            velocity = (after[:3, 3] - before[:3, 3]) / (2 * h)
        np.testing.assert_allclose(axes[d], velocity, atol=1e-8)
