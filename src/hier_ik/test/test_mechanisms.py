"""Spatial closed mechanisms that the solver was not tuned for, against independent oracles."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

from hier_ik import Solver, frame
from kin_core.rotations import exp_so3

sys.path.insert(0, str(Path(__file__).parent))
import mechanisms


def test_stewart_platform_agrees_with_the_closed_form_of_its_legs():
    """Leg lengths of a Stewart platform are |p + R b_i - a_i|."""
    linkage, base, plate = mechanisms.stewart()
    start = linkage.link_poses(("platform",))["platform"]
    np.testing.assert_allclose(start, frame((0, 0, 1.0)), atol=1e-12)
    linkage.add_goal("pose", "platform")
    s = Solver(linkage)
    rng = np.random.default_rng(1)
    for _ in range(20):
        target = frame(
            np.array([0, 0, 1.0]) + rng.uniform(-0.25, 0.25, 3),
            rotation=exp_so3(rng.uniform(-0.35, 0.35, 3)),
        )
        s.set_goal("pose", target)
        result = s.solve(tolerance=1e-11)
        assert result.success, result.message
        assert result.closure_residual < 1e-10
        for i in range(6):
            want = np.linalg.norm(target[:3, 3] + target[:3, :3] @ plate[i] - base[i])
            assert abs(result.values[f"P{i}"][0] - want) < 1e-9
        np.testing.assert_allclose(s.poses(["platform"])["platform"], target, atol=1e-9)


def test_stewart_forward_kinematics_agrees_with_scipy():
    """With the legs locked at new lengths, the platform goes where least squares puts it."""
    linkage, base, plate = mechanisms.stewart()
    rng = np.random.default_rng(2)
    lengths = np.array([linkage.values[f"P{i}"][0] for i in range(6)]) + rng.uniform(-0.05, 0.05, 6)
    for i in range(6):
        linkage.set_value(f"P{i}", lengths[i])
        linkage.set_locked(f"P{i}", True)
    s = Solver(linkage)
    result = s.solve(tolerance=1e-12)
    assert result.success, result.message

    def legs(x):
        return np.linalg.norm(x[:3] + plate @ exp_so3(x[3:]).T - base, axis=1) - lengths

    x = least_squares(legs, [0, 0, 1.0, 0, 0, 0], xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    np.testing.assert_allclose(
        s.poses(["platform"])["platform"], frame(x[:3], rotation=exp_so3(x[3:])), atol=1e-8
    )


def test_bennett_moves_as_its_closed_form_says():
    """tan(t1/2) tan(t2/2) = sin((b+a)/2)/sin((b-a)/2): one freedom, over-constrained."""
    linkage, alpha, beta = mechanisms.bennett()
    ratio = math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2)
    t1 = 1.1
    t2 = 2 * math.atan(ratio / math.tan(t1 / 2))
    for name, v in (("1", t1), ("2", t2), ("3", -t1)):
        linkage.set_value(name, v + 0.02)
    s = Solver(linkage)
    assert s.solve(tolerance=1e-12).success
    seen = []
    linkage.add_goal("crank", "x", "orientation")
    for angle in np.linspace(0.4, 2.6, 12):
        s.set_goal("crank", frame(rpy=(0, 0, angle)))
        result = s.solve(tolerance=1e-11)
        assert result.success, result.message
        v = {k: float(x[0]) for k, x in result.values.items()}
        want = 2 * math.atan(ratio / math.tan(v["1"] / 2))
        assert abs(math.remainder(v["2"] - want, 2 * math.pi)) < 1e-7
        assert abs(math.remainder(v["3"] + v["1"], 2 * math.pi)) < 1e-7
        seen.append(v["1"])
    np.testing.assert_allclose(seen, np.linspace(0.4, 2.6, 12), atol=1e-9)


def test_planar_3rrr_agrees_with_the_closed_form_of_its_legs():
    linkage, anchors, tips = mechanisms.rrr3()
    linkage.add_goal("pose", "platform")
    s = Solver(linkage)
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, y, t = rng.uniform(-0.15, 0.15, 3)
        T = frame((x, y, 0), (0, 0, t))
        s.set_goal("pose", T)
        result = s.solve(tolerance=1e-11)
        assert result.success, result.message
        for i in range(3):
            tip = T[:3, :3] @ tips[i] + T[:3, 3] - anchors[i]
            r = np.linalg.norm(tip)
            swing = math.acos((0.36 + r * r - 0.36) / (2 * 0.6 * r))
            want = math.atan2(tip[1], tip[0]) + swing
            assert abs(math.remainder(result.values[f"A{i}"][0] - want, 2 * math.pi)) < 1e-8


def delta_angles(p, R=0.4, r=0.1, arm=0.4, rod=0.9):
    """Closed form of a Delta robot's motors for a platform position."""
    out = []
    for i in range(3):
        a = 2 * math.pi * i / 3
        q = mechanisms.rot_z(-a) @ p
        # |(R + arm cos t - r - x, -y, -arm sin t - z)| = rod
        x, y, z = q[0] + r - R, q[1], q[2]
        E, F = -2 * arm * x, 2 * arm * z
        G = x * x + y * y + z * z + arm * arm - rod * rod
        # E cos t + F sin t + G = 0
        base = math.atan2(F, E)
        swing = math.acos(-G / math.hypot(E, F))
        out.append([math.remainder(base + s * swing, 2 * math.pi) for s in (1, -1)])
    return out


def test_delta_agrees_with_the_closed_form_of_its_motors():
    linkage, height = mechanisms.delta()
    np.testing.assert_allclose(
        linkage.link_poses(("platform",))["platform"], frame((0, 0, height)), atol=1e-12
    )
    linkage.add_goal("tcp", "platform", "position")
    s = Solver(linkage)
    rng = np.random.default_rng(4)
    for _ in range(15):
        p = np.array([0, 0, height - 0.1]) + rng.uniform(-0.12, 0.12, 3)
        s.set_goal("tcp", p)
        result = s.solve(tolerance=1e-11)
        assert result.success, result.message
        assert result.closure_residual < 1e-10
        # parallelograms keep the platform level
        np.testing.assert_allclose(s.poses(["platform"])["platform"][:3, :3], np.eye(3), atol=1e-8)
        for i, options in enumerate(delta_angles(p)):
            got = result.values[f"M{i}"][0]
            assert min(abs(got - o) for o in options) < 1e-8, (got, options)


@pytest.mark.parametrize("mode", ["flat_structured", "flat_sparse", "flat_cholesky", "flat_svd"])
def test_every_mode_solves_the_stewart_platform(mode):
    linkage, _, _ = mechanisms.stewart()
    linkage.add_goal("pose", "platform")
    s = Solver(linkage, mode)
    T = frame((0.1, -0.1, 1.1), (0.1, 0.2, -0.1))
    s.set_goal("pose", T)
    result = s.solve(tolerance=1e-10)
    assert result.success, result.message
    np.testing.assert_allclose(s.poses(["platform"])["platform"], T, atol=1e-8)
