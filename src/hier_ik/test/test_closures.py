"""Closure rows and Jacobians of every type, against plain numpy and finite differences."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import JOINT_TYPES, Solver
from hier_ik.closures import closure_matrix, closure_rows
from hier_ik.kinematics import all_kinematics
from kin_core.rotations import log_so3

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import chain_with

TYPES = list(JOINT_TYPES)


def closure_residual(joint_type: str, X) -> np.ndarray:
    """The rows as plain numpy: what the kernels compute."""
    kind = JOINT_TYPES[joint_type]
    rows = [X[i, 3] for i in range(3) if kind.held[i]]
    R = X[:3, :3]
    if kind.rotation == 1:
        rows += list(log_so3(np.ascontiguousarray(R)))
    elif kind.rotation == 2:
        z = R[:, 2]
        s = np.hypot(z[0], z[1])
        f = np.arctan2(s, z[2]) / s
        rows += [-f * z[1], f * z[0]]
    elif kind.rotation == 3:
        rows.append(R[0, 1])
    return np.array(rows)


@pytest.mark.parametrize("closure_type", TYPES)
@pytest.mark.parametrize("tree_type", TYPES)
def test_rows_and_jacobian_against_finite_differences(tree_type, closure_type):
    rng = np.random.default_rng(TYPES.index(tree_type) * 12 + TYPES.index(closure_type))
    l = chain_with(["revolute", tree_type, "spherical"], closure_type, rng)
    s = Solver(l, "flat_sparse")  # its tables hold the Jacobian row by row, without gaps
    t = s.tables
    closure = t.closures[s.compiled.closure_of["c"]]
    m, at = closure["rows"], closure["matrix"]
    chain = t.chain[closure["chain_begin"] : closure["chain_end"]]
    e = np.zeros(6)

    def rows(q):
        t.freedoms["q"] = q
        all_kinematics(t.bodies, t.freedoms)
        total = closure_rows(t.bodies, closure, e, 0)
        assert total == pytest.approx(e[:m] @ e[:m])
        return e[:m].copy()

    q0 = t.freedoms["q"].copy()
    e0 = rows(q0)
    closure_matrix(t.bodies, t.freedoms, closure, t.chain, t.work, 0)
    np.testing.assert_array_equal(t.work[:m], e0)
    J = np.zeros((m, len(q0)))
    J[:, chain["freedom"]] = t.work[at : at + m * len(chain)].reshape(m, len(chain))
    poses = l.link_poses()
    j = l.joints["c"]
    X = np.linalg.inv(poses[j.parent] @ j.origin) @ poses[j.child] @ j.child_origin
    X[:3, 3] /= s.compiled.bodies.length  # the unit of length of the tables
    np.testing.assert_allclose(e0, closure_residual(closure_type, X), atol=1e-12)
    h = 1e-6
    for d in range(len(q0)):
        step = np.zeros(len(q0))
        step[d] = h
        slope = (rows(q0 + step) - rows(q0 - step)) / (2 * h)
        np.testing.assert_allclose(J[:, d], slope, atol=2e-8)
