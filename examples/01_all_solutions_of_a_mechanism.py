"""All configurations of closed mechanisms, with a proof that none is missing.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/01_all_solutions_of_a_mechanism.py

It needs nothing of kinstack but its messages.
"""

import argparse
import math

import rclpy
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import SolveAllIK, SolveManifold


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


def solve(node, stack):
    """A Bennett linkage, all of its motion; and a Puma arm, all of its postures."""
    request = SolveManifold.Request(timeout=30.0)
    request.problem.mechanism = "bennett"
    answer = ask(node, SolveManifold, f"{stack}/kin_solvers/solve_manifold", request)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no solution: {answer.status.message}")
    found = answer.manifold
    print(f"The Bennett linkage moves in {found.component_count} curve(s), covered by")
    print(
        f"{found.box_count} boxes of side {found.sigma:g} rad in {answer.status.solve_time:.3f} s;"
    )
    print("nothing lies outside of them." if found.complete else "the search was cut short.")
    width = len(found.variables)
    print(
        "  one of them: "
        + ", ".join(
            f"{name} in [{found.lower[v]:+.2f}, {found.upper[v]:+.2f}]"
            for v, name in enumerate(found.variables[:width])
        )
    )

    request = SolveAllIK.Request(arm="puma560", timeout=30.0)
    position, orientation = request.pose.position, request.pose.orientation
    position.x, position.y, position.z = 0.4, 0.15, 0.3
    orientation.w = 1.0
    answer = ask(node, SolveAllIK, f"{stack}/kin_solvers/solve_all_ik", request)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no posture: {answer.status.message}")
    joints = len(answer.joints)
    print(
        f"\nThe Puma 560 at ({position.x}, {position.y}, {position.z}) m: {answer.status.message}"
    )
    print(f"{'there are no others' if answer.complete else 'there may be more'} [deg]:")
    for k in range(answer.count):
        row = answer.positions[k * joints : (k + 1) * joints]
        proven = "proven" if answer.certified[k] else "not proven"
        print("  " + " ".join(f"{math.degrees(q):8.2f}" for q in row) + f"   {proven}")


def main():
    """Ask, and show the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("all_solutions", namespace="visitor")
    try:
        solve(node, options.stack.rstrip("/"))
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
