"""The node over real DDS."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped
from kin_interfaces.action import SolveManifold as SolveManifoldAction
from kin_interfaces.action import SolvePath as SolvePathAction
from kin_interfaces.msg import Manifold, ManifoldProblem, PathProblem, PathTree, SolveStatus
from kin_interfaces.srv import SolveAllIK, SolveManifold, SolvePath
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from kin_core.rotations import exp_so3, matrix_to_quaternion, transform
from kin_ros.frames import fill_transform
from kin_ros.poses import to_pose as make_pose
from kin_ros.qos import LATCHED
from kin_solvers import library
from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import ros, wait_until  # noqa: F401 (a fixture)

pytestmark = pytest.mark.node


def problem(**fields):
    return SolveManifold.Request(problem=ManifoldProblem(**fields), timeout=60.0)


def to_pose(matrix):
    return make_pose(matrix[:3, 3], matrix[:3, :3])


URDF = """
<robot name="two_r">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="tip"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="j3" type="continuous"><parent link="l2"/><child link="tip"/>
    <origin xyz="0.8 0 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.mark.slow
def test_the_node(ros):  # noqa: F811
    ros.add(KinSolversNode, parameters={"threads": 2})

    def call(request):
        return ros.call(SolveManifold, "/kin_solvers/solve_manifold", request, timeout=90)

    answer = call(problem(mechanism="bennett", refine=20, seed=[0.1, 3.0, -0.1, -3.0]))
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    m = answer.manifold
    assert m.complete
    assert 0 < m.box_count <= 115
    assert len(m.lower) == len(m.upper) == m.box_count * 4
    assert list(m.closed_curves) == [True]
    assert m.point_count > 0
    assert (np.diff(m.distances) >= 0).all()

    # the last manifold, its markers and the playback of its curve
    kept = ros.collect(Manifold, "/kin_solvers/manifold", 1, 20, LATCHED)[0]
    assert kept.box_count == m.box_count
    markers = ros.collect(MarkerArray, "/kin_solvers/markers", 1, 20, LATCHED)[0]
    assert len(markers.markers) == m.box_count + 1
    states = ros.collect(JointState, "/kin_solvers/joint_states", 3, 20)
    bennett = library.get("bennett")
    assert max(bennett.residual(s.position) for s in states) < 1e-8

    # bad input: a clear refusal each time, and the node keeps serving
    for fields, word in [
        ({"mechanism": "nobody"}, "nobody"),
        ({"mechanism": "bennett", "sigma": -1.0}, "sigma"),
        ({"mechanism": "bennett", "sigma": float("nan")}, "sigma"),
        ({"mechanism": "bennett", "seed": [1.0]}, "seed"),
        ({"mechanism": "bennett", "method": "slow"}, "method"),
        ({"mechanism": "variables: 3\nloops: []", "source": ManifoldProblem.YAML}, "variables"),
        ({"mechanism": "other_topic", "source": ManifoldProblem.URDF}, "other_topic"),
        (
            {"mechanism": "bennett", "range_names": ["theta1"], "range_lower": [1.0],
             "range_upper": [1.0]},
            "theta1",
        ),
        (
            {"mechanism": "bennett", "range_names": ["x"], "range_lower": [0.0],
             "range_upper": [1.0]},
            "x",
        ),
    ]:  # fmt: skip
        answer = call(problem(**fields))
        assert answer.status.code == SolveStatus.INVALID_INPUT, (fields, answer.status.message)
        assert word in answer.status.message

    answer = call(problem(mechanism="iiwa7", max_boxes=50))
    assert answer.status.code == SolveStatus.LIMIT_EXCEEDED
    assert answer.manifold.unfinished_count > 0
    rest = problem(mechanism="iiwa7", sigma=0.3)
    rest.problem.resume_lower = answer.manifold.unfinished_lower
    rest.problem.resume_upper = answer.manifold.unfinished_upper
    assert call(rest).status.code == SolveStatus.SUCCESS

    # all IK of an arm of the library
    arm = library.get("puma560")
    request = SolveAllIK.Request(arm="puma560", seed=[0.3, -0.7, 0.9, 0.4, 0.8, -0.5], timeout=60.0)
    request.target.pose = to_pose(arm.target)
    answer = ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert answer.count == 8
    assert all(answer.certified)
    np.testing.assert_allclose(answer.positions[:6], [0.3, -0.7, 0.9, 0.4, 0.8, -0.5], atol=1e-6)
    request.target.pose.position.x = 9.0
    answer = ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)
    assert answer.status.code == SolveStatus.UNREACHABLE

    # all IK of the robot description
    ros.publish(String, "/robot_description", String(data=URDF), LATCHED)
    pose = np.eye(4)
    pose[:3, 3] = [1.2, 0.5, 0.0]

    def answered():
        request = SolveAllIK.Request(timeout=60.0)
        request.target.pose = to_pose(pose)
        reply = ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)
        return reply if reply.status.code == SolveStatus.SUCCESS else None

    reply = wait_until(answered, 30.0, "the robot description")
    assert reply.count == 2
    assert list(reply.joints) == ["j1", "j2", "j3"]

    # concurrent clients are all answered
    futures = [
        ros.call_async(SolveManifold, "/kin_solvers/solve_manifold", problem(mechanism=name))
        for name in ("bennett", "puma560", "planar_four_bar", "bennett")
    ]
    wait_until(lambda: all(f.done() for f in futures), 90.0, "four answers")
    assert all(f.result().status.code == SolveStatus.SUCCESS for f in futures)


def test_a_target_in_any_frame_that_tf_knows(ros):  # noqa: F811
    """A camera sees the target of an arm of the library, and of the robot description."""
    ros.add(KinSolversNode)
    rng = np.random.default_rng(4)
    camera = transform(exp_so3(rng.normal(size=3)), rng.normal(size=3))
    arm = library.get("puma560")
    fixed = TFMessage(transforms=[TransformStamped()])
    fixed.transforms[0].header.frame_id = "base"
    fixed.transforms[0].child_frame_id = "camera"
    quaternion = matrix_to_quaternion(camera[:3, :3])
    fill_transform(fixed.transforms[0], [*camera[:3, 3].tolist(), *quaternion.tolist()])
    # The node listens to tf from the first question about another frame on.
    ros.node.create_publisher(TFMessage, "/tf_static", LATCHED).publish(fixed)
    ros.publish(String, "/robot_description", String(data=URDF), LATCHED)

    def ask(pose, frame, **fields):
        request = SolveAllIK.Request(timeout=60.0, **fields)
        request.target.header.frame_id = frame
        request.target.pose = to_pose(pose)
        return ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)

    seen = np.linalg.inv(camera) @ arm.target
    answer = ask(seen, "camera", arm="puma560", base_link="base")
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    straight = ask(arm.target, "", arm="puma560")
    np.testing.assert_allclose(answer.positions, straight.positions, atol=1e-9)
    here = np.eye(4)
    here[:3, 3] = [1.2, 0.5, 0.0]
    seen = np.linalg.inv(camera) @ here
    wait_until(
        lambda: ask(seen, "camera").status.code == SolveStatus.SUCCESS, 30.0, "the description"
    )
    np.testing.assert_allclose(
        ask(seen, "camera").positions, ask(here, "base").positions, atol=1e-9
    )
    for answer, word in (
        (ask(seen, "camera", arm="puma560"), "base_link"),
        (ask(seen, "moon", arm="puma560", base_link="base"), "target.header.frame_id"),
        (ask(seen, "moon"), "'moon'"),
    ):
        assert answer.status.code == SolveStatus.INVALID_INPUT
        assert word in answer.status.message


def test_every_path_along_a_line(ros):  # noqa: F811
    ros.add(KinSolversNode)
    arm = library.get("puma560")
    q = [0.3, -0.7, 0.9, 0.4, 0.8, -0.5]
    problem = PathProblem(arm="puma560", seed=q, max_step=0.01)
    goal = arm.target.copy()
    goal[:3, 3] += [0.05, 0.05, 0.0]
    problem.waypoints = [to_pose(arm.target), to_pose(goal)]
    seen = []
    handle = ros.start_goal(
        SolvePathAction,
        "/kin_solvers/solve_path",
        SolvePathAction.Goal(problem=problem, timeout=60.0),
        on_feedback=seen.append,
    )
    future = handle.get_result_async()
    wait_until(future.done, 60.0, "the result")
    for answer in (
        future.result().result,
        ros.call(
            SolvePath, "/kin_solvers/solve_path", SolvePath.Request(problem=problem), timeout=90
        ),
    ):
        assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
        tree = answer.tree
        assert tree.complete
        assert tree.fraction == 1.0
        best = np.array(tree.best_positions).reshape(-1, 6)
        assert len(best) == tree.pose_count
        np.testing.assert_allclose(best[0], q, atol=1e-6)
        assert arm.with_target(goal).residual(best[-1]) < 1e-7
        assert list(tree.counts)[tree.best] == tree.pose_count
        assert len(tree.positions) == 6 * sum(tree.counts)
    assert seen
    problem.waypoints[1].position.x += 9.0
    request = SolvePath.Request(problem=problem)
    answer = ros.call(SolvePath, "/kin_solvers/solve_path", request, timeout=90)
    assert answer.status.code == SolveStatus.UNREACHABLE
    assert "no path goes all the way" in answer.status.message
    assert set(answer.tree.ends) <= {PathTree.MEETS, PathTree.SINGULAR}
    problem.waypoints = problem.waypoints[:1]
    answer = ros.call(SolvePath, "/kin_solvers/solve_path", request, timeout=90)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert "waypoints" in answer.status.message


@pytest.mark.slow
def test_the_action_reports_progress_and_can_be_cancelled(ros):  # noqa: F811
    ros.add(KinSolversNode, parameters={"threads": 1})
    goal = SolveManifoldAction.Goal(
        problem=ManifoldProblem(mechanism="iiwa7", sigma=1e-5), timeout=60.0
    )
    seen = []
    handle = ros.start_goal(
        SolveManifoldAction, "/kin_solvers/solve_manifold", goal, on_feedback=seen.append
    )
    wait_until(lambda: len(seen) >= 2, 60.0, "two reports")
    asked = time.monotonic()
    handle.cancel_goal_async()
    future = handle.get_result_async()
    wait_until(future.done, 20.0, "the result")
    result = future.result().result
    assert time.monotonic() - asked < 10.0
    assert result.status.code == SolveStatus.CANCELLED
    assert result.manifold.unfinished_count > 0
    assert not result.manifold.complete


@pytest.mark.slow
def test_a_cancelled_solve_says_so_also_when_it_found_too_much_to_send(ros):  # noqa: F811
    ros.add(KinSolversNode, parameters={"threads": 1, "max_answer_boxes": 1})
    goal = SolveManifoldAction.Goal(
        problem=ManifoldProblem(mechanism="iiwa7", sigma=1e-5), timeout=60.0
    )
    seen = []
    handle = ros.start_goal(
        SolveManifoldAction, "/kin_solvers/solve_manifold", goal, on_feedback=seen.append
    )
    wait_until(lambda: seen, 60.0, "a report")
    handle.cancel_goal_async()
    future = handle.get_result_async()
    wait_until(future.done, 20.0, "the result")
    assert future.result().result.status.code == SolveStatus.CANCELLED
    assert future.result().result.manifold.box_count == 0
