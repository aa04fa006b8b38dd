"""The node over real DDS."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from kin_interfaces.action import SolveManifold as SolveManifoldAction
from kin_interfaces.msg import Manifold, ManifoldProblem, SolveStatus
from kin_interfaces.srv import SolveAllIK, SolveManifold
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from kin_core.rotations import matrix_to_quaternion
from kin_ros.qos import LATCHED
from kin_solvers import library
from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import ros, wait_until  # noqa: F401 (a fixture)

pytestmark = pytest.mark.node


def problem(**fields):
    return SolveManifold.Request(problem=ManifoldProblem(**fields), timeout=60.0)


def to_pose(matrix):
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = (float(x) for x in matrix[:3, 3])
    q = matrix_to_quaternion(matrix[:3, :3])
    pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w = map(float, q)
    return pose


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
    request = SolveAllIK.Request(
        arm="puma560", pose=to_pose(arm.target), seed=[0.3, -0.7, 0.9, 0.4, 0.8, -0.5], timeout=60.0
    )
    answer = ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert answer.count == 8
    assert all(answer.certified)
    np.testing.assert_allclose(answer.positions[:6], [0.3, -0.7, 0.9, 0.4, 0.8, -0.5], atol=1e-6)
    request.pose.position.x = 9.0
    answer = ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=90)
    assert answer.status.code == SolveStatus.UNREACHABLE

    # all IK of the robot description
    ros.publish(String, "/robot_description", String(data=URDF), LATCHED)
    pose = np.eye(4)
    pose[:3, 3] = [1.2, 0.5, 0.0]

    def answered():
        request = SolveAllIK.Request(pose=to_pose(pose), timeout=60.0)
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
