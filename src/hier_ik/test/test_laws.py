"""Laws that hold for every mechanism: frames, scale, symmetry, names and order of declaration.

Bars, delta robots and platforms have one posture near the start for each goal near it, so answers
can be compared whatever way the solver took.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hier_ik import Solver, dump_linkage, frame, load_linkage, tower
from kin_core.rotations import exp_so3

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import delta, rot_z, rrr3, stewart
from oracle import scaled
from random_linkages import random_linkage
from small_mechanisms import five_bar, reachable_goal, with_goal

MECHANISMS = {
    "delta": lambda rng: with_goal(delta()[0], "platform"),
    "five bars": five_bar,
    "stewart": lambda rng: with_goal(stewart()[0], "platform", "pose"),
    "3rrr": lambda rng: with_goal(rrr3()[0], "platform", "pose"),
}
seeds = st.integers(0, 10_000)


def reached(name, seed):
    """A mechanism with a goal a little way off."""
    rng = np.random.default_rng(seed)
    linkage = MECHANISMS[name](rng)
    assert reachable_goal(rng, linkage, 0.03)
    return linkage, rng


def answer(linkage, size=1.0):
    """The values by name; lengths as shares of ``size``."""
    solution = Solver(linkage).solve(tolerance=1e-11 * size)
    assert solution.success, solution.message
    return {
        name: value / np.where(np.array(linkage.joints[name].kind.angular, bool), 1.0, size)
        for name, value in solution.values.items()
    }


def moved(linkage, T):
    """The same linkage with its root, and all that is given in it, moved by T."""
    out = linkage.copy()
    for j in linkage.joints.values():
        if j.parent == linkage.root:
            out.joints[j.name] = replace(j, origin=T @ j.origin)
        elif j.child == linkage.root:
            out.joints[j.name] = replace(j, child_origin=T @ j.child_origin)
    for g in linkage.goals.values():
        if g.reference == linkage.root:
            out.goals[g.name] = replace(g, target=T @ g.target)
    return out


def assert_same(got, wanted, tolerance=1e-7):
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=8)
@given(seed=seeds)
def test_moving_the_base_moves_nothing_else(name, seed):
    linkage, rng = reached(name, seed)
    T = frame(rng.normal(scale=3.0, size=3), rotation=exp_so3(rng.normal(size=3)))
    assert_same(answer(moved(linkage, T)), answer(linkage))


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=8)
@given(seed=seeds, size=st.floats(0.01, 100.0))
def test_a_robot_of_another_size_has_the_same_angles(name, seed, size):
    linkage, _ = reached(name, seed)
    assert_same(answer(scaled(linkage, size), size), answer(linkage))


@settings(max_examples=10)
@given(seed=seeds)
def test_a_delta_is_the_same_after_a_third_of_a_turn(seed):
    """A goal turned by 120 degrees is met by the next arm as the first was by this one."""
    linkage, _ = reached("delta", seed)
    turned = linkage.copy()
    goal = linkage.goals["g"]
    position = rot_z(2 * np.pi / 3) @ goal.target[:3, 3]
    turned.set_goal("g", position)
    before, after = answer(linkage), answer(turned)
    for i in range(3):
        np.testing.assert_allclose(after[f"M{(i + 1) % 3}"], before[f"M{i}"], atol=1e-7)


@settings(max_examples=10)
@given(seed=seeds)
def test_mirrored_bars_take_mirrored_angles(seed):
    """The plane seen from behind: every hinge the other way, every y coordinate too."""
    linkage, _ = reached("five bars", seed)
    mirrored = linkage.copy()
    for name, value in linkage.values.items():
        mirrored.values[name] = -value
    x, y, z = linkage.goals["g"].target[:3, 3]
    mirrored.set_goal("g", (x, -y, z))
    assert_same(answer(mirrored), {n: -v for n, v in answer(linkage).items()})


def renamed(linkage, rng):
    """The same linkage under other names, which sort in another order; and the new names."""
    names = [*linkage.links, *linkage.joints, *linkage.sublinkages, *linkage.goals]
    new = {n: f"n{i}" for n, i in zip(names, rng.permutation(len(names)), strict=True)}

    def name(value):
        if isinstance(value, dict):
            return {k: name(v) for k, v in value.items()}
        if isinstance(value, list):
            return [name(v) for v in value]
        return new.get(value, value) if isinstance(value, str) else value

    data = yaml.safe_load(dump_linkage(linkage))
    kept = ("type", "kind", "role", "disposition")
    for key in ("sublinkages", "links", "joints", "goals"):
        data[key] = [
            {k: v if k in kept else name(v) for k, v in entry.items()}
            for entry in data.get(key, [])
        ]
    data["root"] = new[data["root"]]
    return load_linkage(yaml.safe_dump(data, sort_keys=False)), new


@settings(max_examples=20)
@given(seed=seeds)
def test_names_mean_nothing(seed):
    """Bit for bit, on linkages with hierarchy; names of links and joints may not collide."""
    rng = np.random.default_rng(seed)
    linkage = random_linkage(rng, links=12, subs=3, closures=3)
    linkage.add_goal("goal", list(linkage.links)[-1], "position", target=rng.normal(size=3))
    other, new = renamed(linkage, rng)
    first, second = Solver(load_linkage(dump_linkage(linkage))), Solver(other)
    for _ in range(5):
        assert first.iterate() == second.iterate()
    values = second.values()
    for name, value in first.values().items():
        np.testing.assert_array_equal(values[new[name]], value, err_msg=name)


def reordered(linkage, rng):
    """The same linkage declared in another order."""
    data = yaml.safe_load(dump_linkage(linkage))
    for key in ("links", "joints"):
        data[key] = [data[key][i] for i in rng.permutation(len(data[key]))]
    return load_linkage(yaml.safe_dump(data, sort_keys=False))


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=8)
@given(seed=seeds)
def test_the_order_of_declaration_means_nothing(name, seed):
    linkage, rng = reached(name, seed)
    assert_same(answer(reordered(linkage, rng)), answer(linkage))


def test_a_tower_declared_in_any_order_decomposes_and_solves_alike():
    linkage = tower(3)
    linkage.set_goal("drag", (0.25, 0.0, 2.3))
    wanted = Solver(linkage).solve(tolerance=1e-11)
    for seed in range(5):
        solver = Solver(reordered(linkage, np.random.default_rng(seed)))
        assert solver.decomposition.rounds == Solver(linkage).decomposition.rounds
        got = solver.solve(tolerance=1e-11)
        assert got.success, got.message
        assert_same(got.values, wanted.values, 1e-9)
