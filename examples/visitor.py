"""What the examples begin with: a node beside the stack that asks its services, by rclpy alone.

Copy this file together with the example that you start from.
"""

import argparse
import contextlib

import rclpy


class Visitor:
    """Asks the services of one stack.

    Attributes:
        node: The node it asks with, for topics.
        namespace: Of the stack; its topics have names such as f"{namespace}/hier_ik/drag".
        options: What the command line says.
    """

    def __init__(self, node, options):
        self.node = node
        self.namespace = options.stack.rstrip("/")
        self.options = options

    def ask(self, kind, service, request, *, refused_is_fine=False):
        """Call a service and return its answer; stop with a sentence if it fails.

        Args:
            kind: Type of the service.
            service: Its name in the stack, such as "hier_ik/solve".
            request: What to ask.
            refused_is_fine: Return the answer whatever its status, or MoveIt's code, says.
        """
        client = self.node.create_client(kind, f"{self.namespace}/{service}")
        if not client.wait_for_service(20.0):
            raise SystemExit(f"there is no service {service}; is the stack running?")
        future = client.call_async(request)
        rclpy.spin_until_future_complete(self.node, future, timeout_sec=60.0)
        if not future.done():
            raise SystemExit(f"{service} did not answer within a minute")
        answer = future.result()
        if hasattr(answer, "error_code"):  # of MoveIt, where 1 is SUCCESS
            good, message = answer.error_code.val == 1, answer.error_code.message
        else:
            good, message = answer.status.code == 0, answer.status.message
        if not good and not refused_is_fine:
            raise SystemExit(f"{service}: {message}")
        return answer


@contextlib.contextmanager
def visit(about, arguments=None):
    """Read the command line and give a visitor for as long as the block runs.

    Args:
        about: What the program is for; --help shows the first line.
        arguments: Further arguments: name, and what argparse is to know of it.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    for name, known in (arguments or {}).items():
        parser.add_argument(name, **known)
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("visitor", namespace="visitor")
    try:
        yield Visitor(node, options)
    finally:
        node.destroy_node()
        rclpy.shutdown()
