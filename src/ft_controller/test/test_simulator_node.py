"""The simulated arm as a node: torques in, joint states out."""

import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import LockJoint, SetJointLimits
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from ft_controller.simulator_node import ArmSimulator
from kin_ros.qos import COMMAND, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node

JOINTS = ["joint_1", "joint_2", "joint_3", "joint_4"]
START = np.array([0.3, 0.4, 0.5, 0.6])


@pytest.fixture
def simulator(ros):
    """An arm that looks for no other, and listens to a torque for a minute."""
    return ros.add(ArmSimulator, {"rate": 100.0, "claim_time": 0.0, "command_timeout": 60.0})


def test_it_rests_until_it_is_pushed_and_says_so(ros, simulator):
    states = ros.listen(JointState, "joint_states", STATE)
    wait_until(lambda: len(states) > 5, 30.0, "joint states")
    assert states[-1].name == JOINTS and states[-1].header.stamp.sec > 0
    assert np.array(states[-1].position) == pytest.approx(START, abs=1e-9)
    # The order of the names is the sender's business; an effort for another robot is not ours.
    ros.publish(JointState, "joint_torques", JointState(name=["x"], effort=[9.0]), COMMAND)
    push = JointState(name=JOINTS[::-1], effort=[0.0, 0.0, 0.0, 5.0])
    ros.publish(JointState, "joint_torques", push, COMMAND)
    wait_until(lambda: states[-1].velocity[0] > 0.01, 30.0, "motion of the first joint")
    assert np.array(states[-1].effort) == pytest.approx([5.0, 0.0, 0.0, 0.0])
    assert (np.abs(simulator.plant.q) < 10.0).all()


@pytest.mark.parametrize("engine", ["builtin", "mujoco"])
def test_a_spatial_arm_takes_a_payload_while_it_stands(ros, engine):
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    folder = Path(__file__).resolve().parents[3] / "launch" / "robots"
    simulator = ros.add(
        ArmSimulator,
        {"robot": "seven", "robots_folder": str(folder), "engine": engine, "claim_time": 0.0}
        | {
            "command_timeout": 60.0,
            "model_error": 0.0,
            "start": [0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0],
        },
    )
    states = ros.listen(JointState, "joint_states", STATE)
    arm = simulator.parameters.arm()
    torque = arm.bias(simulator.plant.q, np.zeros(7))
    push = JointState(name=list(arm.joints), effort=torque.tolist())
    ros.publish(JointState, "joint_torques", push, COMMAND)
    wait_until(lambda: states and states[-1].effort[1] == torque[1], 30.0, "the torque")
    time.sleep(0.2)
    assert simulator.plant.q[1] == pytest.approx(0.5, abs=0.05)  # it carries itself
    simulator.set_parameters([Parameter("payload_mass", value=5.0)])
    wait_until(lambda: simulator.plant.q[1] > 0.7, 30.0, "the arm to sink")


def test_a_locked_joint_stays_and_limits_hold(ros, simulator):
    lock = LockJoint.Request(joint="joint_2", locked=True)
    assert ros.call(LockJoint, "arm_simulator/lock_joint", lock).status.code == 0
    limits = SetJointLimits.Request(joints=["joint_1"], lower=[-1.0], upper=[0.35])
    assert ros.call(SetJointLimits, "arm_simulator/set_joint_limits", limits).status.code == 0
    push = JointState(name=JOINTS, effort=[5.0, 5.0, 0.0, 0.0])
    ros.publish(JointState, "joint_torques", push, COMMAND)
    wait_until(lambda: simulator.plant.stopped[0], 30.0, "the stop of the first joint")
    assert simulator.plant.q[0] == pytest.approx(0.35, abs=1e-9)
    assert simulator.plant.q[1] == START[1]
    lock.joint = "elbow"
    answer = ros.call(LockJoint, "arm_simulator/lock_joint", lock)
    assert answer.status.code == SolveStatus.INVALID_INPUT and "joint_1" in answer.status.message
