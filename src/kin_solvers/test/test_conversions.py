"""Messages to questions, answers to messages."""

import numpy as np
import pytest
from kin_interfaces.msg import ManifoldProblem, SolveStatus

from kin_core.errors import InvalidInput
from kin_ros.arrays import from_field
from kin_solvers import Settings, library, solve, solve_all_ik
from kin_solvers.conversions import (
    all_ik_response,
    manifold_message,
    read_boxes,
    read_mechanism,
    read_seed,
    read_settings,
    report,
)
from kin_solvers.parameters import CuikParameters


def no_description(topic):
    raise InvalidInput("mechanism", f"none on {topic!r}")


def test_a_problem_overrides_parameters_within_their_budgets():
    parameters = CuikParameters(max_boxes=1000)
    settings = read_settings(ManifoldProblem(sigma=0.02, method="paper"), parameters)
    assert (settings.sigma, settings.method, settings.max_boxes) == (0.02, "paper", 1000)
    assert read_settings(ManifoldProblem(max_boxes=50), parameters).max_boxes == 50
    assert read_settings(ManifoldProblem(max_boxes=10**6), parameters).max_boxes == 1000
    assert not read_settings(ManifoldProblem(skip_certificates=True), parameters).certify
    with pytest.raises(InvalidInput, match="sigma"):
        read_settings(ManifoldProblem(sigma=-1.0), parameters)


def test_a_problem_is_read_and_what_is_wrong_is_named():
    problem = ManifoldProblem(
        mechanism="bennett", range_names=["theta1"], range_lower=[0.0], range_upper=[1.0]
    )
    mechanism = read_mechanism(problem, no_description)
    assert (mechanism.variables[0].lower, mechanism.variables[0].upper) == (0.0, 1.0)
    for field, wrong in {
        "range_names": ManifoldProblem(mechanism="bennett", range_names=["theta1"]),
        "source": ManifoldProblem(mechanism="bennett", source=7),
        "mechanism": ManifoldProblem(mechanism="", source=ManifoldProblem.URDF),
    }.items():
        with pytest.raises(InvalidInput, match=field):
            read_mechanism(wrong, no_description)
    assert read_boxes(ManifoldProblem(), 4) is None
    lower, _ = read_boxes(ManifoldProblem(resume_lower=[0.0] * 8, resume_upper=[1.0] * 8), 4)
    assert lower.shape == (2, 4)
    with pytest.raises(InvalidInput, match="resume_lower"):
        read_boxes(ManifoldProblem(resume_lower=[0.0] * 3), 4)
    with pytest.raises(InvalidInput, match="seed"):
        read_seed(ManifoldProblem(seed=[0.0, np.nan]), 2)


def test_a_cover_as_a_message():
    manifold = solve(library.get("scara"), Settings(sigma=0.1))
    message = manifold_message(manifold, 3, np.empty(0))
    assert message.box_count == len(manifold.lower)
    assert np.array_equal(from_field(message.lower).reshape(-1, 4), manifold.lower)
    assert (message.complete, message.separated) == (True, True)
    assert message.component_count == 2
    assert message.point_count == 3
    status = SolveStatus()
    report(status, solve(library.get("iiwa7"), Settings(sigma=0.05, max_boxes=5)))
    assert status.code == SolveStatus.LIMIT_EXCEEDED


def test_all_configurations_as_a_response():
    arm = library.get("puma560")
    found = solve_all_ik(arm)
    response = all_ik_response(arm, found, 3)
    assert (response.count, response.posture_count) == (3, 8)
    assert np.array_equal(from_field(response.positions).reshape(-1, 6), found.positions[:3])
    assert "3 nearest" in response.status.message
    assert all_ik_response(arm, found, 0).count == 8
