"""The loop closer: closed after each step, on the branch it began on; rates and forces."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hier_ik import Linkage, LinkageError, LoopCloser, Step, frame
from kin_core.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import rrr3, stewart
from oracle import Oracle, scaled
from small_mechanisms import five_bar, four_bar


def robots():
    rng = np.random.default_rng(3)
    yield "four_bar", four_bar(rng), ["1"]
    yield "five_bar", five_bar(rng), ["1", "2"]
    yield "rrr3", rrr3()[0], ["A0", "A1", "A2"]
    yield "leg", *leg()
    yield "stewart", stewart()[0], [f"P{i}" for i in range(6)]


def leg():
    """A hip that carries a knee driven through a four-bar linkage, whose shin carries another."""
    linkage = Linkage("leg")
    linkage.add_link("torso")
    at, y = "torso", (0.0, 1.0, 0.0)
    actuated = ["hip"]
    linkage.add_link("hip")
    linkage.add_joint("hip", "revolute", at, "hip", axis=(1.0, 0, 0), closure=False, value=0.3)
    at = "hip"
    for k in range(2):
        for name, parent, xyz in (
            (f"motor{k}", at, (0.0, 0.0, -0.05)),
            (f"rod{k}", f"motor{k}", (-0.08, 0.0, 0.0)),
            (f"knee{k}", at, (0.0, 0.0, -0.4)),
        ):
            linkage.add_link(name)
            linkage.add_joint(name, "revolute", parent, name, xyz=xyz, axis=y, closure=False)
        linkage.add_joint(
            f"loop{k}", "revolute", f"rod{k}", f"knee{k}", xyz=(0.0, 0.0, -0.35), axis=y,
            child_origin=frame((-0.08, 0.0, 0.0)), closure=True,
        )  # fmt: skip
        actuated.append(f"motor{k}")
        at = f"knee{k}"
    return linkage, actuated


ROBOTS = {name: (linkage, actuated) for name, linkage, actuated in robots()}
NAMES = sorted(ROBOTS)


def closer_of(name, **options):
    linkage, actuated = ROBOTS[name]
    return LoopCloser(linkage.copy(), actuated, **options)


def actuated_of(closer):
    """Where the actuated coordinates are among all, and their values."""
    index = [closer.names.index(name) for name in closer.actuated]
    return index, closer.positions[index]


def by_joint(closer, positions):
    out = {}
    for name, q in zip(closer.names, positions, strict=True):
        out.setdefault(name.partition("/")[0], []).append(q)
    fixed = {j.name: np.zeros(0) for j in closer.linkage.tree_joints() if not j.dof}
    return fixed | {name: np.array(q) for name, q in out.items()}


def oracle_of(closer):
    linkage = closer.linkage.copy()
    for goal in list(linkage.goals):
        linkage.remove_goal(goal)
    return Oracle(linkage)


@pytest.mark.parametrize("name", NAMES)
def test_every_loop_is_closed_after_every_step(name):
    closer, rng = closer_of(name), np.random.default_rng(0)
    oracle, (index, a) = oracle_of(closer), actuated_of(closer)
    taken = 0
    for k in range(150):
        wanted = a + rng.normal(scale=0.01, size=len(a))
        before = closer.positions
        state = closer.close(wanted)
        if state.step != Step.CLOSED:
            np.testing.assert_array_equal(closer.positions, before)  # refused, and nothing moved
            assert state.margin == pytest.approx(closer.margin)
            continue
        taken += 1
        a = wanted
        np.testing.assert_allclose(state.positions[index], a, atol=1e-15)
        assert state.residual <= 1e-9
        if k % 10 == 0:
            assert max(oracle.residuals(by_joint(closer, state.positions)).values()) <= 1e-9
    assert taken > 100


@pytest.mark.parametrize("name", NAMES)
def test_a_long_step_ends_where_many_short_ones_do(name):
    """That is the same branch: followed by an independent solver in thirty steps."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        closer = closer_of(name, smallest_margin=0.02)
        oracle, (_, a) = oracle_of(closer), actuated_of(closer)
        way = rng.normal(scale=0.12, size=len(a))
        q = by_joint(closer, closer.positions)
        if closer.close(a + way).step != Step.CLOSED:
            continue
        for t in np.linspace(0.0, 1.0, 31)[1:]:
            for joint, value in zip(closer.actuated, a + t * way, strict=True):
                q[joint] = np.array([value])
            held = oracle.linkage.copy()
            for joint in closer.actuated:
                held.joints[joint] = replace(held.joints[joint], locked=True)
                held.values[joint] = q[joint]
            tracker = Oracle(held)
            x, left = tracker.solve(tracker.vector(q), goals=False)
            assert left < 1e-7
            q = tracker.values(x)
        for joint, value in by_joint(closer, closer.positions).items():
            np.testing.assert_allclose(q[joint], value, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_rates_are_those_of_the_motion_and_forces_do_the_same_work(name):
    closer, rng = closer_of(name), np.random.default_rng(1)
    index, a = actuated_of(closer)
    a = a + 0.02 * rng.normal(size=len(a))
    v, h = rng.normal(size=len(a)), 1e-5
    state = closer.close(a, v)
    ahead, behind = closer.close(a + h * v).positions, closer.close(a - h * v).positions
    np.testing.assert_allclose(state.velocities, (ahead - behind) / (2 * h), atol=1e-6, rtol=1e-6)
    np.testing.assert_allclose(state.velocities[index], v)
    closer.close(a)
    tau = rng.normal(size=len(closer.names))
    felt = closer.actuator_torques(tau)
    for _ in range(3):
        w = rng.normal(size=len(a))
        assert felt @ w == pytest.approx(tau @ closer.rates(w), abs=1e-9)
    np.testing.assert_allclose(closer.transmission() @ v, closer.rates(v), atol=1e-12)


def test_torques_go_through_the_loop_and_back():
    closer = closer_of("four_bar")
    through = closer.joint_torques([2.0], ["2"])
    all_joints = np.zeros(len(closer.names))
    all_joints[closer.names.index("2")] = through["2"][0]
    np.testing.assert_allclose(closer.actuator_torques(all_joints), [2.0])
    with pytest.raises(LinkageError, match="cannot do the work"):
        closer_of("rrr3").joint_torques([1.0, 2.0, 3.0], ["B0"])


def test_a_singularity_is_seen_coming_and_never_crossed():
    """The crank of a four-bar turns until coupler and rocker are in one line, and no farther."""
    linkage = Linkage("stretches")
    for name in ("ground", "crank", "coupler", "rocker"):
        linkage.add_link(name)
    linkage.add_joint("1", "revolute", "ground", "crank", closure=False, value=1.0)
    linkage.add_joint("2", "revolute", "crank", "coupler", xyz=(1.0, 0, 0), closure=False)
    linkage.add_joint("3", "revolute", "coupler", "rocker", xyz=(0.6, 0, 0), closure=False, value=1)
    linkage.add_joint(
        "4", "revolute", "ground", "rocker", xyz=(1.2, 0, 0), child_origin=frame((0.7, 0, 0)),
        closure=True,
    )  # fmt: skip
    closer = LoopCloser(linkage, ["1"])
    # The crank's end is 1.3 from the pivot of the rocker at most.
    last = np.arccos((1.0 + 1.2**2 - 1.3**2) / (2 * 1.2))
    sign = np.sign(closer.positions[closer.names.index("3")])
    margins = []
    for angle in np.arange(1.0, 2.0, 0.002):
        state = closer.close([angle])
        if state.step != Step.CLOSED:
            break
        margins.append(state.margin)
        assert np.sign(closer.positions[closer.names.index("3")]) == sign
    assert state.step == Step.SINGULAR
    assert closer.nearest() == ("4",)
    assert last - 0.01 < closer.positions[0] < last
    assert margins[-1] < 0.15 * margins[0]
    assert closer.close([last + 0.3]).step in (Step.SINGULAR, Step.TOO_FAR)
    assert closer.close([1.0]).step == Step.CLOSED  # and back


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([0.01, 1.0, 37.0]))
def test_a_robot_of_another_size_takes_the_same_angles(seed, size):
    linkage, actuated = ROBOTS["rrr3"]
    closers = [LoopCloser(linkage.copy(), actuated), LoopCloser(scaled(linkage, size), actuated)]
    _, a = actuated_of(closers[0])
    wanted = a + np.random.default_rng(seed).normal(scale=0.05, size=3)
    first, second = (closer.close(wanted).positions for closer in closers)
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_a_trajectory_is_its_steps():
    one, many = closer_of("five_bar"), closer_of("five_bar")
    _, a = actuated_of(one)
    path = a + np.cumsum(np.random.default_rng(0).normal(scale=0.005, size=(50, 2)), axis=0)
    out, made = many.follow(path)
    assert made == len(path)
    for row, expected in zip(path, out, strict=True):
        np.testing.assert_array_equal(one.close(row).positions, expected)
    beyond = np.vstack([path[::-1], path[:1] + 50.0, path])
    out, made = many.follow(beyond)
    assert made == len(path)
    assert np.isnan(out[made:]).all()
    np.testing.assert_array_equal(many.positions, out[made - 1])


def test_joints_by_name_and_poses_close_the_cut_loops_too():
    closer = closer_of("stewart")
    _, a = actuated_of(closer)
    closer.close(a + 0.01)
    values, poses = closer.values(), closer.poses()
    assert set(values) == set(closer.linkage.joints)
    expected = oracle_of(closer).poses(values)
    for name, T in expected.items():
        np.testing.assert_allclose(poses[name], T, atol=1e-9)


@pytest.mark.parametrize(
    ("actuated", "sentence"),
    [
        (["9"], "is not known"),
        (["4"], "closes a loop"),
        (["1", "1"], "twice"),
        ([], "do not determine"),
        (["1", "2"], "not independent"),
        (["1", "2", "3"], "not independent|would open"),
    ],
)
def test_actuators_that_do_not_fit_are_refused(actuated, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        LoopCloser(ROBOTS["four_bar"][0].copy(), actuated)


def test_what_is_no_position_is_refused_and_moves_nothing():
    closer = closer_of("five_bar")
    before = closer.positions
    for bad in ([0.1], [0.1, np.nan], "ab", [[0.1, 0.2]], None):
        with pytest.raises(InvalidInput, match="positions"):
            closer.close(bad)
    np.testing.assert_array_equal(closer.positions, before)


def test_loops_that_cannot_close_are_named():
    linkage = ROBOTS["four_bar"][0].copy()
    joint = linkage.joints["4"]
    linkage.joints["4"] = replace(joint, origin=frame((90.0, 0.0, 0.0)) @ joint.origin)
    with pytest.raises(LinkageError, match="'4': the loop cannot be closed"):
        LoopCloser(linkage, ["1"])


def test_a_slide_is_not_followed_beyond_its_limits():
    closer = closer_of("stewart")
    _, a = actuated_of(closer)
    state = closer.close(a)
    while state.step == Step.CLOSED and a.max() < 3.0:
        a = a + 0.02
        state = closer.close(a)
    assert state.step == Step.TOO_FAR
    assert 2.45 < closer.positions[[closer.names.index(n) for n in closer.actuated]].max() <= 2.5
