"""Bodies of a spanning tree: packing poses, and the unit of length."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import JOINT_TYPES, Linkage, tower
from hier_ik.bodies import Bodies, pack, unit_of_length, unpack

sys.path.insert(0, str(Path(__file__).parent))
from oracle import scaled
from random_linkages import chain_with, random_frame


def test_poses_are_packed_and_unpacked():
    T = random_frame(np.random.default_rng(0))
    np.testing.assert_array_equal(unpack(np.array(pack(T, 0.25)), 0.25), T)


@pytest.mark.parametrize("s", [0.01, 0.3, 1.0, 100.0])
def test_the_unit_of_length_goes_with_the_mechanism(s):
    unit = unit_of_length(scaled(tower(3), s))
    assert np.log2(unit) == round(np.log2(unit))
    assert 0.4 * s / np.sqrt(2.0) <= unit <= 0.4 * s * np.sqrt(2.0)  # bars of the tower: 0.4 m
    assert unit_of_length(Linkage()) == 1.0


def test_each_freedom_is_a_body_and_fixed_joints_are_none():
    linkage = chain_with(list(JOINT_TYPES), "general", np.random.default_rng(1))
    bodies = Bodies(linkage)
    table, freedoms = bodies.tables(linkage)
    balls = sum("s" in j.kind.freedoms for j in linkage.tree_joints())
    assert len(freedoms) == sum(j.dof for j in linkage.tree_joints())
    assert len(table) == 1 + len(freedoms) - 2 * balls
    assert (table["parent"][1:] < np.arange(1, len(table))).all()
    for joint in linkage.tree_joints():
        part = bodies.freedoms_of(joint)
        assert freedoms["turns"][part].tolist() == list(joint.kind.angular)
        q = freedoms["q"][part] * bodies.unit[part]
        np.testing.assert_allclose(q, linkage.values[joint.name], rtol=1e-15)
