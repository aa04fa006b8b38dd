"""The nodes under what stops, kills and doubles them: real processes, real signals, real DDS.

The bounds are those of the arm's speed, never of the machine's.
"""

import os
import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from kin_interfaces.msg import FtStatus, SolveStatus
from kin_interfaces.srv import MoveArm, SetController
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller import ArmError
from ft_controller.node import FtController
from ft_controller.simulator_node import ArmSimulator
from kin_ros.qos import COMMAND, SENSOR, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node

JOINTS = ["joint_1", "joint_2", "joint_3", "joint_4"]
CONTROLLER = {
    "control_rate": 50.0,
    "vote_patience": 0.1,
    "state_timeout": 0.3,
    "hold_time": 0.5,
    "stall_time": 0.2,
    "clean_ticks": 5,
    "status_rate": 50.0,
    "claim_time": 0.4,
}
SIMULATOR = {"rate": 100.0, "claim_time": 0.4}
#: The safety supervisor's limit, and what its ramp adds to it [rad/s].
FASTEST = 20.0


class Scene:
    """A controller and an arm as processes of their own, and what they say."""

    def __init__(self, ros, **parameters):
        self.ros = ros
        self.speeds = []
        self.status = ros.listen(FtStatus, "ft_controller/status")
        self.states = ros.listen(JointState, "joint_states", STATE)
        self.arm = ros.process("ft_controller", "arm_simulator_node", SIMULATOR)
        self.node = ros.process("ft_controller", "ft_controller_node", {**CONTROLLER, **parameters})
        ros.wait_active("ft_controller", 120.0)
        self.until(FtStatus.RUN)

    def until(self, *states, timeout=60.0):
        """Wait for a state from now on, and return the status."""
        begin = len(self.status)
        found = []

        def look():
            found[:] = [s for s in self.status[begin:] if s.state in states]
            return found

        wait_until(look, timeout, f"one of {states}, last: {self.status[-1:]}")
        return found[0]

    def move(self, x, y):
        request = MoveArm.Request(x=x, y=y, duration=3.0)
        return self.ros.call(MoveArm, "ft_controller/move_arm", request)

    def fastest(self, begin=0):
        speeds = (float(np.abs(s.velocity).max()) for s in self.states[begin:])
        return max(speeds, default=0.0)

    def at_rest(self):
        """Wait until the arm is at rest."""
        wait_until(
            lambda: self.states and np.abs(self.states[-1].velocity).max() < 0.2, 60.0, "rest"
        )


def test_a_stopped_node_and_stopped_processors_end_in_a_stop_at_bounded_speed(ros):
    """SIGSTOP of the node, then a storm of them over all processors, while the arm moves."""
    scene = Scene(ros)
    assert scene.move(-0.6, 0.8).status.code == SolveStatus.SUCCESS
    time.sleep(0.8)
    os.kill(scene.node.pid, signal.SIGSTOP)
    time.sleep(2.0)
    os.kill(scene.node.pid, signal.SIGCONT)
    stopped = scene.until(FtStatus.STOPPED)
    assert "stood still" in stopped.reason or "joint states" in stopped.reason
    scene.at_rest()
    assert scene.fastest() < FASTEST

    # What is asked of a stopped arm is refused, not forgotten.
    answer = scene.move(0.6, 0.8)
    assert answer.status.code == SolveStatus.INVALID_INPUT and "reset" in answer.status.message

    reset = SetController.Request(reset=True)
    assert ros.call(SetController, "ft_controller/set_controller", reset).status.code == 0
    scene.until(FtStatus.RUN)
    assert scene.move(0.6, 0.8).status.code == SolveStatus.SUCCESS
    begin = len(scene.status)
    for _ in range(40):
        pids = [p.pid for p in scene.status[-1].processors if p.pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.45)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.03)
        if any(s.state == FtStatus.STOPPED for s in scene.status[begin:]):
            break
    assert any(s.state == FtStatus.STOPPED for s in scene.status[begin:]), scene.status[-1]
    scene.at_rest()
    assert scene.fastest() < FASTEST


def test_a_killed_node_leaves_an_arm_that_is_braked(ros):
    scene = Scene(ros)
    assert scene.move(-0.6, 0.8).status.code == SolveStatus.SUCCESS
    wait_until(lambda: scene.fastest() > 0.3, 30.0, "motion")
    begin = len(scene.states)
    scene.node.kill()
    scene.at_rest()
    assert scene.fastest(begin) < FASTEST
    where = np.array(scene.states[-1].position)
    count = len(scene.states)
    wait_until(lambda: len(scene.states) > count + 100, 60.0, "more joint states")
    assert np.abs(np.array(scene.states[-1].position) - where).max() < 0.5


def test_starvation_is_recovered_from_by_itself_in_the_demo(ros):
    """The newcomer's picture: joint states stop, the arm stops; they flow again, and it moves."""
    scene = Scene(ros, recover_from_starvation=True)
    for signals in ((scene.arm.pid,), (scene.node.pid,)):
        for pid in signals:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2.5)
        for pid in signals:
            os.kill(pid, signal.SIGCONT)
        scene.until(FtStatus.STOPPED, FtStatus.IDLE)
        scene.until(FtStatus.RUN)
    answer = scene.move(0.6, 0.8)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    goal = np.array(answer.trajectory.points[-1].positions)
    wait_until(
        lambda: np.abs(np.array(scene.states[-1].position) - goal).max() < 0.02, 60.0, "the goal"
    )


# ---------------------------------------------------------------------- one node in this process


class Fed:
    """A controller whose joint states come from the test."""

    def __init__(self, ros, **parameters):
        self.ros = ros
        self.node = ros.add(FtController, {**CONTROLLER, **parameters})
        self.status = ros.listen(FtStatus, "ft_controller/status")
        self.publisher = ros.publisher(JointState, "joint_states", SENSOR)
        self.message = JointState(name=JOINTS, position=[0.1, 0.2, 0.3, 0.4], velocity=[0.0] * 4)
        self.count = 0

    def publish(self, age=0.0, dither=1e-6):
        self.count += 1
        if dither:
            self.message.position = [0.1 + dither * (self.count % 2), 0.2, 0.3, 0.4]
        if age is None:
            self.message.header.stamp.sec = self.message.header.stamp.nanosec = 0
        else:
            stamp = self.node.get_clock().now().nanoseconds - int(1e9 * age)
            self.message.header.stamp.sec = stamp // 10**9
            self.message.header.stamp.nanosec = stamp % 10**9
        self.publisher.publish(self.message)

    def until(self, state, timeout=40.0, **options):
        begin = len(self.status)

        def look():
            self.publish(**options)
            time.sleep(0.01)
            return [s for s in self.status[begin:] if s.state == state]

        return wait_until(look, timeout, f"state {state}; last {self.status[-1:]}")[0]


def test_states_are_as_old_as_their_stamps_say(ros):
    fed = Fed(ros, require_stamps=True)
    # Stamps of 1970, of an hour ago, of the future, and none: no state to drive by.
    now = fed.node.get_clock().now().nanoseconds * 1e-9
    for age in (now - 1.0, 3600.0, 0.5, -1.0, None):
        for _ in range(20):
            fed.publish(age)
            time.sleep(0.005)
        assert not fed.node.control.fresh, age
        assert fed.node.control.group.safety.state == 0
    fed.until(FtStatus.RUN)
    stopped = fed.until(FtStatus.STOPPED, age=10.0)
    assert "joint states are missing or too old" in stopped.reason
    fed.publish(age=-0.01)  # within the tolerance
    assert wait_until(lambda: fed.node.control.fresh, 10.0)


def test_states_without_stamps_are_as_old_as_their_arrival(ros):
    fed = Fed(ros)
    fed.until(FtStatus.RUN, age=None)


def test_a_driver_that_repeats_itself_under_new_stamps_is_found_out(ros):
    fed = Fed(ros)
    fed.until(FtStatus.RUN)
    point = JointTrajectoryPoint(positions=[0.4, 0.2, 0.3, 0.4])
    point.time_from_start.sec = 1
    ros.publish(
        JointTrajectory, "joint_trajectory", JointTrajectory(joint_names=JOINTS, points=[point]),
        COMMAND,
    )  # fmt: skip
    torques = ros.listen(JointState, "joint_torques", COMMAND)
    stopped = fed.until(FtStatus.STOPPED, dither=0.0)
    assert "joint 0 is frozen" in stopped.reason
    assert max(np.abs(t.effort).max() for t in torques) < 150.0


def test_states_of_another_robot_are_nobodys_business(ros):
    fed = Fed(ros)
    fed.until(FtStatus.RUN)
    other = JointState(name=["wheel"], position=[1.0], velocity=[0.0])
    for _ in range(20):
        fed.publish()
        fed.publisher.publish(other)
        time.sleep(0.01)
    assert "wheel" not in fed.node.diagnostics.status().message
    assert "missing" not in fed.node.diagnostics.status().message


def test_a_deactivated_controller_ramps_down(ros):
    """The last torques are sent although the node is no longer active when they are."""
    fed = Fed(ros)
    fed.message.velocity = [0.0, 0.3, 0.0, 0.0]
    torques = ros.listen(JointState, "joint_torques", COMMAND)
    fed.until(FtStatus.RUN)
    for k in range(20):
        fed.message.position[1] = 0.2 + 1e-3 * k
        fed.publish(dither=0.0)
        time.sleep(0.01)
    wait_until(lambda: torques, 20.0)
    ros.run_on(fed.node, fed.node.trigger_deactivate)
    wait_until(lambda: np.abs(torques[-1].effort).max() == 0.0, 20.0, "the last torque")


# ---------------------------------------------------------------------- two of them


def test_a_second_controller_refuses_to_drive_and_says_so(ros):
    first = ros.add(FtController, CONTROLLER)
    ros.add(ArmSimulator, SIMULATOR)
    status = ros.listen(FtStatus, "ft_controller/status")
    wait_until(lambda: status and status[-1].state == FtStatus.RUN, 40.0, "the first one")
    other = ros.add(FtController, CONTROLLER)
    told = wait_until(lambda: other.claim.sentence, 20.0, "a word of the second one")
    assert "/ft_controller publishes on /joint_torques too: not driving" in told
    wait_until(
        lambda: any(s.state == FtStatus.IDLE and s.reason == told for s in status),
        20.0,
        "its status",
    )
    wait_until(lambda: other.diagnostics.status().message == told, 20.0, "its diagnostics")
    time.sleep(1.5)
    # The first one goes on, alone: nobody else has a publisher there.
    assert first.claim.publisher is not None and other.claim.publisher is None
    assert len(first.get_publishers_info_by_topic("/joint_torques")) == 1
    assert first.control.group.safety.state != 4
    # What is asked of the second one is refused.
    with pytest.raises(ArmError, match="not driving"):
        other.driven()
    # When the first one has gone, it is the second one's turn.
    ros.run_on(first, first.trigger_deactivate)
    wait_until(lambda: other.claim.publisher is not None, 20.0, "the second one")


def test_of_two_that_start_at_once_one_drives(ros):
    pair = [ros.add(FtController, CONTROLLER, wait_active=False) for _ in range(2)]
    wait_until(lambda: all(node.active for node in pair), 120.0, "both active")

    def driving():
        return [node for node in pair if node.claim.publisher is not None]

    wait_until(driving, 40.0, "one that drives")
    time.sleep(1.5)
    assert len(driving()) == 1
    (waiting,) = [node for node in pair if node not in driving()]
    assert "not driving" in waiting.claim.sentence


def test_a_stranger_on_the_topic_stops_the_arm(ros):
    node = ros.add(FtController, CONTROLLER)
    ros.add(ArmSimulator, SIMULATOR)
    status = ros.listen(FtStatus, "ft_controller/status")
    wait_until(lambda: status and status[-1].state == FtStatus.RUN, 40.0, "RUN")
    stranger = ros.node.create_publisher(JointState, "joint_torques", COMMAND)
    wait_until(lambda: status[-1].state == FtStatus.STOPPED, 20.0, "the stop")
    assert "/test_client publishes on /joint_torques too: stopped" in status[-1].reason
    ros.node.destroy_publisher(stranger)
    request = SetController.Request(reset=True)
    assert ros.call(SetController, "ft_controller/set_controller", request).status.code == 0
    wait_until(lambda: status[-1].state == FtStatus.RUN, 20.0, "RUN again")
    assert node.claim.sentence == ""


def test_a_second_simulated_arm_stays_still(ros):
    """Of two that start at once either may be the one that moves."""
    arms = [ros.add(ArmSimulator, SIMULATOR) for _ in range(2)]

    def moving():
        return [arm for arm in arms if arm.claim.publisher is not None]

    def waiting():
        return [arm for arm in arms if "not driving" in arm.claim.sentence]

    wait_until(lambda: len(moving()) == 1 and len(waiting()) == 1, 20.0, "one arm, one that waits")
    assert moving() != waiting()
    assert "joint_states" in waiting()[0].diagnostics.status().message


def test_entry_parameters_change_while_it_runs(ros):
    node = ros.add(FtController, CONTROLLER)
    node.set_parameters([Parameter("plan_speed", value=0.5), Parameter("pause_time", value=0.2)])
    wait_until(lambda: node.control.follower.entry.speed == 0.5, 20.0, "the new speed")
    wait_until(lambda: node.control.follower.entry.pause == 0.2, 20.0, "the new pause")
