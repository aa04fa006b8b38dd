"""An arm from a URDF follows a trajectory while one processor after the other is killed.

Start the controller with an arm of seven joints, which gravity pulls at, then in another terminal
the script; it takes any arm, the planar one of ./kinstack up too:

    ./kinstack launch launch/ft.launch.xml robot:=seven
    ./kinstack shell python examples/11_an_arm_from_a_urdf_outlives_its_processors.py

The trajectory is a message that every ROS user knows. Nothing of kinstack is imported but its
messages and visitor.py beside it.
"""

import math
import time

import rclpy
from kin_interfaces.msg import FtStatus
from kin_interfaces.srv import InjectFault
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visitor import visit

SECONDS = 6


def wave(joints):
    """Each joint swings by a third of a radian and comes back, one a little after the other."""
    message = JointTrajectory(joint_names=list(joints))
    for k in range(2 * SECONDS + 1):
        share = k / (2 * SECONDS)
        point = JointTrajectoryPoint()
        for i in range(len(joints)):
            swing = math.sin(math.pi * share) * math.sin(2.0 * math.pi * share + i)
            point.positions.append(0.33 * swing)
        point.time_from_start.sec, half = divmod(k, 2)
        point.time_from_start.sec += 2  # the way to the first point
        point.time_from_start.nanosec = 500_000_000 * half
        message.points.append(point)
    return message


def drive(stack):
    """Send the trajectory, kill processors on the way, say how far off the arm ever was."""
    heard = []
    topic = f"{stack.namespace}/ft_controller/status"
    stack.node.create_subscription(FtStatus, topic, heard.append, 10)
    publisher = stack.node.create_publisher(
        JointTrajectory, f"{stack.namespace}/joint_trajectory", 10
    )

    def spin(seconds, condition=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not condition():
            rclpy.spin_once(stack.node, timeout_sec=0.05)
        return condition()

    def running():
        return heard and heard[-1].state == FtStatus.RUN and publisher.get_subscription_count()

    if not spin(30.0, running):
        raise SystemExit("the controller does not run; is it started?")
    joints = list(heard[-1].joints)
    print(
        f"{len(joints)} joints, {heard[-1].controller} on {len(heard[-1].processors)} processors."
    )
    publisher.publish(wave(joints))
    spin(2.0)
    for k in (0, 2, 3):
        before = heard[-1].processors[k].pid if heard else 0
        request = InjectFault.Request(processors=[k], kind="sigkill", duration=0.2)
        stack.ask(InjectFault, "ft_controller/inject_fault", request)

        def replaced(k=k, before=before):
            return (
                heard and heard[-1].working_set >> k & 1 and heard[-1].processors[k].pid != before
            )

        back = spin(10.0, replaced)
        print(
            f"Processor {k} is killed" + (", and another one works in its place." if back else ".")
        )
    spin(SECONDS)
    held = sum(s.state != FtStatus.RUN for s in heard)
    print(f"Of {len(heard)} reports {held} were of an arm without control.")
    print(f"Largest error of a joint: {max(abs(e) for s in heard for e in s.error):.3f} rad.")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        drive(stack)
