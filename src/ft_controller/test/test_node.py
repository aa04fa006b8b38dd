import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from kin_interfaces.msg import FtProcessor, FtStatus, SolveStatus
from kin_interfaces.srv import InjectFault, LockJoint, MoveArm, SetController, SetJointLimits
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker

from ft_controller import Plant
from ft_controller.node import FtController
from ft_controller.simulator_node import ArmSimulator
from ft_controller.warm_up import warm_up_plant
from kin_ros.qos import COMMAND, SENSOR
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node

JOINTS = ["joint_1", "joint_2", "joint_3", "joint_4"]
# The machine is shared: patient where patience proves nothing, strict where it does.
PATIENT = {
    "control_rate": 50.0,
    "hold_time": 2.0,
    "state_timeout": 2.0,
    "stall_time": 0.2,
    "clean_ticks": 5,
    "status_rate": 50.0,
    "claim_time": 0.2,
}


class Arm:
    """The controller and the simulated arm, and what they say."""

    def __init__(self, ros, simulator=True, **parameters):
        self.ros = ros
        self.controller = ros.add(FtController, {**PATIENT, **parameters})
        if simulator:
            self.simulator = ros.add(
                ArmSimulator, {"rate": 100.0, "command_timeout": 5.0, "claim_time": 0.2}
            )
        self.status = ros.listen(FtStatus, "ft_controller/status")

    def wait(self, condition, timeout=40.0, what=""):
        """The first status from now on for which a condition holds."""
        begin = len(self.status)
        found = []

        def look():
            for message in self.status[begin:]:
                if condition(message):
                    found.append(message)
                    return True
            return False

        wait_until(look, timeout, f"{what or condition}; last: {self.status[-1:]}")
        return found[0]

    def running(self):
        return self.wait(lambda s: s.state == FtStatus.RUN, what="RUN")

    def whole(self):
        return self.wait(
            lambda s: (
                s.state == FtStatus.RUN
                and all(p.state == FtProcessor.WORKING for p in s.processors)
            ),
            what="all processors at work",
        )

    def call(self, service, name, **fields):
        request = service.Request()
        for key, value in fields.items():
            setattr(request, key, value)
        return self.ros.call(service, f"ft_controller/{name}", request)


def test_moves_to_a_goal_while_a_processor_lies(ros):
    arm = Arm(ros)
    arm.whole()
    answer = arm.call(
        InjectFault,
        "inject_fault",
        processors=[2],
        kind="wrong_element",
        element=20,
        magnitude=50.0,
    )
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert answer.faults == 1
    seen = arm.wait(lambda s: s.processors[2].state == FtProcessor.EXCLUDED)
    assert seen.processors[2].error == FtProcessor.DIFFERS
    assert "tau[0]" in seen.processors[2].detail or "N[0]" in seen.processors[2].detail
    assert seen.state == FtStatus.RUN
    answer = arm.call(MoveArm, "move_arm", x=0.6, y=0.8)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert answer.status.residual < 1e-6
    last = answer.trajectory.points[-1]
    goal = np.array(last.positions)
    tip = arm.controller.parameters.arm().end_effector(goal)
    assert tip[:2] == pytest.approx([0.6, 0.8], abs=1e-6)
    wait_until(
        lambda: np.abs(arm.simulator.plant.q - goal).max() < 0.02, 60.0, "the arm at its goal"
    )
    # On a busy machine a tick may pass without a quorum in time; that holds and goes on.
    arm.wait(lambda s: s.state == FtStatus.RUN)
    assert all(s.state in (FtStatus.IDLE, FtStatus.RUN, FtStatus.HOLD) for s in arm.status)
    arm.call(InjectFault, "inject_fault", kind="clear")
    arm.wait(lambda s: s.processors[2].state == FtProcessor.WORKING, what="readmission")


def test_the_desired_arm_is_drawn_beside_the_actual_one(ros):
    arm = Arm(ros)
    desired = ros.listen(Marker, "ft_controller/desired")
    actual = ros.listen(Marker, "arm_simulator/marker")
    arm.running()
    assert arm.call(MoveArm, "move_arm", x=0.7, y=0.7).status.code == SolveStatus.SUCCESS

    def at_the_goal(heard):
        tip = heard[-1].points[-1] if heard else None
        return tip is not None and abs(tip.x - 0.7) + abs(tip.y - 0.7) < 0.02

    wait_until(lambda: at_the_goal(desired) and at_the_goal(actual), 40.0, "both at the goal")
    assert desired[-1].header.frame_id == actual[-1].header.frame_id == "arm_base"
    assert (desired[-1].ns, actual[-1].ns) == ("desired", "arm")
    assert len(desired[-1].points) == len(actual[-1].points) == 5


def test_a_forward_command_controller_is_driven(ros):
    """A stand-in for ros2_control: efforts as an array; states of all its joints, in its order."""
    folder = Path(__file__).resolve().parents[3] / "launch" / "robots"
    robot = {"robot": "six", "robots_folder": str(folder), "command_format": "array"}
    arm = Arm(ros, simulator=False, **robot)
    model = arm.controller.parameters.arm()
    plant = Plant(model, q=np.full(6, 0.2), lower=model.lower, upper=model.upper)
    warm_up_plant(Plant(model))  # now, while nobody waits for it
    names = ["gripper", *reversed(model.joints)]
    states = ros.publisher(JointState, "joint_states", SENSOR)
    commands = ros.listen(Float64MultiArray, "joint_torques", COMMAND)

    def cycle():
        if commands:
            assert len(commands[-1].data) == 6
            plant.step(commands[-1].data, 0.01)
        q, v = plant.measure()
        message = JointState(name=names, position=[0.04, *q[::-1]], velocity=[np.nan, *v[::-1]])
        message.header.stamp = arm.controller.get_clock().now().to_msg()
        states.publish(message)
        time.sleep(0.01)

    def until(condition, what):
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, what
            cycle()

    until(lambda: arm.status and arm.status[-1].state == FtStatus.RUN, "control")
    point = JointTrajectoryPoint(positions=[0.4, -0.3, 0.5])
    point.time_from_start.sec = 1
    motion = JointTrajectory(joint_names=["joint_1", "joint_2", "joint_6"], points=[point])
    ros.publish(JointTrajectory, "joint_trajectory", motion, COMMAND)
    goal = np.array([0.4, -0.3, 0.2, 0.2, 0.2, 0.5])
    until(lambda: np.abs(plant.q - goal).max() < 0.01, "the goal")
    assert arm.status[-1].state == FtStatus.RUN


def test_a_spatial_arm_follows_a_trajectory_while_a_processor_dies_and_is_kept_up_when_stopped(ros):
    folder = Path(__file__).resolve().parents[3] / "launch" / "robots"
    robot = {"robot": "six", "robots_folder": str(folder)}
    arm = Arm(ros, simulator=False, recover_from_starvation=False, **robot)
    simulator = ros.add(
        ArmSimulator, {"rate": 100.0, "command_timeout": 5.0, "claim_time": 0.2, **robot}
    )
    running = arm.whole()
    assert list(running.joints) == [*JOINTS, "joint_5", "joint_6"] and running.upper[1] == 2.2
    answer = arm.call(MoveArm, "move_arm", x=0.6, y=0.8)
    assert answer.status.code == SolveStatus.INVALID_INPUT and "planar" in answer.status.message
    point = JointTrajectoryPoint(positions=[0.4, -0.5, 0.5, 0.3, 0.3, 0.3])
    point.time_from_start.sec = 2
    motion = JointTrajectory(joint_names=list(running.joints), points=[point])
    ros.publish(JointTrajectory, "joint_trajectory", motion, COMMAND)
    os.kill(running.processors[2].pid, signal.SIGKILL)
    goal = np.array(point.positions)
    wait_until(lambda: np.abs(simulator.plant.q - goal).max() < 0.1, 60.0, "the goal")
    arm.whole()
    before = arm.controller.group.arm
    arm.controller.set_parameters([Parameter("payload_mass", value=0.5)])
    wait_until(lambda: arm.controller.group.arm is not before, 60.0, "the payload")
    # What stops it does not drop it: the quorum keeps it where it is.
    loop = arm.controller.control
    loop.do(lambda: loop.group.safety.stop(loop.now()))
    stopped = arm.wait(lambda s: s.state == FtStatus.STOPPED)
    assert "kept up" in stopped.reason and stopped.kept_up and not stopped.brake
    where, count = simulator.plant.q.copy(), len(arm.status)
    wait_until(lambda: len(arm.status) > count + 30, 60.0, "a while")
    assert np.abs(simulator.plant.q - where).max() < 0.3  # the model is 5 % and a payload off


@pytest.mark.slow
def test_sigkill_and_sigstop_of_every_processor_in_turn_while_tracking(ros):
    arm = Arm(ros)
    arm.whole()
    torques = ros.listen(JointState, "joint_torques", COMMAND)
    for k in range(4):
        # Keep it moving: there is something to get wrong.
        x = 0.6 if k % 2 else 0.9
        assert arm.call(MoveArm, "move_arm", x=x, y=0.5).status.code == SolveStatus.SUCCESS
        old = arm.status[-1].processors[k].pid
        os.kill(old, signal.SIGKILL)
        arm.wait(
            lambda s, k=k, old=old: (
                s.processors[k].error == FtProcessor.CRASHED or s.processors[k].pid not in (0, old)
            ),
            what=f"the death of {k}",
        )
        seen = arm.whole()
        assert seen.processors[k].pid not in (0, old)
        assert seen.processors[k].restarts >= 1
        pid = seen.processors[k].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            seen = arm.wait(lambda s, k=k: s.processors[k].state == FtProcessor.EXCLUDED)
            assert seen.processors[k].error == FtProcessor.MISSING
        finally:
            os.kill(pid, signal.SIGCONT)
        arm.whole()
    # A shared machine may make everybody late for a tick; it must never come to a stop.
    assert {s.state for s in arm.status} <= {FtStatus.IDLE, FtStatus.RUN, FtStatus.HOLD}
    driven = [s for s in arm.status if s.state != FtStatus.IDLE]
    assert sum(s.state == FtStatus.RUN for s in driven) > 0.9 * len(driven)
    assert all(np.isfinite(t.effort).all() for t in torques)


def test_a_goal_that_comes_before_the_first_joint_state_waits_for_it(ros):
    arm = Arm(ros, simulator=False)
    arm.wait(lambda s: s.state == FtStatus.IDLE)
    request = MoveArm.Request(x=0.6, y=0.8, plan_only=True)
    asked = ros.call_async(MoveArm, "ft_controller/move_arm", request)
    states = ros.publisher(JointState, "joint_states", SENSOR)
    time.sleep(0.2)
    assert not asked.done()
    state = JointState(name=JOINTS, position=[0.1, 0.2, 0.3, 0.4], velocity=[0.0] * 4)

    def answered():
        states.publish(state)
        return asked.done()

    wait_until(answered, 20.0, "an answer")
    assert asked.result().status.code == SolveStatus.SUCCESS
    start = asked.result().trajectory.points[0].positions
    assert list(start) == pytest.approx(state.position)


def test_a_goal_without_any_joint_state_is_refused(ros):
    arm = Arm(ros, simulator=False)
    arm.wait(lambda s: s.state == FtStatus.IDLE)
    answer = arm.call(MoveArm, "move_arm", x=0.6, y=0.8)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert "does the arm publish them?" in answer.status.message


def test_loss_of_joint_states_leads_to_a_safe_stop_and_a_reset_back(ros):
    arm = Arm(ros, simulator=False, state_timeout=0.3, hold_time=0.2, ramp_time=0.2)
    assert arm.wait(lambda s: True).state == FtStatus.IDLE
    states = ros.publisher(JointState, "joint_states", SENSOR)
    torques = ros.listen(JointState, "joint_torques", COMMAND)
    good = JointState(name=JOINTS, velocity=[0.5, 0.0, 0.0, 0.0])
    dither = [0.0]

    def publish():
        dither[0] = 1e-6 - dither[0]  # encoders that live
        good.position = [0.1 + dither[0], 0.2 + dither[0], 0.3 + dither[0], 0.4 + dither[0]]
        states.publish(good)

    def feed(until, timeout=30.0):
        end = time.monotonic() + timeout
        begin = len(arm.status)
        while not any(until(s) for s in arm.status[begin:]):
            assert time.monotonic() < end
            publish()
            time.sleep(0.01)

    feed(lambda s: s.state == FtStatus.RUN and np.abs(torques[-1].effort).max() > 0.0)
    # Nonsense is no measurement.
    bad = JointState(name=JOINTS, position=[np.nan, 0.2, 0.3, 0.4], velocity=[0.0] * 4)
    begin = len(arm.status)

    def starve():
        states.publish(bad)
        return any(s.state == FtStatus.STOPPED for s in arm.status[begin:])

    wait_until(starve, 30.0, "a safe stop")
    stopped = next(s for s in arm.status[begin:] if s.state == FtStatus.STOPPED)
    assert "joint states" in stopped.reason
    states_seen = [s.state for s in arm.status[begin:]]
    order = [s for i, s in enumerate(states_seen) if i == 0 or s != states_seen[i - 1]]
    # Late good ones may have come in between; but what has begun to ramp down never runs again.
    assert order[order.index(FtStatus.RAMP) :] == [FtStatus.RAMP, FtStatus.STOPPED]
    assert torques[-1].effort.tolist() == [0.0] * 4
    # Back only by order, and only with joint states.
    answer = arm.call(SetController, "set_controller", reset=True)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    for _ in range(30):
        publish()
        time.sleep(0.01)
    assert arm.status[-1].state == FtStatus.STOPPED
    request = SetController.Request(reset=True)
    future = ros.call_async(SetController, "ft_controller/set_controller", request)
    feed(lambda s: s.state == FtStatus.RUN)
    assert future.result().status.code == SolveStatus.SUCCESS


def test_controllers_locked_joints_limits_and_trajectories(ros):
    arm = Arm(ros)
    arm.whole()
    for name in ("serial", "parallel", "high_tolerance", "lower_tolerance", "echo"):
        answer = arm.call(SetController, "set_controller", controller=name)
        assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
        arm.wait(lambda s, name=name: s.controller == name and s.state == FtStatus.RUN)
    answer = arm.call(SetController, "set_controller", controller="lower")
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert "lower_tolerance" in answer.status.message

    # Joint 3 jams: the arm is told, the controller is told, its processor gets other work.
    request = LockJoint.Request(joint="joint_3", locked=True)
    assert ros.call(LockJoint, "arm_simulator/lock_joint", request).status.code == 0
    answer = ros.call(LockJoint, "ft_controller/lock_joint", request)
    assert answer.status.code == SolveStatus.SUCCESS and len(answer.owners) == 4
    jammed = arm.simulator.plant.q[2]
    assert arm.call(MoveArm, "move_arm", x=0.8, y=0.6).status.code == SolveStatus.SUCCESS
    goal = np.array([0.8, 0.6])
    truth = arm.controller.parameters.arm()
    wait_until(
        lambda: np.abs(truth.end_effector(arm.simulator.plant.q)[:2] - goal).max() < 0.03,
        60.0,
        "the goal with a locked joint",
    )
    assert arm.simulator.plant.q[2] == jammed
    request.locked = False
    assert ros.call(LockJoint, "arm_simulator/lock_joint", request).status.code == 0
    assert ros.call(LockJoint, "ft_controller/lock_joint", request).status.code == 0
    answer = arm.call(LockJoint, "lock_joint", joint="joint_9", locked=True)
    assert answer.status.code == SolveStatus.INVALID_INPUT and "joint_1" in answer.status.message

    # Limits change while it runs; a motion beyond them is refused.
    answer = arm.call(
        SetJointLimits, "set_joint_limits", joints=["joint_1"], lower=[-3.0], upper=[2.0]
    )
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert arm.wait(lambda s: s.upper[0] == 2.0).lower[0] == -3.0
    for lower, upper in (([1.0], [-1.0]), ([np.nan], [1.0]), ([0.0, 1.0], [1.0]), ([2.9], [3.0])):
        answer = arm.call(
            SetJointLimits, "set_joint_limits", joints=["joint_1"], lower=lower, upper=upper
        )
        assert answer.status.code == SolveStatus.INVALID_INPUT
    before = arm.controller.control.follower.trajectory
    publisher = ros.publisher(JointTrajectory, "joint_trajectory", COMMAND)
    point = JointTrajectoryPoint(positions=[2.5, 0.0, 0.0, 0.0])
    point.time_from_start.sec = 2
    publisher.publish(JointTrajectory(joint_names=JOINTS, points=[point]))
    time.sleep(0.5)
    assert arm.controller.control.follower.trajectory is before
    point = JointTrajectoryPoint(positions=[0.5, 1.0])
    point.time_from_start.sec = 2
    publisher.publish(JointTrajectory(joint_names=["joint_2", "joint_1"], points=[point]))
    wait_until(
        lambda: np.abs(arm.simulator.plant.q[:2] - [1.0, 0.5]).max() < 0.02, 60.0, "the point"
    )


def test_bad_requests_are_refused_with_the_field(ros):
    arm = Arm(ros)
    arm.running()
    cases = [
        (InjectFault, "inject_fault", {"processors": [9], "kind": "nan"}, "processors"),
        (InjectFault, "inject_fault", {"processors": [0], "kind": "explode"}, "kind"),
        (InjectFault, "inject_fault", {"processors": [], "kind": "nan"}, "processors"),
        (InjectFault, "inject_fault", {"processors": [0], "kind": "nan", "start": -1.0}, "start"),
        (
            InjectFault,
            "inject_fault",
            {"processors": [0], "kind": "nan", "duration": np.nan},
            "duration",
        ),
        (InjectFault, "inject_fault", {"processors": [0], "kind": "nan", "element": 99}, "element"),
        (InjectFault, "inject_fault", {"schedule": "- {processor: 1}"}, "start"),
        (InjectFault, "inject_fault", {"schedule": "{"}, ""),
        (
            InjectFault,
            "inject_fault",
            {"schedule": "- {processor: 1, start: 0}", "kind": "nan"},
            "schedule",
        ),
        (MoveArm, "move_arm", {"x": np.nan}, "goal"),
        (MoveArm, "move_arm", {"x": 0.5, "y": 0.5, "duration": 1e-3}, "duration"),
    ]
    for service, name, fields, word in cases:
        answer = arm.call(service, name, **fields)
        assert answer.status.code == SolveStatus.INVALID_INPUT, (fields, answer)
        assert word in answer.status.message, answer.status.message
    answer = arm.call(MoveArm, "move_arm", x=5.0, y=0.0)
    assert answer.status.code == SolveStatus.UNREACHABLE
    assert answer.status.residual == pytest.approx(5.0 - 1.4, abs=0.05)
    answer = arm.call(
        InjectFault, "inject_fault", schedule="- {processor: 1, start: 0.1, end: 0.2}\n"
    )
    assert answer.status.code == SolveStatus.SUCCESS
    arm.wait(lambda s: s.processors[1].error == FtProcessor.DIFFERS)
    assert arm.status[-1].state == FtStatus.RUN


@pytest.mark.parametrize("ending", ["terminate", "interrupt", "kill"])
def test_no_orphans_and_no_memory_left_however_the_node_ends(ros, processes, ending):
    node = ros.process("ft_controller", "ft_controller_node", {"control_rate": 50.0})
    ros.wait_active("ft_controller", 120.0)
    children = processes.family(node.pid)
    names = [p.name() for p in children]
    assert sum(name.startswith("ft_processor") for name in names) == 4, names
    {
        "terminate": node.terminate,
        "interrupt": lambda: node.send_signal(signal.SIGINT),
        "kill": node.kill,
    }[ending]()
    node.wait(20.0)
    assert processes.gone(children), [p for p in children if p.is_running()]
    if ending != "kill":
        assert node.returncode in (0, -signal.SIGINT, -signal.SIGTERM)


def test_a_killed_process_supervisor_is_replaced_and_one_reset_brings_the_arm_back(ros):
    arm = Arm(ros, hold_time=0.1, ramp_time=0.1)
    arm.whole()
    old = [p.pid for p in arm.status[-1].processors]
    os.kill(arm.controller.group.processes.supervisor_pid, signal.SIGKILL)
    stopped = arm.wait(lambda s: s.state == FtStatus.STOPPED)
    assert "control begins when 3 of them agree" in stopped.reason, stopped.reason
    answer = arm.call(SetController, "set_controller", reset=True)
    assert answer.status.code == SolveStatus.SUCCESS
    # Either they are back already, or the answer says what is waited for; nobody asks twice.
    assert answer.working_set or "control begins when" in answer.status.message
    arm.whole()
    assert not set(old) & {p.pid for p in arm.status[-1].processors}
