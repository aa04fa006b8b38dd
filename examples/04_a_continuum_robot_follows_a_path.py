"""Leg lengths of a continuum Stewart-Gough robot along a path, and where it breaks off.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/04_a_continuum_robot_follows_a_path.py

It needs nothing of kinstack but its messages.
"""

import argparse
import math

import rclpy
from geometry_msgs.msg import Pose
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK


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


def upright(x, y, z):
    """A pose of the platform without rotation."""
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = x, y, z
    pose.orientation.w = 1.0
    return pose


def solve(node, stack):
    """A circle, back to poses, and a pose that is too far."""
    circle = [2.0 * math.pi * k / 24 for k in range(25)]
    poses = [upright(0.03 * math.cos(a), 0.02 + 0.03 * math.sin(a), 0.48) for a in circle]
    service = f"{stack}/continuum_ik/solve_ik"
    answer = ask(node, SolveContinuumIK, service, SolveContinuumIK.Request(poses=poses))
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"not solved: {answer.status.message}")
    print(
        f"{len(poses)} poses on a circle, solved in {1e3 * answer.status.solve_time:.2f} ms [mm]:"
    )
    for k in range(0, len(poses), 6):
        legs = answer.lengths[6 * k : 6 * k + 6]
        print(f"  {math.degrees(circle[k]):5.0f} deg  " + " ".join(f"{1e3 * l:7.2f}" for l in legs))

    request = SolveContinuumFK.Request(lengths=answer.lengths)
    request.guess_given, request.guess = True, poses[0]
    back = ask(node, SolveContinuumFK, f"{stack}/continuum_ik/solve_fk", request)
    if back.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"not solved: {back.status.message}")
    worst = max(
        math.dist(
            (a.position.x, a.position.y, a.position.z), (b.position.x, b.position.y, b.position.z)
        )
        for a, b in zip(poses, back.poses, strict=True)
    )
    print(f"From the lengths back to poses: the largest difference is {worst:.1e} m.")

    far = SolveContinuumIK.Request(poses=[upright(0.0, 0.0, 5.0)])
    answer = ask(node, SolveContinuumIK, service, far)
    print("\nFive metres up is too far, and the answer says how far it goes:")
    print(f"  code {answer.status.code}: {answer.status.message}")
    print(f"  {100 * answer.reached[0]:.0f} % of the way, to z = {answer.best[0].position.z:.3f} m")


def main():
    """Ask, and show the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("continuum_path", namespace="visitor")
    try:
        solve(node, options.stack.rstrip("/"))
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
