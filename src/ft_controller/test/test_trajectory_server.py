"""Trajectories over DDS: an action client against the controller and the simulated arm."""

import itertools
import threading
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointComponentTolerance, JointTolerance
from kin_interfaces.action import MoveArm
from kin_interfaces.msg import FtStatus, SolveStatus
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller.node import FtController
from ft_controller.simulator_node import ArmSimulator
from kin_ros.qos import COMMAND, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node

JOINTS = ["joint_1", "joint_2", "joint_3", "joint_4"]
START = [0.3, 0.4, 0.5, 0.6]
THERE = [0.6, 0.2, 0.7, 0.4]
PATIENT = {
    "control_rate": 50.0,
    "hold_time": 2.0,
    "state_timeout": 2.0,
    "stall_time": 0.2,
    "clean_ticks": 5,
    "status_rate": 50.0,
    "claim_time": 0.2,
    "pause_time": 1.0,
}
SIMULATOR = {"rate": 100.0, "command_timeout": 5.0, "claim_time": 0.2}
Result = FollowJointTrajectory.Result


def point(seconds, positions, **fields):
    made = JointTrajectoryPoint(positions=positions, **fields)
    made.time_from_start.sec = int(seconds // 1)
    made.time_from_start.nanosec = round(1e9 * (seconds % 1))
    return made


def trajectory(*points, joints=JOINTS, stamp=0.0):
    made = JointTrajectory(joint_names=joints, points=list(points))
    made.header.stamp.sec, made.header.stamp.nanosec = int(stamp), round(1e9 * (stamp % 1))
    return made


def goal(*points, joints=JOINTS, stamp=0.0, goal_time=0.0, **tolerances):
    made = FollowJointTrajectory.Goal(trajectory=trajectory(*points, joints=joints, stamp=stamp))
    for field, value in tolerances.items():
        setattr(made, field, [JointTolerance(name=name, position=value) for name in JOINTS])
    made.goal_time_tolerance.sec = int(goal_time // 1)
    made.goal_time_tolerance.nanosec = round(1e9 * (goal_time % 1))
    return made


class Arm:
    """The controller, the simulated arm, and a client of both."""

    def __init__(self, ros, **parameters):
        self.ros = ros
        shared = {k: v for k, v in parameters.items() if k == "use_sim_time"}
        self.controller = ros.add(FtController, {**PATIENT, **parameters})
        self.simulator = ros.add(ArmSimulator, {**SIMULATOR, **shared})
        self.status = ros.listen(FtStatus, "ft_controller/status")
        self.feedback = []

    def runs(self):
        wait_until(lambda: self.status and self.status[-1].state == FtStatus.RUN, 40.0, "RUN")
        return self

    @property
    def q(self):
        return np.array(self.simulator.plant.q)

    @property
    def now(self):
        return 1e-9 * self.controller.get_clock().now().nanoseconds

    def send(self, asked, action=FollowJointTrajectory, name="follow_joint_trajectory"):
        self.feedback.clear()
        return self.ros.start_goal(action, f"ft_controller/{name}", asked, self.feedback.append)

    def over(self, handle, timeout=40.0):
        """Status and result of a goal."""
        future = handle.get_result_async()
        wait_until(future.done, timeout, f"a result; arm: {self.status[-1:]}")
        return future.result().status, future.result().result

    def at(self, where, tolerance=0.02, timeout=30.0):
        wait_until(lambda: np.abs(self.q - where).max() < tolerance, timeout, f"at {where}")


def test_senseless_goals_are_refused_with_a_code_and_a_sentence(ros):
    arm = Arm(ros).runs()
    fine = point(1.0, START)
    aside = goal(fine)
    aside.component_path_tolerance = [JointComponentTolerance(joint_name="joint_1")]
    wrong = goal(fine)
    wrong.goal_tolerance = [JointTolerance(name="joint_1", position=-0.5)]
    stranger = goal(fine)
    stranger.path_tolerance = [JointTolerance(name="knee", position=0.5)]
    cases = [
        (goal(), Result.INVALID_GOAL, "points: there must be at least one"),
        (FollowJointTrajectory.Goal(), Result.INVALID_JOINTS, "joint_names"),
        (goal(fine, joints=[*JOINTS[:3], "knee"]), Result.INVALID_JOINTS, "knee"),
        (goal(fine, joints=["joint_1"] * 4), Result.INVALID_JOINTS, "none twice"),
        (goal(fine, point(0.5, START)), Result.INVALID_GOAL, "point 0 is at 1 s, point 1 at 0.5 s"),
        (goal(fine, fine), Result.INVALID_GOAL, "must rise"),
        (goal(point(-1.0, START)), Result.INVALID_GOAL, "point 0 is at -1 s"),
        (goal(point(1.0, [0.0, np.nan, 0.0, 0.0])), Result.INVALID_GOAL, "point 0, joint_2"),
        (goal(point(1.0, START, velocities=[np.inf] * 4)), Result.INVALID_GOAL, "velocities"),
        (goal(point(1.0, START[:3])), Result.INVALID_GOAL, "point 0 has 3 values"),
        (goal(point(1.0, START, velocities=[0.0])), Result.INVALID_GOAL, "velocities: point 0 has"),
        (goal(point(1.0, START, velocities=[0.1] * 4)), Result.INVALID_GOAL, "must be at rest"),
        (goal(point(1.0, START, effort=[0.0] * 4)), Result.INVALID_GOAL, "effort"),
        (
            goal(point(1.0, [0.3, 2.9, 0.5, 0.6])),
            Result.INVALID_GOAL,
            "joint_2 would be at 2.9",
        ),
        (goal(point(0.01, THERE)), Result.INVALID_GOAL, "would move at"),
        (goal(fine, stamp=arm.now - 60.0), Result.OLD_HEADER_TIMESTAMP, "ended 59"),
        (aside, Result.INVALID_GOAL, "component_path_tolerance"),
        (wrong, Result.INVALID_GOAL, "goal_tolerance.position: must be positive"),
        (stranger, Result.INVALID_JOINTS, "knee"),
    ]
    for asked, code, sentence in cases:
        status, result = arm.over(arm.send(asked))
        assert status == GoalStatus.STATUS_ABORTED
        assert (result.error_code, sentence in result.error_string) == (code, True), result
    arm.controller.set_parameters([Parameter("allow_partial_joints_goal", value=False)])
    partial = goal(point(1.0, [0.5]), joints=["joint_2"])
    status, result = arm.over(arm.send(partial))
    assert (
        result.error_code == Result.INVALID_JOINTS and "joint_1 is missing" in result.error_string
    )
    assert np.abs(arm.q - START).max() < 0.01  # nothing has moved


def test_a_goal_from_acceptance_to_its_end(ros):
    """Success with feedback; replacement, cancel and tolerance in flight; topics; stamps."""
    arm = Arm(ros).runs()
    handle = arm.send(goal(point(0.3, START), point(1.0, THERE), goal_tolerance=0.02))
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code == Result.SUCCESSFUL
    arm.at(THERE)
    assert len(arm.feedback) > 5
    last = arm.feedback[-1]
    assert last.joint_names == JOINTS and last.header.stamp.sec > 0
    assert np.array(last.error.positions) == pytest.approx(
        np.array(last.desired.positions) - np.array(last.actual.positions)
    )
    times = [f.desired.time_from_start.sec + 1e-9 * f.desired.time_from_start.nanosec
             for f in arm.feedback]  # fmt: skip
    assert times == sorted(times) and 0.5 < times[-1] < 2.5

    # Another goal replaces the one in flight; that one is told so.
    first = arm.send(goal(point(3.0, START)))
    wait_until(lambda: arm.feedback, 20.0, "feedback")
    second = arm.send(goal(point(0.6, START[:2]), joints=JOINTS[:2]))
    status, result = arm.over(first)
    assert status == GoalStatus.STATUS_ABORTED and result.error_code == Result.INVALID_GOAL
    assert result.error_string == "another goal has replaced it"
    assert arm.over(second)[0] == GoalStatus.STATUS_SUCCEEDED
    assert np.abs(arm.q[:2] - START[:2]).max() < 0.02
    assert np.abs(arm.q[2:] - THERE[2:]).max() < 0.05  # not named: as good as where they were

    # Cancelled in flight: the arm is at rest when the client hears of it, and stays.
    handle = arm.send(goal(point(4.0, THERE)))
    wait_until(lambda: len(arm.feedback) > 5, 20.0, "feedback")
    handle.cancel_goal_async()
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_CANCELED and "come to rest" in result.error_string
    here = arm.q
    time.sleep(0.3)
    assert np.abs(arm.q - here).max() < 0.02 and np.abs(arm.q - THERE).max() > 0.05

    # A path that the arm is not on.
    status, result = arm.over(
        arm.send(goal(point(0.0, THERE), point(2.0, START), path_tolerance=0.03))
    )
    assert status == GoalStatus.STATUS_ABORTED
    assert result.error_code == Result.PATH_TOLERANCE_VIOLATED
    assert "from its path at 0.0" in result.error_string

    # Later, and on topics: the standard one and the old one.
    begin = arm.now
    status, _ = arm.over(arm.send(goal(point(0.5, START), stamp=begin + 0.5)))
    assert status == GoalStatus.STATUS_SUCCEEDED and arm.now - begin > 0.99
    for topic, where in (("ft_controller/joint_trajectory", THERE), ("joint_trajectory", START)):
        ros.publish(JointTrajectory, topic, trajectory(point(0.6, where)), COMMAND)
        arm.at(where)
    handle = arm.send(goal(point(4.0, THERE)))
    wait_until(lambda: arm.feedback, 20.0, "feedback")
    ros.publish(JointTrajectory, "joint_trajectory", trajectory(), COMMAND)
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_ABORTED and "empty trajectory" in result.error_string


def test_a_stop_and_a_deactivation_abort_goals_with_the_reason(ros):
    arm = Arm(ros, state_timeout=0.3, hold_time=0.2, ramp_time=0.1).runs()
    handle = arm.send(goal(point(8.0, THERE)))
    wait_until(lambda: arm.feedback, 20.0, "feedback")
    ros.run_on(arm.simulator, arm.simulator.trigger_deactivate)
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_ABORTED and result.error_code == Result.INVALID_GOAL
    assert "the arm is stopped: joint states are missing" in result.error_string
    status, result = arm.over(arm.send(goal(point(1.0, THERE))))
    assert status == GoalStatus.STATUS_ABORTED and "reset it first" in result.error_string
    ros.run_on(arm.controller, arm.controller.trigger_deactivate)
    status, result = arm.over(arm.send(goal(point(1.0, THERE))))
    assert status == GoalStatus.STATUS_ABORTED and "does not run" in result.error_string


def test_a_controller_that_is_deactivated_ends_its_goal(ros):
    arm = Arm(ros).runs()
    handle = arm.send(goal(point(8.0, THERE)))
    wait_until(lambda: arm.feedback, 20.0, "feedback")
    ros.run_on(arm.controller, arm.controller.trigger_deactivate)
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_ABORTED and "being deactivated" in result.error_string


def test_move_arm_ends_when_the_arm_is_there(ros):
    arm = Arm(ros).runs()
    handle = arm.send(MoveArm.Goal(x=0.7, y=0.7, duration=1.5), MoveArm, "move_arm")
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.status.code == SolveStatus.SUCCESS, result.status.message
    tip = arm.controller.parameters.arm().end_effector(arm.q)
    assert tip[:2] == pytest.approx([0.7, 0.7], abs=0.03)
    shares = [f.fraction for f in arm.feedback]
    assert len(shares) > 5 and shares == sorted(shares) and shares[-1] > 0.8
    assert len(result.trajectory.points) > 5
    before = arm.q
    planned = MoveArm.Goal(x=0.9, y=0.3, plan_only=True)
    status, result = arm.over(arm.send(planned, MoveArm, "move_arm"))
    assert status == GoalStatus.STATUS_SUCCEEDED and len(result.trajectory.points) > 5
    assert np.abs(arm.q - before).max() < 0.02
    handle = arm.send(MoveArm.Goal(x=0.9, y=0.3, duration=4.0), MoveArm, "move_arm")
    wait_until(lambda: len(arm.feedback) > 3, 20.0, "feedback")
    handle.cancel_goal_async()
    status, result = arm.over(handle)
    assert status == GoalStatus.STATUS_CANCELED and result.status.code == SolveStatus.CANCELLED
    for asked, code, word in (
        (MoveArm.Goal(x=5.0), SolveStatus.UNREACHABLE, "cannot be reached"),
        (MoveArm.Goal(x=np.nan), SolveStatus.INVALID_INPUT, "goal"),
        (MoveArm.Goal(x=0.7, y=0.7, timeout=-1.0), SolveStatus.INVALID_INPUT, "timeout"),
    ):
        status, result = arm.over(arm.send(asked, MoveArm, "move_arm"))
        assert status == GoalStatus.STATUS_ABORTED
        assert result.status.code == code and word in result.status.message


def test_simulated_time_is_the_time_of_trajectories(ros):
    """While /clock stands in flight the arm stands too, and then it goes on."""
    publisher = ros.publisher(Clock, "/clock", STATE, matched=0)
    going, ended = threading.Event(), threading.Event()
    going.set()

    def tick():
        for k in itertools.count():
            while not going.is_set():
                time.sleep(0.01)
            if ended.is_set():
                return
            message = Clock()
            message.clock.sec, message.clock.nanosec = 1000 + k // 100, k % 100 * 10_000_000
            publisher.publish(message)
            time.sleep(0.01)

    ticking = threading.Thread(target=tick, daemon=True)
    ticking.start()
    try:
        arm = Arm(ros, use_sim_time=True).runs()
        states = ros.listen(JointState, "joint_states", STATE)
        wait_until(lambda: states and states[-1].header.stamp.sec >= 1000, 20.0, "simulated stamps")
        stamp = arm.now + 0.5
        handle = arm.send(goal(point(0.3, START), point(3.3, THERE), stamp=stamp))

        def underway():
            return np.abs(arm.q - THERE).max() < 0.27

        wait_until(underway, 60.0, "the middle of the motion")
        going.clear()
        time.sleep(0.3)
        here = arm.q
        assert 0.02 < np.abs(here - THERE).max() < 0.29
        time.sleep(1.0)
        assert np.abs(arm.q - here).max() < 0.05
        going.set()
        status, result = arm.over(handle)
        assert status == GoalStatus.STATUS_SUCCEEDED, result
        assert arm.now >= stamp + 3.3 - 0.1 and np.abs(arm.q - THERE).max() < 0.02
    finally:
        ended.set()
        going.set()
        ticking.join(5.0)
