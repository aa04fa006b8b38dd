"""The twelve joint types: motion, closure rows, Jacobians, and a closed loop through each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hier_ik import JOINT_TYPES, Linkage, Solver, assign_roles, frame
from hier_ik import layout as at
from hier_ik.iteration import all_kinematics, component_matrix
from hier_ik.joints import joint_coordinates, joint_motion
from hier_ik.spanning import reversed_joint
from kin_core.rotations import exp_so3, log_so3

TYPES = list(JOINT_TYPES)


def random_frame(rng):
    return frame(rng.normal(size=3), rotation=exp_so3(rng.normal(size=3)))


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


def chain_with(tree_types, closure_type, rng):
    l = Linkage()
    l.add_link("l0")
    for i, t in enumerate(tree_types):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}",
            t,
            f"l{i}",
            f"l{i + 1}",
            origin=random_frame(rng),
            child_origin=random_frame(rng),
            closure=False,
            value=rng.uniform(-1, 1, JOINT_TYPES[t].dof),
        )
    n = len(tree_types)
    # the closure joins the two ends of a fork, so that both signs of the chain occur
    l.add_link("side")
    l.add_joint(
        "s",
        "universal",
        "l1",
        "side",
        origin=random_frame(rng),
        closure=False,
        value=rng.uniform(-1, 1, 2),
    )
    l.add_joint(
        "c",
        closure_type,
        f"l{n}",
        "side",
        origin=random_frame(rng),
        child_origin=random_frame(rng),
        closure=True,
    )
    return l


@pytest.mark.parametrize("closure_type", TYPES)
@pytest.mark.parametrize("tree_type", TYPES)
def test_rows_and_jacobian_against_finite_differences(tree_type, closure_type):
    rng = np.random.default_rng(TYPES.index(tree_type) * 12 + TYPES.index(closure_type))
    l = chain_with(["revolute", tree_type, "spherical"], closure_type, rng)
    s = Solver(l, "flat_sparse")  # its component matrix holds the rows as the kernel makes them
    c = s.compiled.closure_of["c"]
    P = s.compiled.packed
    row = P[at.CLOSURES][c]
    m, chain = int(row[4]), P[at.CHAIN][row[5] : row[6]]

    def rows(q):
        P[at.Q][:] = q
        all_kinematics(P.I, P.X)
        component_matrix(P.I, P.X, 0)
        return P[at.E][:m].copy()

    q0 = P[at.Q].copy()
    e0 = rows(q0)
    J = np.zeros((m, len(q0)))
    J[:, chain[:, 0]] = P[at.W][: m * len(chain)].reshape(m, len(chain))
    poses = l.link_poses()
    j = l.joints["c"]
    X = np.linalg.inv(poses[j.parent] @ j.origin) @ poses[j.child] @ j.child_origin
    X[:3, 3] /= s.compiled.length  # the unit of length of the tables
    np.testing.assert_allclose(e0, closure_residual(closure_type, X), atol=1e-12)
    h = 1e-6
    for d in range(len(q0)):
        step = np.zeros(len(q0))
        step[d] = h
        slope = (rows(q0 + step) - rows(q0 - step)) / (2 * h)
        np.testing.assert_allclose(J[:, d], slope, atol=2e-8)


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


def test_solver_poses_equal_products_of_transforms():
    rng = np.random.default_rng(3)
    l = chain_with(TYPES, "general", rng)
    poses, plain = Solver(l).poses(), l.link_poses()
    for name in l.links:
        np.testing.assert_allclose(poses[name], plain[name], atol=1e-12)


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
