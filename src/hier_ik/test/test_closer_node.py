"""The node loop_closer over real DDS: actuators in, the full state out; refusals; requests."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from kin_interfaces.msg import LoopStatus, SolveStatus
from kin_interfaces.srv import CloseLoops
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hier_ik import LoopCloser, load_urdf_linkage
from hier_ik.closer_node import LoopCloserNode
from kin_ros.qos import LATCHED
from kin_testing.fixtures import wait_until
from kin_tools.policy import read_policy, rights_of

sys.path.insert(0, str(Path(__file__).parent))
from oracle import Oracle

pytestmark = pytest.mark.node

ROOT = Path(__file__).resolve().parents[3]

#: A hip, and a knee that a four-bar linkage drives; the loop can be stretched.
URDF = """
<robot name="leg">
  <link name="torso"/><link name="thigh"/><link name="crank"/><link name="rod"/><link name="shin"/>
  <joint name="hip" type="continuous"><parent link="torso"/><child link="thigh"/>
    <axis xyz="1 0 0"/></joint>
  <joint name="motor" type="continuous"><parent link="thigh"/><child link="crank"/>
    <origin xyz="0 0 -0.05"/><axis xyz="0 1 0"/></joint>
  <joint name="rod" type="continuous"><parent link="crank"/><child link="rod"/>
    <origin xyz="-0.1 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="knee" type="continuous"><parent link="thigh"/><child link="shin"/>
    <origin xyz="0 0 -0.4"/><axis xyz="0 1 0"/></joint>
</robot>
"""
LOOPS = """
closures:
  - {name: loop, type: revolute, axis: [0, 1, 0], link_a: rod, origin_a: {xyz: [0, 0, -0.36]},
     link_b: shin, origin_b: {xyz: [-0.08, 0, 0]}}
actuated: [hip, motor]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "leg.urdf").write_text(URDF)
    (tmp_path / "leg.closures.yaml").write_text(LOOPS)
    return tmp_path


def measured(seconds, hip, motor, **more):
    stamp = Time(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))
    message = JointState(name=["motor", "hip", "of another robot"], position=[motor, hip, 7.0])
    message.header.stamp = stamp
    for name, values in more.items():
        setattr(message, name, values)
    return message


def test_every_message_of_the_actuators_is_answered_with_the_full_state(ros, files):
    ros.add(
        LoopCloserNode, {"linkage_file": str(files / "leg.urdf"), "effort_joints": ["hip", "knee"]}
    )
    states = ros.listen(JointState, "/joint_states")
    actuated = ros.publisher(JointState, "/actuated_joint_states")
    closer = LoopCloser(load_urdf_linkage(URDF, LOOPS))
    oracle = Oracle(closer.linkage)
    rng = np.random.default_rng(0)
    for k in range(30):
        hip, motor = rng.uniform(-0.3, 0.3, 2)
        velocity, effort = rng.normal(size=(2, 2))
        actuated.publish(
            measured(1.0 + k, hip, motor, velocity=[velocity[1], velocity[0], 0.0],
                     effort=[effort[1], effort[0], 0.0])
        )  # fmt: skip
        wait_until(lambda n=k: len(states) > n, 10.0, "a full state")
        full = states[k]
        assert full.header.stamp.sec == 1 + k
        expected = closer.close([hip, motor], velocity)
        assert list(full.name) == list(closer.names)
        np.testing.assert_array_equal(full.position, expected.positions)
        np.testing.assert_array_equal(full.velocity, expected.velocities)
        left = oracle.residuals(
            {n: np.array([q]) for n, q in zip(full.name, full.position, strict=True)}
        )
        assert max(left.values()) <= 1e-9
        # The work of the efforts that are shown is that of the motors, in any motion.
        tau = np.array(full.effort)
        assert tau[closer.names.index("motor")] == 0.0
        w = rng.normal(size=2)
        assert tau @ closer.rates(w) == pytest.approx(effort @ w)


def test_a_jump_is_refused_said_and_never_made(ros, files):
    ros.add(LoopCloserNode, {"linkage_file": str(files / "leg.urdf"), "margin_warning": 0.5})
    states = ros.listen(JointState, "/joint_states")
    told = ros.listen(LoopStatus, "/loop_closer/status")
    faults = ros.listen(DiagnosticArray, "/diagnostics", 10)
    actuated = ros.publisher(JointState, "/actuated_joint_states")
    actuated.publish(JointState(name=["motor"], position=[0.1]))
    wait_until(lambda: told and told[-1].missing == ["hip"], 10.0, "the missing joint")
    assert told[-1].step == LoopStatus.WAITING
    actuated.publish(measured(1.0, 0.0, 0.1))
    wait_until(lambda: states, 10.0, "a state")
    # The crank is longer than the lever of the knee: somewhere on its turn the loop is stretched.
    actuated.publish(measured(2.0, 0.0, math.pi))
    wait_until(lambda: any(s.refused for s in told), 10.0, "a refusal")
    refused = next(s for s in told if s.refused)
    assert refused.step in (LoopStatus.SINGULAR, LoopStatus.TOO_FAR)
    assert refused.message
    assert refused.nearest == ["loop"]
    assert refused.margin > 0.0
    actuated.publish(measured(3.0, math.nan, 0.1))
    actuated.publish(JointState(name=["hip", "motor"], position=[0.0]))
    actuated.publish(JointState(name=["hip", "hip"], position=[0.0, 0.0]))
    wait_until(
        lambda: any(
            s.level == DiagnosticStatus.ERROR and "the step is refused" in s.message
            for array in faults
            for s in array.status
        ),
        10.0,
        "the fault in the diagnostics",
    )
    wait_until(
        lambda: any(v.key == "margin" for a in faults for s in a.status for v in s.values),
        10.0,
        "the margin in the diagnostics",
    )
    assert len(states) == 1
    actuated.publish(measured(4.0, 0.0, 0.12))  # and on, on the same branch
    wait_until(lambda: len(states) == 2, 10.0, "the next state")
    closer = LoopCloser(load_urdf_linkage(URDF, LOOPS))
    np.testing.assert_allclose(states[-1].position, closer.close([0.0, 0.12]).positions, atol=1e-12)
    wait_until(lambda: told[-1].taken == 2, 10.0, "the counts")


def test_trajectories_and_single_states_by_request(ros, files):
    ros.add(LoopCloserNode, {"linkage_file": str(files / "leg.urdf"), "max_points": 50})
    closer = LoopCloser(load_urdf_linkage(URDF, LOOPS))
    angles = np.linspace(0.0, 0.4, 20)
    points = [
        JointTrajectoryPoint(
            positions=[a], velocities=[0.5], effort=[2.0], time_from_start=Duration(sec=k)
        )
        for k, a in enumerate(angles)
    ]
    request = CloseLoops.Request(
        trajectory=JointTrajectory(joint_names=["motor"], points=points), from_start=True
    )
    answer = ros.call(CloseLoops, "/loop_closer/close", request)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert list(answer.trajectory.joint_names) == list(closer.names)
    assert len(answer.trajectory.points) == len(answer.margins) == 20
    assert answer.nearest == ["loop"]
    for a, point in zip(angles, answer.trajectory.points, strict=True):
        expected = closer.close([0.0, a], [0.0, 0.5])
        np.testing.assert_array_equal(point.positions, expected.positions)
        np.testing.assert_array_equal(point.velocities, expected.velocities)
        assert list(point.effort) == [0.0, 2.0, 0.0, 0.0]
    assert answer.trajectory.points[7].time_from_start.sec == 7

    request.trajectory.points[10].positions = [math.pi]
    answer = ros.call(CloseLoops, "/loop_closer/close", request)
    assert answer.status.code == SolveStatus.UNREACHABLE
    assert answer.status.message.startswith("points[10]: ")
    assert len(answer.trajectory.points) == 10

    one = JointTrajectory(points=[JointTrajectoryPoint()])
    answer = ros.call(CloseLoops, "/loop_closer/close", CloseLoops.Request(trajectory=one))
    assert answer.status.code == SolveStatus.SUCCESS
    (here,) = answer.trajectory.points
    np.testing.assert_allclose(here.positions, LoopCloser(load_urdf_linkage(URDF, LOOPS)).positions)

    for names, positions, field in (
        (["knee"], [0.1], "joint_names"),
        (["motor", "motor"], [0.1, 0.1], "joint_names"),
        (["motor"], [0.1, 0.1], "positions"),
        (["motor"], [], "positions"),
        (["motor"], [math.nan], "positions"),
    ):
        bad = JointTrajectory(joint_names=names, points=[JointTrajectoryPoint(positions=positions)])
        answer = ros.call(CloseLoops, "/loop_closer/close", CloseLoops.Request(trajectory=bad))
        assert answer.status.code == SolveStatus.INVALID_INPUT, (names, positions)
        assert field in answer.status.message
    many = JointTrajectory(points=[JointTrajectoryPoint()] * 51)
    answer = ros.call(CloseLoops, "/loop_closer/close", CloseLoops.Request(trajectory=many))
    assert answer.status.code == SolveStatus.LIMIT_EXCEEDED


def test_robot_description_and_efforts_back_to_the_actuators(ros, files):
    ros.add(LoopCloserNode, {"closures_file": str(files / "leg.closures.yaml")})
    request = CloseLoops.Request()
    answer = ros.call(CloseLoops, "/loop_closer/close", request)
    assert "robot_description" in answer.status.message
    description = ros.publisher(String, "/robot_description", LATCHED)
    description.publish(String(data="<robot/>"))  # is survived
    description.publish(String(data=URDF))
    states = ros.listen(JointState, "/joint_states")
    actuated = ros.publisher(JointState, "/actuated_joint_states")

    def heard():
        actuated.publish(measured(1.0, 0.2, 0.3))
        return states

    wait_until(heard, 20.0, "a state of the described robot")
    closer = LoopCloser(load_urdf_linkage(URDF, LOOPS))
    closer.close([0.2, 0.3])
    felt = ros.listen(JointState, "/loop_closer/actuator_efforts")
    efforts = ros.publisher(JointState, "/loop_closer/joint_efforts")
    efforts.publish(JointState(name=["nobody"], effort=[1.0]))  # is survived
    efforts.publish(JointState(name=["knee"], effort=[3.0]))
    wait_until(lambda: felt, 10.0, "efforts of the actuators")
    torques = np.zeros(4)
    torques[closer.names.index("knee")] = 3.0
    assert list(felt[0].name) == ["hip", "motor"]
    np.testing.assert_allclose(felt[0].effort, closer.actuator_torques(torques), atol=1e-12)


def test_its_policy_is_what_it_uses_and_no_more(ros):
    ros.add(LoopCloserNode)
    policy = read_policy((ROOT / "docker" / "security" / "policy.xml").read_text())
    allowed = policy["/loop_closer"][1]

    def differences():
        used = rights_of(ros.node, "loop_closer", "/")
        return allowed.missing(used) + used.missing(allowed)

    wait_until(lambda: not differences(), 20.0, "the graph to be as the policy says")
