"""Wait until every node of the stack is at work, or say which one is not.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/07_wait_until_the_stack_is_ready.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

from kin_interfaces.srv import CheckReady
from visitor import visit

NODES = {"nargs": "*", "default": [], "help": "only these; none: all expected"}


def wait(stack):
    """Ask the monitor, which knows all nodes of its namespace."""
    request = CheckReady.Request(nodes=stack.options.nodes, wait=30.0)
    answer = stack.ask(CheckReady, "stack_monitor/check_ready", request)
    print(f"Ready: {answer.status.message or 'every node is at work.'}")


if __name__ == "__main__":
    with visit(__doc__, {"--nodes": NODES}) as stack:
        wait(stack)
