"""Pull at the top of a tower of closed loops; what each joint must do follows.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/05_drag_a_tower_of_270_joints.py

It needs nothing of kinstack but its messages.
"""

import argparse

import rclpy
from kin_interfaces.msg import HierGoal, HierProblem, SolveStatus
from kin_interfaces.srv import CheckAbstraction, Decompose, EditLinkage, LoadLinkage, SolveHierIK


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
    """Load a tower, see how it falls into parts, and drag its top."""
    service = f"{stack}/hier_ik"
    request = LoadLinkage.Request(preset="tower", blocks=15)
    answer = ask(node, LoadLinkage, f"{service}/load", request)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"not loaded: {answer.status.message}")
    print(
        f"{answer.name}: {answer.links} links, {answer.tree_joints} tree joints, "
        f"{answer.closure_joints} loops to close, {answer.sublinkages} sublinkages."
    )

    answer = ask(node, Decompose, f"{service}/decompose", Decompose.Request())
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"not decomposed: {answer.status.message}")
    largest = max(len(part.joints) for part in answer.components)
    print(f"It falls into {len(answer.components)} parts that are solved one after the other;")
    print(f"the largest has {largest} joints.")

    goal = HierGoal(name="drag", priority=-1)
    position = goal.target.position
    goal.target.orientation.w = 1.0
    position.z = 11.6
    print("\nThe top is dragged to one side [m]:")
    for k in range(1, 5):
        position.x = 0.2 * k
        request = SolveHierIK.Request(problem=HierProblem(goals=[goal], tolerance=1e-9, keep=True))
        answer = ask(node, SolveHierIK, f"{service}/solve", request)
        if answer.status.code != SolveStatus.SUCCESS:
            raise SystemExit(f"not solved: {answer.status.message}")
        worst = max(r.position for r in answer.solution.residuals)
        count = len(answer.solution.joint_names)
        print(
            f"  x = {position.x:.1f}: {count} real joints, every loop closed to "
            f"{worst:.0e} m, in {1e3 * answer.status.solve_time:.1f} ms"
        )
    change(node, service)


def change(node, service):
    """Limit the virtual joint that stands for the first block, and see what that breaks."""
    check = CheckAbstraction.Request(sublinkage="C1", samples=4, timeout=30.0)
    for lower, upper in ((0.6, 1.5), (0.65, 0.95)):
        edits = f"[{{op: set_limits, name: C1.expand, lower: {lower}, upper: {upper}}}]"
        answer = ask(node, EditLinkage, f"{service}/edit", EditLinkage.Request(edits=edits))
        if answer.status.code != SolveStatus.SUCCESS:
            raise SystemExit(f"not changed: {answer.status.message}")
        answer = ask(node, CheckAbstraction, f"{service}/check_abstraction", check)
        if answer.status.code != SolveStatus.SUCCESS:
            raise SystemExit(f"not checked: {answer.status.message}")
        verdict = "promises too much" if answer.refuted else "promises nothing it cannot hold"
        print(f"A first block that may be {lower} to {upper} m high {verdict}.")


def main():
    """Ask, and show the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("tower", namespace="visitor")
    try:
        solve(node, options.stack.rstrip("/"))
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
