"""A trajectory to the fault-tolerant controller, by standard messages alone.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/10_a_trajectory_to_the_controller.py

The first goal is followed to its end, the second one is cancelled on its way: the arm brakes on its
path and stays there. Any controller with the action FollowJointTrajectory will do: --controller
names it.
"""

import time

import rclpy
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint
from visitor import visit

ARGUMENTS = {
    "--controller": {"default": "ft_controller/follow_joint_trajectory", "help": "the action"},
    "--step": {"type": float, "default": 0.2, "help": "how far each joint goes [rad]"},
    "--seconds": {"type": float, "default": 2.0, "help": "how long the motion takes"},
}


def waited(visitor, ready, what):
    """Spin until something is there."""
    end = time.monotonic() + 60.0
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"no {what} within a minute; is the stack running?")
        rclpy.spin_once(visitor.node, timeout_sec=0.1)


def joint_state(visitor):
    """The next joint states of the arm."""
    heard = []
    topic = f"{visitor.namespace}/joint_states"
    keep = visitor.node.create_subscription(
        JointState, topic, heard.append, qos_profile_sensor_data
    )
    waited(visitor, lambda: heard, f"message on {topic}")
    visitor.node.destroy_subscription(keep)
    return heard[-1]


def goal_from(state, step, seconds):
    """Out by a step and back, at rest in both places; velocities make the pieces cubics."""
    goal = FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = list(state.name)
    for part, way in ((0.5, step), (1.0, 0.0)):
        # Towards zero, where the limits are far.
        towards = [q + way * (-1.0 if q > 0.0 else 1.0) for q in state.position]
        point = JointTrajectoryPoint(positions=towards, velocities=[0.0] * len(towards))
        point.time_from_start.sec = int(part * seconds)
        point.time_from_start.nanosec = int(1e9 * (part * seconds % 1.0))
        goal.trajectory.points.append(point)
    for name in state.name:
        goal.path_tolerance.append(JointTolerance(name=name, position=0.2))
        goal.goal_tolerance.append(JointTolerance(name=name, position=0.05))
    goal.goal_time_tolerance.sec = 20  # a busy machine may be late
    return goal


def follow(visitor, client, goal, cancel_after=0):
    """Send a goal; cancel it after so many feedbacks. Returns its status and result."""
    feedback = []
    future = client.send_goal_async(goal, feedback_callback=lambda m: feedback.append(m.feedback))
    waited(visitor, future.done, "answer to the goal")
    handle = future.result()
    if not handle.accepted:
        raise SystemExit("the goal was rejected")
    result = handle.get_result_async()
    waited(visitor, lambda: result.done() or 0 < cancel_after <= len(feedback), "result")
    if not result.done():
        handle.cancel_goal_async()
        waited(visitor, result.done, "result after the cancel")
    worst = max((max(map(abs, f.error.positions)) for f in feedback), default=0.0)
    print(f"{len(feedback)} feedbacks, never farther than {worst:.4f} rad from the trajectory")
    return result.result().status, result.result().result


def follow_alone(visitor, client, seconds, wanted, cancel_after=0):
    """Follow a goal, again if somebody else has moved the arm meanwhile; returns its sentence."""
    options = visitor.options
    for _ in range(10):
        goal = goal_from(joint_state(visitor), options.step, seconds)
        status, result = follow(visitor, client, goal, cancel_after)
        if status == wanted:
            return result.error_string
        if "replaced" not in result.error_string:
            break
        print("somebody else moves the arm, too; once more")
    raise SystemExit(f"{options.controller}: {result.error_code} {result.error_string}")


def main():
    """Follow one goal, and cancel another."""
    with visit(__doc__, ARGUMENTS) as visitor:
        controller, seconds = visitor.options.controller, visitor.options.seconds
        client = ActionClient(
            visitor.node, FollowJointTrajectory, f"{visitor.namespace}/{controller}"
        )
        waited(visitor, client.server_is_ready, f"action {controller}")
        follow_alone(visitor, client, seconds, GoalStatus.STATUS_SUCCEEDED)
        print("reached")
        said = follow_alone(
            visitor, client, 2.0 * seconds, GoalStatus.STATUS_CANCELED, cancel_after=10
        )
        print(f"cancelled on the way: {said}")


if __name__ == "__main__":
    main()
