"""Pytest fixtures for tests of nodes over real DDS, and of the full stack.

Each test gets a ROS domain of its own, held by a socket for as long as the test runs, so that
tests on one machine never hear each other.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import rclpy
from ament_index_python.packages import get_package_prefix
from domain_coordinator import domain_id
from lifecycle_msgs.msg import State
from rclpy.action import ActionClient
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, ShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from kin_ros.executor import make_executor
from kin_ros.qos import SERVICE, STATE
from kin_tools.guard import die_with_parent

if TYPE_CHECKING:
    from kin_testing.running_stack import RunningStack

__all__ = ["RosGraph", "campaign", "full_stack", "ros", "wait_until"]

# Wrong types in messages raise where they are made.
os.environ.setdefault("ROS_PYTHON_CHECK_FIELDS", "1")
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def wait_until(condition: Callable[[], Any], timeout: float = 60.0, what: str = "") -> Any:
    """Wait until a condition is truthy and return its value; fail the test otherwise."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout:g} s: {what or condition}")
        time.sleep(0.005)


class _Spinner:
    """One executor in one thread, spinning until stopped."""

    def __init__(self, context: Context, name: str) -> None:
        self.executor = make_executor(context)
        self._stop = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        while not self._stop.is_set():
            try:
                self.executor.spin_once()
            except (ExternalShutdownException, ShutdownException):
                return
            except Exception as error:
                self.error = error
                return

    def stop(self) -> None:
        self._stop.set()
        with contextlib.suppress(Exception):
            self.executor.create_task(lambda: None)
        self._thread.join(5.0)
        self.executor.shutdown(timeout_sec=0.5)


class RosGraph:
    """A ROS graph of one test: its nodes, its processes and a client to talk to them."""

    def __init__(self, domain: int) -> None:
        self.domain = domain
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self._spinners: list[_Spinner] = []
        self._nodes: list[Node] = []
        self._processes: list[psutil.Popen] = []
        self._clients: dict[tuple[type, str], Any] = {}
        self.node = Node("test_client", context=self.context, start_parameter_services=False)
        self._spin(self.node)

    def _spin(self, node: Node) -> None:
        spinner = _Spinner(self.context, node.get_name())
        spinner.executor.add_node(node)
        self._spinners.append(spinner)
        self._nodes.append(node)

    def add(
        self,
        make: Callable[..., Any],
        parameters: dict[str, Any] | None = None,
        namespace: str = "",
        *,
        wait_active: bool = True,
    ) -> Any:
        """Start a node in this process, on an executor thread of its own.

        Args:
            make: Node class, called with context, namespace and parameter_overrides.
            parameters: Parameter overrides.
            namespace: Namespace of the node.
            wait_active: Whether to wait until a KinNode is active.
        """
        overrides = [Parameter(name, value=value) for name, value in (parameters or {}).items()]
        node = make(context=self.context, namespace=namespace, parameter_overrides=overrides)
        self._spin(node)
        if hasattr(node, "autostart"):
            # Here and not on the executor, so that a cold compiler has all the time of the test.
            with contextlib.suppress(Exception):  # configure meets it again, and says so
                node.ensure_warm()
            outcome: list[bool] = []
            executor = self._spinners[-1].executor
            executor.create_task(lambda: outcome.append(node.autostart()))
            if wait_active:
                wait_until(lambda: outcome, 120.0, f"{node.get_name()} to start")
                started = outcome[0]
                if node.parameters.autostart and not started:
                    raise AssertionError(f"{node.get_name()} did not become active")
        return node

    def run_on(self, node: Node, action: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Run a function on a node's executor thread and return its value."""
        spinner = self._spinners[self._nodes.index(node)]
        outcome: list[Any] = []
        spinner.executor.create_task(lambda: outcome.append(action()))
        return wait_until(lambda: outcome, timeout, "the executor")[0]

    def client(self, service: type, name: str, timeout: float = 60.0) -> Any:
        """Return a client of a service that is there."""
        key = (service, name)
        if key not in self._clients:
            self._clients[key] = self.node.create_client(service, name, qos_profile=SERVICE)
        if not self._clients[key].wait_for_service(timeout):
            raise AssertionError(f"no service {name} within {timeout:g} s")
        return self._clients[key]

    def call(self, service: type, name: str, request: Any, timeout: float = 60.0) -> Any:
        """Call a service and return its response."""
        future = self.client(service, name, timeout).call_async(request)
        wait_until(future.done, timeout, f"an answer of {name}")
        return future.result()

    def call_async(self, service: type, name: str, request: Any) -> Any:
        """Call a service and return the future."""
        return self.client(service, name).call_async(request)

    def start_goal(
        self,
        action: type,
        name: str,
        goal: Any,
        on_feedback: Callable[[Any], None] | None = None,
        timeout: float = 60.0,
    ) -> Any:
        """Send a goal and return the accepted goal handle."""
        client = ActionClient(self.node, action, name)
        if not client.wait_for_server(timeout):
            raise AssertionError(f"no action {name} within {timeout:g} s")
        listener = None if on_feedback is None else lambda m: on_feedback(m.feedback)
        future = client.send_goal_async(goal, feedback_callback=listener)
        wait_until(future.done, timeout, f"{name} to accept the goal")
        return future.result()

    def send_goal(
        self,
        action: type,
        name: str,
        goal: Any,
        timeout: float = 60.0,
        on_feedback: Callable[[Any], None] | None = None,
    ) -> Any:
        """Send a goal, wait, and return the result."""
        handle = self.start_goal(action, name, goal, on_feedback)
        future = handle.get_result_async()
        wait_until(future.done, timeout, f"a result of {name}")
        return future.result().result

    def publisher(
        self, message: type, topic: str, qos: QoSProfile | int = STATE, matched: int = 1
    ) -> Any:
        """Return a publisher that has found its subscribers."""
        publisher = self.node.create_publisher(message, topic, qos)
        wait_until(
            lambda: publisher.get_subscription_count() >= matched, 60.0, f"a subscriber of {topic}"
        )
        return publisher

    def publish(
        self, message: type, topic: str, content: Any, qos: QoSProfile | int = STATE
    ) -> Any:
        """Publish one message to a topic that has a subscriber; returns the publisher."""
        publisher = self.publisher(message, topic, qos)
        publisher.publish(content)
        return publisher

    def listen(self, message: type, topic: str, qos: QoSProfile | int = STATE) -> list[Any]:
        """Subscribe and return a list that grows with each message."""
        received: list[Any] = []
        self.node.create_subscription(message, topic, received.append, qos)
        return received

    def collect(
        self,
        message: type,
        topic: str,
        count: int = 1,
        timeout: float = 60.0,
        qos: QoSProfile | int = STATE,
    ) -> list[Any]:
        """Wait for ``count`` messages of a topic and return them."""
        received = self.listen(message, topic, qos)
        wait_until(lambda: len(received) >= count, timeout, f"{count} messages on {topic}")
        return received[:count]

    def process(
        self,
        package: str,
        executable: str,
        parameters: dict[str, Any] | None = None,
        namespace: str = "",
        environment: dict[str, str] | None = None,
    ) -> psutil.Popen:
        """Start a node as a process of its own; it is ended with the test."""
        program = Path(get_package_prefix(package), "lib", package, executable)
        arguments = ["--ros-args"]
        for name, value in (parameters or {}).items():
            arguments += ["-p", f"{name}:={json.dumps(value)}"]
        if namespace:
            arguments += ["-r", f"__ns:={namespace}"]
        started = psutil.Popen(
            [sys.executable, str(program), *arguments],
            env={**os.environ, "ROS_DOMAIN_ID": str(self.domain), **(environment or {})},
            stdin=subprocess.DEVNULL,
            preexec_fn=partial(die_with_parent, os.getpid()),  # should this process be killed
        )
        self._processes.append(started)
        return started

    def wait_active(self, name: str, timeout: float = 60.0) -> None:
        """Wait until the lifecycle node with this full name is active."""
        from lifecycle_msgs.srv import GetState

        client = self.client(GetState, f"{name}/get_state", timeout)

        def active() -> bool:
            future = client.call_async(GetState.Request())
            wait_until(future.done, timeout, f"the state of {name}")
            return bool(future.result().current_state.id == State.PRIMARY_STATE_ACTIVE)

        wait_until(active, timeout, f"{name} to be active")

    def close(self) -> None:
        """End everything that the test started, and fail if an executor died in between."""
        for process in self._processes:
            if process.is_running():
                process.terminate()
        _, alive = psutil.wait_procs(self._processes, timeout=10.0)
        for survivor in alive:
            survivor.kill()
        errors = [spinner.error for spinner in self._spinners if spinner.error is not None]
        for spinner in reversed(self._spinners):
            spinner.stop()
        for node in reversed(self._nodes):
            if hasattr(node, "wind_down"):
                node.wind_down()
            node.destroy_node()
        self.context.try_shutdown()
        self.context.destroy()
        if errors:
            raise AssertionError("an executor was ended by an exception") from errors[0]


#: Domains are used in turn, from a place that differs between processes: what a killed process
#: leaves in its domain for some seconds is not heard by the next test.
_TURN = itertools.count(os.getpid() * 7)


@pytest.fixture
def ros() -> Iterator[RosGraph]:
    """Give the test a ROS graph of its own."""
    with domain_id(lambda: next(_TURN) % 100 + 1) as domain:
        graph = RosGraph(domain)
        try:
            yield graph
        finally:
            graph.close()


@pytest.fixture
def campaign() -> Callable[[int, int], int]:
    """Choose the size of a test, or the larger one with which ``bench campaigns`` runs it."""
    large = bool(os.environ.get("KINSTACK_CAMPAIGNS"))
    return lambda test, campaign: campaign if large else test


@pytest.fixture(scope="session")
def full_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The full stack as a user launches it; one for all tests, each leaves it in good health."""
    from kin_testing.running_stack import running_stack

    log = tmp_path_factory.mktemp("stack") / "log.txt"
    with running_stack(log, timeout=600.0) as running:
        yield running
