"""All configurations of your own robot at a pose: its URDF goes out as robot_description.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/06_all_ik_of_your_urdf.py examples/library/arm.urdf

It needs nothing of kinstack but its messages. Where robot_state_publisher runs, it publishes the
description, and only the question is left to ask.
"""

import argparse
import math
import time
from pathlib import Path

import rclpy
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import SolveAllIK
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String


def ask(node, kind, name, request, patience=60.0):
    """Call a service and return its answer; stop with a sentence if there is none."""
    client = node.create_client(kind, name)
    if not client.wait_for_service(20.0):
        raise SystemExit(f"there is no service {name}; is the stack running? (./kinstack up)")
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=patience)
    if not future.done():
        raise SystemExit(f"{name} did not answer within {patience:g} s")
    return future.result()


def solve(node, stack, urdf, xyz, tip):
    """Publish the robot as robot_state_publisher would, and ask for every posture."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, f"{stack}/robot_description", latched)
    publisher.publish(String(data=urdf.read_text()))
    request = SolveAllIK.Request(tip_link=tip, timeout=30.0)
    position, orientation = request.pose.position, request.pose.orientation
    position.x, position.y, position.z = xyz
    # The tip leans over by 1.2 rad about y.
    orientation.y, orientation.w = math.sin(0.6), math.cos(0.6)
    end = time.monotonic() + 20.0
    while True:  # until the description has arrived
        answer = ask(node, SolveAllIK, f"{stack}/kin_solvers/solve_all_ik", request)
        if answer.status.code != SolveStatus.INVALID_INPUT or time.monotonic() > end:
            break
        rclpy.spin_once(node, timeout_sec=0.2)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no posture: {answer.status.message}")
    joints = len(answer.joints)
    print(f"{answer.status.message}{'; there are no others' if answer.complete else ''} [rad]:")
    print("  ".join(f"{name:>8}" for name in answer.joints))
    for k in range(answer.count):
        row = answer.positions[k * joints : (k + 1) * joints]
        print("  ".join(f"{q:8.4f}" for q in row))


def main():
    """Ask, and show the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    arm = Path(__file__).parent / "library" / "arm.urdf"
    parser.add_argument("urdf", type=Path, nargs="?", default=arm, help="the robot")
    parser.add_argument("--xyz", type=float, nargs=3, default=(0.4, 0.1, 0.5), help="tip [m]")
    parser.add_argument("--tip", default="", help="link; the only leaf if not given")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("all_ik_of_your_urdf", namespace="visitor")
    try:
        solve(node, options.stack.rstrip("/"), options.urdf, options.xyz, options.tip)
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
