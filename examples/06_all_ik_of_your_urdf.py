"""All configurations of your own robot at a pose: its URDF goes out as robot_description.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/06_all_ik_of_your_urdf.py examples/library/arm.urdf

It needs nothing of kinstack but its messages and visitor.py beside it. Where
robot_state_publisher runs, it publishes the description, and only the question is left to ask.
"""

import math
import time
from pathlib import Path

import rclpy
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import SolveAllIK
from moveit_msgs.srv import GetCartesianPath
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from visitor import visit

ARM = Path(__file__).parent / "library" / "arm.urdf"
ARGUMENTS = {
    "urdf": {"type": Path, "nargs": "?", "default": ARM, "help": "the robot"},
    "--xyz": {"type": float, "nargs": 3, "default": (0.4, 0.1, 0.5), "help": "tip [m]"},
    "--tip": {"default": "", "help": "link; the only leaf if not given"},
}


def solve(stack):
    """Publish the robot as robot_state_publisher would, and ask for every posture."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    topic = f"{stack.namespace}/robot_description"
    publisher = stack.node.create_publisher(String, topic, latched)
    publisher.publish(String(data=stack.options.urdf.read_text()))
    request = SolveAllIK.Request(tip_link=stack.options.tip, timeout=30.0)
    position, orientation = request.target.pose.position, request.target.pose.orientation
    position.x, position.y, position.z = stack.options.xyz
    # The tip leans over by 1.2 rad about y.
    orientation.y, orientation.w = math.sin(0.6), math.cos(0.6)
    end = time.monotonic() + 20.0
    while True:  # until the description has arrived
        patient = time.monotonic() < end
        answer = stack.ask(SolveAllIK, "kin_solvers/solve_all_ik", request, refused_is_fine=patient)
        if answer.status.code == SolveStatus.SUCCESS:
            break
        rclpy.spin_once(stack.node, timeout_sec=0.2)
    joints = len(answer.joints)
    print(f"{answer.status.message}{'; there are no others' if answer.complete else ''} [rad]:")
    print("  ".join(f"{name:>8}" for name in answer.joints))
    for k in range(answer.count):
        row = answer.positions[k * joints : (k + 1) * joints]
        print("  ".join(f"{q:8.4f}" for q in row))

    # From the first of them 5 cm up, the way MoveIt asks.
    line = GetCartesianPath.Request(link_name=stack.options.tip, max_step=0.005)
    line.start_state.joint_state.name = list(answer.joints)
    line.start_state.joint_state.position = list(answer.positions[:joints])
    position.z += 0.05
    line.waypoints = [request.target.pose]
    path = stack.ask(GetCartesianPath, "kin_solvers/compute_cartesian_path", line)
    points = path.solution.joint_trajectory.points
    took = points[-1].time_from_start
    print(
        f"5 cm up: {100 * path.fraction:.0f} % in {len(points)} points and "
        f"{took.sec + took.nanosec / 1e9:.1f} s {path.error_code.message}"
    )


if __name__ == "__main__":
    with visit(__doc__, ARGUMENTS) as stack:
        solve(stack)
