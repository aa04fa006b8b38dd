"""The tracer, which other things are held against."""

import numpy as np
import pytest
from continuum_oracle import residual36
from curve_tracer import leg_errors, residual18, straight, trace

from continuum_ik import ContinuumRobot, ContinuumSolver, Load, make_pose


def traced(solver, end):
    home = solver.home
    return trace(solver.robot, home.best_pose, end, home.forces, home.moments, home.lengths)


def test_residual_is_that_of_the_other_oracle(tight):
    """Two statements of the 18-state equations, and a solution of them."""
    robot = ContinuumRobot(load=Load(force=(0.5, 0.2, -1.0), moment=(0.01, 0.0, 0.02)))
    solver = ContinuumSolver(robot, 1e-14)
    pose = make_pose((0.02, 0.03, 0.45))
    r = solver.solve(pose).check()
    ours = residual18(robot, pose, r.forces, r.moments, r.lengths)
    np.testing.assert_allclose(
        ours, residual36(robot, pose, r.forces, r.moments, r.lengths), atol=1e-13
    )
    assert np.abs(leg_errors(robot, pose, r.forces, r.moments, r.lengths)).max() < 1e-9
    moved = r.lengths + 1e-5
    np.testing.assert_allclose(leg_errors(robot, pose, r.forces, r.moments, moved), 1e-5, rtol=0.1)


def test_a_path_that_arrives_and_one_that_folds(tight):
    """At z = 0.48 the path in +x crosses branches and ends near x = 0.237."""
    end = make_pose((0.03, 0.02, 0.45))
    curve = traced(tight, end)
    assert curve.told
    assert curve.arrives
    np.testing.assert_allclose(curve.lengths, tight.solve(end).check().lengths, atol=1e-6)
    start = make_pose((0.0, 0.02, 0.48))
    tight.reset()
    at = tight.solve(start).check()
    curve = trace(
        tight.robot, start, make_pose((0.3, 0.02, 0.48)), at.forces, at.moments, at.lengths
    )
    assert curve.told
    assert not curve.arrives
    assert 0.3 * curve.reached == pytest.approx(0.237, abs=2e-3)
    assert np.isnan(curve.lengths).all()


def test_a_path_is_straight():
    end = make_pose((0.1, 0.0, 0.5), (0.0, 0.0, np.sin(0.2), np.cos(0.2)))
    start = make_pose((0.0, 0.0, 0.4))
    first, middle, last = straight(start, end, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(first, start, atol=1e-15)
    np.testing.assert_allclose(last, end, atol=1e-15)
    np.testing.assert_allclose(middle[:3], (0.05, 0.0, 0.45))
    assert np.arctan2(middle[6], middle[3]) == pytest.approx(0.2)
