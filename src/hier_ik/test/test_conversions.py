"""Between messages and the library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierGoal, HierProblem
from kin_interfaces.srv import SolveHierIK

from hier_ik import Solver, frame, tower
from hier_ik.conversions import (
    fill_solution,
    goal_name,
    in_root_frame,
    joint_state,
    link_of_drag,
    mode,
    put_goal,
    solve_arguments,
    start_values,
)
from kin_core.errors import InvalidInput


def goal(**fields):
    message = HierGoal(priority=-1, **fields)
    message.target.position.x, message.target.position.z = 0.2, 1.5
    return message


def test_a_goal_is_added_moved_and_removed():
    solver = Solver(tower(2))
    put_goal(solver, goal(link="P1", kind="position"))
    added = solver.linkage.goals["drag:P1"]
    assert (added.kind, added.reference, added.priority, added.weight) == ("position", "P0", 3, 1.0)
    np.testing.assert_array_equal(added.target[:3, 3], (0.2, 0.0, 1.5))
    with pytest.raises(InvalidInput, match=r"goals\[2\].target.orientation"):
        bad = goal(link="P1")
        bad.target.orientation.w = 3.0
        put_goal(solver, bad, "goals[2]")
    put_goal(solver, HierGoal(name="drag:P1", remove=True))
    assert set(solver.linkage.goals) == {"drag"}


def test_a_goal_without_a_name_is_the_one_on_its_link():
    solver = Solver(tower(2))
    assert goal_name(solver, goal(link="P2")) == "drag"
    assert goal_name(solver, goal(link="P1")) == "drag:P1"
    assert goal_name(solver, goal(link="P2", name="mine")) == "mine"


def test_a_target_in_any_frame_is_brought_into_that_of_the_root():
    turned = frame((1.0, 2.0, 3.0), (0.0, 0.0, math.pi / 2))
    asked = []

    def toward(header):
        asked.append((header.frame_id, header.stamp.sec))
        return turned

    message = goal(link="P1", kind="position")
    assert in_root_frame(message, toward, "goal") is message
    message.header.frame_id, message.header.stamp.sec = "table", 7
    message.target.position.y = 0.5
    moved = in_root_frame(message, toward, "goal")
    assert asked == [("table", 7)]
    p = moved.target.position
    np.testing.assert_allclose((p.x, p.y, p.z), (0.5, 2.2, 4.5))
    assert (moved.header.frame_id, moved.link, moved.kind) == ("", "P1", "position")
    assert message.target.position.x == 0.2
    message.reference_link = "P0"
    with pytest.raises(InvalidInput, match=r"goal\.reference_link"):
        in_root_frame(message, toward, "goal")


def test_a_drag_of_the_old_kind_names_a_link():
    solver = Solver(tower(2))
    for frame_id, name, kind in (
        ("P1", "", "pose"),
        ("P1/position", "", "position"),
        ("P2", "drag", "position"),
    ):
        found = link_of_drag(solver, frame_id)
        assert (found.name, found.link, found.kind) == (name, frame_id[:2], kind)
    for frame_id in ("", "world", "P9", "P9/position", "P1/table", "table/P1"):
        assert link_of_drag(solver, frame_id) is None


def test_a_problem_says_how_to_solve():
    got = solve_arguments(HierProblem(), 1e-6, 300)
    assert got == {
        "tolerance": 1e-6, "max_iterations": 300, "step_time": None, "other_assemblies": False,
    }  # fmt: skip
    full = HierProblem(tolerance=1e-3, max_iterations=7, step_time=0.5, other_assemblies=True)
    assert solve_arguments(full, 1e-6, 300) == {
        "tolerance": 1e-3, "max_iterations": 7, "step_time": 0.5, "other_assemblies": True,
    }  # fmt: skip
    assert mode(HierProblem()) == "hierarchical"
    for problem, field in (
        (HierProblem(tolerance=-1.0), "tolerance"),
        (HierProblem(tolerance=math.inf), "tolerance"),
        (HierProblem(step_time=-1.0), "step_time"),
    ):
        with pytest.raises(InvalidInput, match=field):
            solve_arguments(problem, 1e-6, 300)


def test_start_values_are_taken_joint_by_joint():
    linkage = tower(1)
    got = start_values(
        linkage, HierProblem(start_names=["C1.tilt", "A1L.R1"], start_positions=[0.1, 0.2])
    )
    assert {n: v.tolist() for n, v in got.items()} == {"C1.tilt": [0.1], "A1L.R1": [0.2]}
    for names, positions in ((["C1.tilt"], []), (["x"], [0.0]), (["C1.tilt"] * 2, [0.0, 0.0])):
        with pytest.raises(InvalidInput, match="start_"):
            start_values(linkage, HierProblem(start_names=names, start_positions=positions))


def test_service_and_action_answer_alike():
    solver = Solver(tower(1))
    solution = solver.solve()
    service, action = SolveHierIK.Response(), SolveHier.Result()
    for answer in (service, action):
        fill_solution(answer, solution)
    assert service.solution == action.solution
    assert service.status == action.status
    assert len(service.solution.joint_names) == len(service.solution.joint_positions) == 8
    state = joint_state(solution, HierGoal().header.stamp, virtual=False)
    assert list(state.name) == list(service.solution.joint_names)
    assert list(state.position) == list(service.solution.joint_positions)
