"""A robot arm keeps moving while one of the processors that control it fails.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/02_a_controller_that_outlives_its_processors.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

import time

import rclpy
from kin_interfaces.msg import FtStatus
from kin_interfaces.srv import InjectFault, LockJoint, MoveArm, SetController, SetJointLimits
from visitor import visit


def watch(stack, heard, condition, patience=30.0):
    """Spin until a status fulfils a condition, and return it."""
    seen = 0
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        rclpy.spin_once(stack.node, timeout_sec=0.1)
        while seen < len(heard):
            seen += 1
            if condition(heard[seen - 1]):
                return heard[seen - 1]
    last = f"; the last state was {heard[-1].state} ({heard[-1].reason})" if heard else ""
    raise SystemExit(f"that did not happen within {patience:g} s{last}")


def group(status):
    """The processors whose votes count."""
    return [p.id for p in status.processors if status.working_set >> p.id & 1]


def drive(stack):
    """Move, break a processor on the way, and see it voted out and taken back."""
    topic = f"{stack.namespace}/ft_controller/status"
    heard = []
    stack.node.create_subscription(FtStatus, topic, heard.append, 10)
    status = watch(stack, heard, lambda s: s.state == FtStatus.RUN)
    print(f"The controller {status.controller} runs on the processors {group(status)}.")

    answer = stack.ask(MoveArm, "ft_controller/move_arm", MoveArm.Request(x=0.6, y=0.8))
    end = answer.trajectory.points[-1].time_from_start
    print(f"The arm goes to (0.6, 0.8) m in {end.sec + 1e-9 * end.nanosec:.1f} s.")

    heard.clear()
    fault = InjectFault.Request(
        processors=[1], kind="wrong_element", element=0, magnitude=5.0, duration=1.0
    )
    stack.ask(InjectFault, "ft_controller/inject_fault", fault)
    print("Processor 1 computes nonsense from now on, for one second ...")
    status = watch(stack, heard, lambda s: not s.working_set >> 1 & 1)
    print(f"  voted out; {group(status)} go on, state RUN: {status.state == FtStatus.RUN}")
    status = watch(stack, heard, lambda s: s.working_set >> 1 & 1)
    print(f"  and taken back after clean work: {group(status)}")
    print(f"Largest error of a joint now: {max(abs(e) for e in status.error):.2e} rad.")

    request = SetController.Request(controller=status.controller)
    answer = stack.ask(SetController, "ft_controller/set_controller", request)
    print(f"Still in charge: {answer.previous}.")
    break_a_joint(stack)


def break_a_joint(stack):
    """Lock the last joint, tell the controller, keep another one in tighter limits; undo it all."""
    # The controller first, and last when it is free again: a joint that jams unannounced while the
    # arm moves is a reason to stop.
    places = ("ft_controller", "arm_simulator")
    owners: list[int] = []
    for locked in (True, False):
        for place in places if locked else reversed(places):
            request = LockJoint.Request(joint="joint_4", locked=locked)
            answer = stack.ask(LockJoint, f"{place}/lock_joint", request)
            owners = list(answer.owners) or owners
        word = "stuck: the controller goes on without it" if locked else "free again"
        print(f"Joint 4 is {word}; the processors {owners} own the joints.")
    for limit in (2.7, 2.8):
        for place in places:
            request = SetJointLimits.Request(joints=["joint_2"], lower=[-limit], upper=[limit])
            stack.ask(SetJointLimits, f"{place}/set_joint_limits", request)
        print(f"Joint 2 now keeps within {limit} rad of zero.")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        drive(stack)
