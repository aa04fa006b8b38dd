"""Wait until every node of the stack is at work, or say which one is not.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/07_wait_until_the_stack_is_ready.py

It needs nothing of kinstack but its messages.
"""

import argparse

import rclpy
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import CheckReady


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


def wait(node, stack, wanted):
    """Ask the monitor, which knows all nodes of its namespace."""
    service = f"{stack}/stack_monitor/check_ready"
    answer = ask(node, CheckReady, service, CheckReady.Request(nodes=wanted, wait=30.0))
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"not ready: {answer.status.message}")
    print(f"Ready: {answer.status.message or 'every node is at work.'}")


def main():
    """Ask, and show the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    parser.add_argument("--nodes", nargs="*", default=[], help="only these; none: all expected")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("patience", namespace="visitor")
    try:
        wait(node, options.stack.rstrip("/"), options.nodes)
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
