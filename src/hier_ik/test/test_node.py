"""The node over real DDS."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TransformStamped
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierGoal, HierProblem, SolveStatus
from kin_interfaces.srv import CheckAbstraction, Decompose, EditLinkage, LoadLinkage, SolveHierIK
from moveit_msgs.msg import MoveItErrorCodes
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rcl_interfaces.msg import Log
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from hier_ik import dump_linkage, tower
from hier_ik.node import HierNode
from kin_ros.qos import COMMAND, LATCHED
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def goal_at(x, z, **more):
    goal = HierGoal(name="drag", priority=-1, **more)
    goal.target.position.x, goal.target.position.z = x, z
    goal.target.orientation.w = 1.0
    return goal


def question(**problem):
    return SolveHierIK.Request(problem=HierProblem(**problem))


def test_load_decompose_solve_and_edit(ros):
    node = ros.add(HierNode, {"blocks": 15})
    answer = ros.call(Decompose, "/hier_ik/decompose", Decompose.Request())
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert (answer.scc_count, len(answer.components)) == (46, 46)
    flat = ros.call(Decompose, "/hier_ik/decompose", Decompose.Request(flat=True))
    assert len(flat.components[0].closures) == 91

    request = question(goals=[goal_at(0.8, 11.6)], tolerance=1e-9)
    for mode in ("", "flat_structured", "flat_sparse"):
        request.problem.mode = mode
        answer = ros.call(SolveHierIK, "/hier_ik/solve", request)
        assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
        assert answer.status.residual < 1e-9
        assert answer.status.iterations <= 6
        assert len(answer.solution.joint_names) == len(answer.solution.joint_positions) == 120
        assert all(".R" in n for n in answer.solution.joint_names)
        assert not answer.solution.unmet

    far = question(goals=[goal_at(30.0, 5.0)])
    answer = ros.call(SolveHierIK, "/hier_ik/solve", far)
    assert answer.status.code in (SolveStatus.UNREACHABLE, SolveStatus.NOT_CONVERGED)
    assert answer.solution.unmet == ["drag"]
    assert answer.solution.at_limit

    edits = EditLinkage.Request(edits=yaml.safe_dump([{"op": "lock", "name": "C3.tilt"}]))
    answer = ros.call(EditLinkage, "/hier_ik/edit", edits)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert answer.decomposed
    assert answer.components == 46
    leaf = [
        {"op": "add_link", "name": "mast"},
        {
            "op": "add_joint",
            "name": "mast",
            "type": "revolute",
            "parent": "P15",
            "child": "mast",
            "role": "tree",
        },
    ]
    answer = ros.call(EditLinkage, "/hier_ik/edit", EditLinkage.Request(edits=yaml.safe_dump(leaf)))
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert not answer.decomposed

    request = LoadLinkage.Request(yaml=dump_linkage(tower(2)))
    answer = ros.call(LoadLinkage, "/hier_ik/load", request)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert (answer.links, answer.closure_joints) == (41, 12)
    assert node.active


def test_bad_requests_are_refused_and_change_nothing(ros):
    ros.add(HierNode, {"blocks": 1})
    bad = [
        (LoadLinkage, "load", LoadLinkage.Request()),
        (LoadLinkage, "load", LoadLinkage.Request(preset="tower", blocks=100000)),
        (LoadLinkage, "load", LoadLinkage.Request(preset="castle")),
        (LoadLinkage, "load", LoadLinkage.Request(yaml="links: [a, b]")),
        (LoadLinkage, "load", LoadLinkage.Request(yaml="{")),
        (LoadLinkage, "load", LoadLinkage.Request(urdf="<robot/>")),
        (LoadLinkage, "load", LoadLinkage.Request(path="/etc/passwd")),
        (Decompose, "decompose", Decompose.Request(membership="club")),
        (EditLinkage, "edit", EditLinkage.Request(edits="[]")),
        (EditLinkage, "edit", EditLinkage.Request(edits="[{op: remove_joint, name: C1.tilt}]")),
        (EditLinkage, "edit", EditLinkage.Request(edits="[{op: explode}]")),
        (SolveHierIK, "solve", question(mode="magic")),
        (SolveHierIK, "solve", question(tolerance=math.nan)),
        (
            SolveHierIK,
            "solve",
            question(goals=[goal_at(math.nan, 0.0)]),
        ),
        (
            SolveHierIK,
            "solve",
            question(goals=[HierGoal(link="nowhere")]),
        ),
        (SolveHierIK, "solve", question(start_names=["C1.tilt"])),
        (
            SolveHierIK,
            "solve",
            question(start_names=["ghost"], start_positions=[0.0]),
        ),
        (CheckAbstraction, "check_abstraction", CheckAbstraction.Request(sublinkage="Z")),
    ]
    for service, name, request in bad:
        answer = ros.call(service, f"/hier_ik/{name}", request)
        assert answer.status.code == SolveStatus.INVALID_INPUT, (name, request, answer.status)
        assert answer.status.message
    answer = ros.call(Decompose, "/hier_ik/decompose", Decompose.Request())
    assert len(answer.components) == 4


def test_drag_by_topic_moves_the_running_state(ros):
    ros.add(HierNode, {"blocks": 3, "rate": 100.0})
    states = ros.listen(JointState, "/joint_states")
    virtual = ros.listen(JointState, "/virtual_joint_states")
    pictures = ros.listen(MarkerArray, "/hier_ik/markers")
    faults = ros.listen(DiagnosticArray, "/diagnostics", 10)
    drag = ros.publisher(PoseStamped, "/hier_ik/drag", COMMAND)
    message = PoseStamped()
    message.header.frame_id = "world"
    message.pose.position.x, message.pose.position.z = 0.3, 2.3
    message.pose.orientation.w = 1.0
    drag.publish(message)

    def top():
        if not virtual:
            return None
        v = dict(zip(virtual[-1].name, virtual[-1].position, strict=True))
        x = z = angle = 0.0
        for k in (1, 2, 3):
            angle += v[f"C{k}.tilt"]
            x += v[f"C{k}.expand"] * math.sin(angle)
            z += v[f"C{k}.expand"] * math.cos(angle)
        return x, z

    wait_until(
        lambda: top() is not None and np.allclose(top(), (0.3, 2.3), atol=1e-5), 20.0, "the drag"
    )
    wait_until(lambda: states and pictures, 10.0, "states and markers")
    assert all(".R" in n for n in states[-1].name)
    assert len(states[-1].name) == 24
    shown = [m for m in pictures[-1].markers if m.action == Marker.ADD]
    assert {m.ns for m in shown} == {"real links", "virtual links", "closures", "grips"}
    closures = next(m for m in shown if m.ns == "closures")
    assert len(closures.colors) == len(closures.points) == 19
    # What can be dragged, by name, where it is.
    grips = {m.text: m.pose.position for m in shown if m.ns == "grips"}
    assert sorted(grips) == ["P0", "P1", "P2", "P3"]
    wait_until(
        lambda: any(
            m.text == "P3" and abs(m.pose.position.x - 0.3) < 1e-3 for m in pictures[-1].markers
        ),
        10.0,
        "the plate where it was dragged to",
    )

    # nonsense on the topic is survived
    message.pose.position.x = math.nan
    drag.publish(message)
    message.header.frame_id = "unknown"
    drag.publish(message)
    seen = len(states)
    wait_until(lambda: len(states) > seen + 5, 10.0, "the node to go on")
    goal = ros.publisher(HierGoal, "/hier_ik/goal")
    goal.publish(goal_at(-0.2, 2.2, link="P3", kind="position"))
    wait_until(lambda: np.allclose(top(), (-0.2, 2.2), atol=1e-5), 20.0, "the goal message")
    wait_until(
        lambda: any("unmet" in v.key for m in faults for s in m.status for v in s.values),
        10.0,
        "diagnostics",
    )


def test_demo_circle_runs(ros):
    ros.add(HierNode, {"blocks": 15, "demo": "circle"})
    virtual = ros.listen(JointState, "/virtual_joint_states")
    wait_until(lambda: len(virtual) > 20, 20.0, "the demo")
    first, last = np.array(virtual[0].position), np.array(virtual[-1].position)
    assert np.abs(first - last).max() > 1e-3


ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"


@pytest.mark.parametrize("path", [False, True])
def test_robots_by_name_or_path_follow_their_targets(ros, path):
    preset = str(ROBOTS / "biped.urdf") if path else "biped"
    folder = "" if path else str(ROBOTS)
    ros.add(
        HierNode,
        {"preset": preset, "robots_folder": folder, "demo": "circle", "frame_prefix": "r1/"},
    )
    states = ros.listen(JointState, "/joint_states")
    pictures = ros.listen(MarkerArray, "/hier_ik/markers")
    wait_until(lambda: len(states) > 50, 20.0, "the demo")
    first, last = np.array(states[0].position), np.array(states[-1].position)
    assert np.abs(first - last).max() > 1e-2
    assert "left.ankle_swing1" in states[0].name
    wait_until(lambda: pictures, 10.0, "markers")
    frame = "r1/biped_base" if path else "world"
    assert {m.header.frame_id for m in pictures[-1].markers if m.action == Marker.ADD} == {frame}
    grips = {m.text for m in pictures[-1].markers}
    assert {"left.foot", "right.foot"} <= grips
    # Without a name, the goal that the link has is moved; its drag is let go of without a fault.
    goal = ros.publisher(HierGoal, "/hier_ik/goal")
    wanted = HierGoal(link="left.foot", kind="position", priority=-1)
    wanted.target.position.x, wanted.target.position.y = 0.05, 0.12
    wanted.target.position.z = -0.7
    goal.publish(wanted)

    def there():
        feet = [m.pose.position for m in pictures[-1].markers if m.text == "left.foot"]
        return feet and abs(feet[0].x - 0.05) + abs(feet[0].z + 0.7) < 1e-3

    wait_until(there, 20.0, "the foot where it was asked for")
    goal.publish(HierGoal(name="drag:left.foot", remove=True))
    answer = ros.call(SolveHierIK, "/hier_ik/solve", SolveHierIK.Request())
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert {r.name for r in answer.solution.residuals if r.level == 3} == {
        "left_foot",
        "right_foot",
    }


def test_the_demo_waits_while_somebody_drags(ros):
    ros.add(HierNode, {"blocks": 3, "demo": "circle", "rate": 100.0})
    pictures = ros.listen(MarkerArray, "/hier_ik/markers")
    drag = ros.publisher(PoseStamped, "/hier_ik/drag", COMMAND)
    message = PoseStamped()
    message.header.frame_id = "P3/position"
    message.pose.position.x, message.pose.position.z = 0.25, 2.3
    message.pose.orientation.w = 1.0
    drag.publish(message)

    def there():
        here = [m.pose.position for p in pictures[-3:] for m in p.markers if m.text == "P3"]
        return len(here) == 3 and all(abs(p.x - 0.25) + abs(p.z - 2.3) < 1e-3 for p in here)

    wait_until(there, 20.0, "the plate to stay where it was dragged to")


def test_another_linkage_takes_the_old_markers_away(ros):
    ros.add(HierNode, {"blocks": 3})
    pictures = ros.listen(MarkerArray, "/hier_ik/markers")
    wait_until(lambda: len(pictures) > 2, 20.0, "markers")
    before = len(pictures)
    ros.call(LoadLinkage, "/hier_ik/load", LoadLinkage.Request(preset="tower", blocks=2))
    wait_until(
        lambda: any(p.markers[0].action == Marker.DELETEALL for p in pictures[before:]),
        20.0,
        "the old markers to go",
    )
    assert sum(m.ns == "grips" for m in pictures[-1].markers) == 3


def test_action_reports_progress_and_cancels(ros):
    ros.add(HierNode, {"blocks": 15})
    seen = []
    goal = SolveHier.Goal(
        problem=HierProblem(goals=[goal_at(0.8, 11.6)], tolerance=1e-9, keep=True)
    )
    result = ros.send_goal(
        SolveHier, "/hier_ik/solve_to_convergence", goal, on_feedback=seen.append
    )
    assert result.status.code == SolveStatus.SUCCESS, result.status.message
    assert seen
    assert seen[-1].residual < 1.0
    hard = HierProblem(
        goals=[goal_at(40.0, 1.0)], tolerance=1e-12, max_iterations=1_000_000, mode="flat_svd"
    )
    endless = SolveHier.Goal(problem=hard, timeout=250.0)
    handle = ros.start_goal(SolveHier, "/hier_ik/solve_to_convergence", endless)
    cancelled = handle.cancel_goal_async()
    future = handle.get_result_async()
    wait_until(future.done, 200.0, "the cancelled result")
    assert cancelled.done()
    assert future.result().result.status.code == SolveStatus.CANCELLED


def test_check_abstraction(ros):
    ros.add(HierNode, {"blocks": 1})
    request = CheckAbstraction.Request(sublinkage="C1", samples=8, timeout=200.0)
    answer = ros.call(CheckAbstraction, "/hier_ik/check_abstraction", request, timeout=200)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert not answer.refuted
    assert answer.samples_tried == 8
    edit = EditLinkage.Request(edits="[{op: set_limits, name: C1.expand, lower: 0.6, upper: 1.5}]")
    ros.call(EditLinkage, "/hier_ik/edit", edit)
    answer = ros.call(CheckAbstraction, "/hier_ik/check_abstraction", request, timeout=200)
    assert answer.refuted
    assert answer.witness_names == ["C1.tilt", "C1.expand"]


#: Four bars, the last with limits: inside, it is taken apart under an inner name.
FOUR_BARS = """
name: four bars
links: [g, a, b, c]
joints:
  - {name: "1", type: revolute, parent: g, child: a, role: tree, value: [1.2]}
  - {name: "2", type: revolute, parent: a, child: c, role: tree, xyz: [0.5, 0, 0], value: [-1.2]}
  - {name: "3", type: revolute, parent: g, child: b, role: tree, xyz: [1, 0, 0], value: [1.2]}
  - {name: "4", type: revolute, parent: c, child: b, role: closure, xyz: [1, 0, 0],
     child_xyz: [0.5, 0, 0], lower: -3.0, upper: 3.0}
"""


def test_no_name_ends_the_drag_loop(ros):
    ros.add(HierNode, {"preset": "none", "rate": 100.0})
    answer = ros.call(LoadLinkage, "/hier_ik/load", LoadLinkage.Request(yaml=FOUR_BARS))
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    states = ros.listen(JointState, "/joint_states")
    goals = ros.publisher(HierGoal, "/hier_ik/goal")
    wait_until(lambda: states, 10.0, "states")
    for name in ("4~end", "4", "4\u2060end", "~end", "", "4~end~end", "x" * 300, "a/b", "drag"):
        goal = HierGoal(name=name, link="c", kind="position", priority=-1)
        goal.target.position.x, goal.target.position.y = 0.3, 0.4
        goals.publish(goal)
        seen = len(states)
        wait_until(lambda n=seen: len(states) > n + 5, 10.0, f"states after {name!r}")
    request = SolveHierIK.Request()
    answer = ros.call(SolveHierIK, "/hier_ik/solve", request)
    assert {"4", "4~end", "~end"} <= {r.name for r in answer.solution.residuals}
    # The goal of that name is followed: the loop lives and works.
    wait_until(
        lambda: abs(dict(zip(states[-1].name, states[-1].position, strict=True))["1"] - 1.2) > 0.1,
        10.0,
        "a motion to the goal",
    )


def test_an_edit_that_is_refused_changes_nothing(ros):
    ros.add(HierNode, {"preset": "none", "max_links": 4})
    ros.call(LoadLinkage, "/hier_ik/load", LoadLinkage.Request(yaml=FOUR_BARS))
    more = """
- {op: add_link, name: e}
- {op: add_joint, name: "5", type: revolute, parent: c, child: e, role: tree}
"""
    answer = ros.call(EditLinkage, "/hier_ik/edit", EditLinkage.Request(edits=more))
    assert answer.status.code != SolveStatus.SUCCESS
    assert "5 is more than the limit of 4" in answer.status.message
    components = ros.call(Decompose, "/hier_ik/decompose", Decompose.Request()).components
    assert {j for c in components for j in c.joints} == {"1", "2", "3"}


def test_the_files_that_are_read_are_fixed_at_the_start(ros):
    node = ros.add(HierNode, {"preset": "none"})
    for name in ("linkage_file", "closures_file", "linkage_folder", "robots_folder", "preset"):
        done = ros.run_on(
            node, lambda n=name: node.set_parameters([Parameter(n, value="/etc/passwd")])
        )
        assert not done[0].successful, name
    assert node.parameters.linkage_file == ""


def test_a_goal_that_later_joints_move_is_warned_of(ros):
    ros.add(HierNode, {"preset": "none"})
    text = """
name: early
sublinkages: [{name: S, disposition: driving}]
links: [g, a, {name: b, sublinkage: S}, {name: c, sublinkage: S}]
joints:
  - {name: "1", type: revolute, parent: g, child: a, role: tree}
  - {name: "2", type: revolute, parent: a, child: b, role: tree, xyz: [1, 0, 0]}
  - {name: "3", type: revolute, parent: b, child: c, role: tree, xyz: [1, 0, 0]}
goals:
  - {name: tip, link: c, kind: position, xyz: [1.5, 1.2, 0]}
  - {name: elbow, link: a, kind: orientation, rpy: [0, 0, 0.3]}
"""
    answer = ros.call(LoadLinkage, "/hier_ik/load", LoadLinkage.Request(yaml=text))
    assert any("'tip' is solved in round 0" in w for w in answer.warnings), answer.warnings
    answer = ros.call(SolveHierIK, "/hier_ik/solve", SolveHierIK.Request())
    sizes = {r.name: r for r in answer.solution.residuals}
    assert sizes["elbow"].met
    if not sizes["tip"].met:
        assert "later rounds" in answer.status.message


def test_a_request_on_the_same_linkage_builds_nothing(ros, monkeypatch):
    """Not even in another mode, once that has been asked for; a posture that was moved counts."""
    ros.add(HierNode, {"blocks": 2, "rate": 1.0})
    modes = ("", "flat_structured")
    first = question(goals=[goal_at(0.2, 1.5)], keep=True)
    ros.call(SolveHierIK, "/hier_ik/solve", first)
    for mode in modes:
        ros.call(SolveHierIK, "/hier_ik/solve", question(mode=mode))

    def build(*arguments):
        raise AssertionError("built anew")

    monkeypatch.setattr("hier_ik.solver.compile_linkage", build)
    for mode in modes:
        request = question(goals=[goal_at(-0.2, 1.4)], mode=mode)
        answer = ros.call(SolveHierIK, "/hier_ik/solve", request)
        assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
        still = ros.call(SolveHierIK, "/hier_ik/solve", question(mode=mode))
        assert still.status.iterations <= 1  # the running state, which no request has moved


def test_targets_in_frames_of_tf_and_of_the_old_kind(ros):
    """A frame that tf knows, at the time of the stamp; a link as frame goes on, with a warning."""
    ros.add(HierNode, {"blocks": 3, "rate": 100.0})
    pictures = ros.listen(MarkerArray, "/hier_ik/markers")
    said = ros.listen(Log, "/rosout", 10)
    drag = ros.publisher(PoseStamped, "/hier_ik/drag", COMMAND)
    goal = ros.publisher(HierGoal, "/hier_ik/goal")
    tf = ros.node.create_publisher(TFMessage, "/tf", 10)

    def place(x, seconds):
        t = TransformStamped(child_frame_id="table")
        t.header.frame_id, t.header.stamp.sec = "world", seconds
        t.transform.translation.x, t.transform.rotation.w = x, 1.0
        return t

    def at(link, x, z):
        here = [m.pose.position for p in pictures[-2:] for m in p.markers if m.text == link]
        return len(here) == 2 and all(abs(p.x - x) + abs(p.z - z) < 1e-3 for p in here)

    message = PoseStamped()
    message.header.frame_id, message.header.stamp.sec = "table", 15
    message.pose.position.x, message.pose.position.z = 0.1, 2.3
    message.pose.orientation.w = 1.0

    def dragged(link, x, z):
        tf.publish(TFMessage(transforms=[place(0.0, 10), place(0.2, 20)]))
        drag.publish(message)
        return at(link, x, z)

    wait_until(lambda: dragged("P3", 0.2, 2.3), 30.0, "the drag between two times of a frame")
    chosen = HierGoal(link="P2", kind="position", priority=-1)
    chosen.header.frame_id, chosen.header.stamp.sec = "table", 20
    chosen.target.position.x, chosen.target.position.z = -0.1, 1.5
    goal.publish(chosen)
    wait_until(lambda: at("P2", 0.1, 1.5), 20.0, "a goal in a frame")
    message.pose.position.x, message.pose.position.z = 0.0, 1.5
    wait_until(lambda: dragged("P2", 0.1, 1.5), 20.0, "the drag of the chosen link")

    request = question(goals=[chosen])
    answer = ros.call(SolveHierIK, "/hier_ik/solve", request)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    request.problem.goals[0].header.frame_id = "nowhere"
    answer = ros.call(SolveHierIK, "/hier_ik/solve", request)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert "nowhere" in answer.status.message

    message.header.frame_id = "P3/position"
    message.pose.position.x, message.pose.position.z = 0.15, 2.25
    drag.publish(message)
    wait_until(lambda: at("P3", 0.15, 2.25), 20.0, "a drag of the old kind")
    wait_until(lambda: any("next release" in m.msg for m in said), 10.0, "its warning")


def test_the_doors_of_moveit(ros):
    """With standard messages alone, in a frame of tf."""
    ros.add(HierNode, {"blocks": 4})
    static = TransformStamped(child_frame_id="table")
    static.header.frame_id = "world"
    static.transform.translation.x, static.transform.rotation.w = 0.5, 1.0
    tf = ros.node.create_publisher(TFMessage, "/tf_static", LATCHED)
    tf.publish(TFMessage(transforms=[static]))
    request = GetPositionIK.Request()
    asked = request.ik_request
    asked.ik_link_name = "P4"
    asked.pose_stamped.header.frame_id = "table"
    pose = asked.pose_stamped.pose
    pose.position.x, pose.position.z, pose.orientation.w = -0.4, 3.0, 1.0
    answer = ros.call(GetPositionIK, "/hier_ik/compute_ik", request)
    assert answer.error_code.val == MoveItErrorCodes.SUCCESS, answer.error_code.message
    back = GetPositionFK.Request(fk_link_names=["P4", "P0"])
    back.robot_state = answer.solution
    back.header.frame_id = "table"
    poses = ros.call(GetPositionFK, "/hier_ik/compute_fk", back)
    assert poses.error_code.val == MoveItErrorCodes.SUCCESS, poses.error_code.message
    found = poses.pose_stamped[0].pose
    assert (found.position.x, found.position.z) == pytest.approx((-0.4, 3.0), abs=1e-5)
    assert poses.pose_stamped[1].pose.position.x == pytest.approx(-0.5)
    for change, code in (
        ({"ik_link_name": "P9"}, MoveItErrorCodes.INVALID_LINK_NAME),
        ({"avoid_collisions": True}, MoveItErrorCodes.COLLISION_CHECKING_UNAVAILABLE),
    ):
        bad = copy.deepcopy(request)
        for key, value in change.items():
            setattr(bad.ik_request, key, value)
        assert ros.call(GetPositionIK, "/hier_ik/compute_ik", bad).error_code.val == code
    pose.position.y = 0.3  # out of the plane of the tower
    answer = ros.call(GetPositionIK, "/hier_ik/plugin_ik", request)
    assert answer.error_code.val == MoveItErrorCodes.NO_IK_SOLUTION
