"""One node to ask questions with, from a command line: no name to trip over, no signal handlers."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.signals import SignalHandlerOptions

from kin_core.errors import SolveTimeout, Unreachable
from kin_core.texts import did_you_mean
from kin_ros.executor import make_executor

__all__ = ["DOUBT", "Client", "foreign_memory", "open_client"]

#: A participant that was missed when it came is heard of again after three seconds [s].
_DISCOVERY = 4.0

#: Given to a listener that cannot be asked whether it knows its publisher [s].
_MOMENT = 0.5

#: An answer that takes longer [s] makes one ask whether it can come at all.
DOUBT = 5.0

#: Where Fast DDS shares memory.
_SHARED = Path("/dev/shm")  # noqa: S108 (looked at, never written to)

#: The middleware's name of a node that has not told its name yet.
_NAMELESS = "_NODE_NAME_UNKNOWN_"


class Client:
    """Calls services and spins while it waits."""

    def __init__(self, node: Node, executor: SingleThreadedExecutor) -> None:
        self.node = node
        self._executor = executor
        self._clients: dict[str, Any] = {}

    def spin_until(
        self, condition: Callable[[], bool], timeout: float, stop: Callable[[], bool] | None = None
    ) -> bool:
        """Handle callbacks until a condition holds; False if the time [s] or ``stop`` is first."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() >= deadline or (stop is not None and stop()):
                return False
            self._executor.spin_once(timeout_sec=0.02)
        return True

    def call(
        self,
        service: str,
        kind: Any,
        request: Any,
        *,
        wait: float,
        timeout: float,
        stop: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a service.

        Args:
            service: Its full name.
            kind: Its type.
            request: What to ask.
            wait: Longest time for the service to be there [s].
            timeout: Longest time for the answer [s].
            stop: Ends the waiting when it returns True.

        Raises:
            Unreachable: The service is not there; the message says what is.
            SolveTimeout: It did not answer.
        """
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        client = self._clients[service]
        asked = time.monotonic()
        if not self.spin_until(client.service_is_ready, wait, stop):
            # Before it says that there is nobody at all, it takes the time to find somebody.
            left = _DISCOVERY - (time.monotonic() - asked)
            self.spin_until(lambda: bool(self._ordinary()), left, stop)
            raise Unreachable(self._absent(service, kind))
        future = client.call_async(request)
        if not self.spin_until(future.done, min(timeout, DOUBT), stop):
            hint = foreign_memory()
            if hint and timeout > DOUBT:
                self.node.get_logger().warning(f"no answer of {service} yet: {hint}")
            if not self.spin_until(future.done, timeout - DOUBT, stop):
                client.remove_pending_request(future)
                late = f"{service} did not answer within {timeout:g} s"
                raise SolveTimeout(f"{late}: {hint}" if hint else late)
        return future.result()

    def services(self) -> dict[str, list[str]]:
        """Names and types of the services that other nodes offer.

        The graph's own list also holds services that somebody merely asks for, this client first.
        """
        found: dict[str, list[str]] = {}
        for name, namespace in self.node.get_node_names_and_namespaces():
            if name == self.node.get_name():
                continue
            with contextlib.suppress(NodeNameNonExistentError):
                found.update(self.node.get_service_names_and_types_by_node(name, namespace))
        return found

    def wait_until_heard(self, topics: Sequence[str], timeout: float) -> None:
        """Wait until the nodes that listen to topics know of their publishers in this node.

        A publisher finds a listener before the listener finds the publisher, and what is published
        in between is lost to a best-effort listener. Nodes learn of publishers and of clients in
        the order they were made: one that answers a client knows of every earlier publisher. A node
        without parameter services is given a moment instead.

        Args:
            topics: Topics that this node publishes.
            timeout: Longest time to wait for each of the listeners [s].
        """
        from rcl_interfaces.srv import GetParameters

        def listeners() -> set[str]:
            ask = self.node.get_subscriptions_info_by_topic
            found = [listener for topic in topics for listener in ask(topic)]
            return {f"{i.node_namespace.rstrip('/')}/{i.node_name}" for i in found}

        def nameless() -> bool:
            return any(_NAMELESS in name for name in listeners())

        # Listeners are known some moments before the names of their nodes are.
        self.spin_until(lambda: not nameless(), min(timeout, _DISCOVERY))
        for name in sorted(name for name in listeners() if _NAMELESS not in name):
            client = self.node.create_client(GetParameters, f"{name}/get_parameters")
            try:
                if self.spin_until(client.service_is_ready, _MOMENT):
                    self.spin_until(client.call_async(GetParameters.Request()).done, timeout)
            finally:
                self.node.destroy_client(client)

    def _ordinary(self) -> list[str]:
        """Services that are a node's own business, not every node's."""
        return [name for name in self.services() if not _is_plumbing(name)]

    def _absent(self, service: str, kind: Any) -> str:
        there = self.services()
        if service in there:
            wanted = f"{kind.__module__.split('.')[0]}/srv/{kind.__name__}"
            if wanted not in there[service]:
                return f"{service} is of type {', '.join(there[service])}, not {wanted}"
        ordinary = self._ordinary()
        hint = did_you_mean(service, ordinary, "{}")
        if hint:
            return f"there is no service {service}{hint}"
        if ordinary:
            listing = ", ".join(sorted(ordinary)[:20])
            return f"there is no service {service}; there are {listing}"
        return f"there is no service {service}, nor any other; is the stack running?"


def foreign_memory(folder: Path = _SHARED) -> str:
    """Why answers may be lost: programs of other users, who share no memory with this one.

    They are discovered, their services are there, and no data comes.

    Args:
        folder: Where the system keeps shared memory.

    Returns:
        A sentence; empty if that cannot be the reason.
    """
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "").upper()
    transports = os.environ.get("FASTDDS_BUILTIN_TRANSPORTS", "").upper()
    # With LOCALHOST the middleware chooses the transports by itself, memory among them.
    if reach != "LOCALHOST" and transports.startswith("UDP"):
        return ""
    owners = set()
    for path in folder.glob("fastrtps_port*"):
        with contextlib.suppress(OSError):
            owners.add(path.stat().st_uid)
    others = sorted(owners - {os.geteuid()})
    if not others:
        return ""
    names = ", ".join(str(owner) for owner in others)
    return (
        f"ROS programs of other users run here (uid {names}; yours is {os.geteuid()}), and"
        " different users share no memory. If it is one of theirs, be the same user, or set"
        " ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET FASTDDS_BUILTIN_TRANSPORTS=UDPv4 for this command"
    )


def _is_plumbing(service: str) -> bool:
    """Parameter, type and action services that every node has."""
    last = service.rsplit("/", 1)[-1]
    return (
        last.endswith(("_parameters", "_parameters_atomically", "_parameter_types"))
        or last == "get_type_description"
        or "/_action/" in service
    )


@contextlib.contextmanager
def open_client(name: str = "client", *, domain: int | None = None) -> Iterator[Client]:
    """A hidden node with an executor, for as long as the block runs.

    Args:
        name: Part of the node's name.
        domain: ROS domain; None for that of the environment.
    """
    context = Context()
    rclpy.init(
        args=[], context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO
    )
    node = Node(
        f"_kinstack_{name}_{os.getpid()}",
        context=context,
        start_parameter_services=False,
        enable_rosout=False,
    )
    executor = make_executor(context)
    executor.add_node(node)
    try:
        yield Client(node, executor)
    finally:
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        context.try_shutdown()
