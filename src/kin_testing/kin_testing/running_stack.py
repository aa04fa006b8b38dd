"""A launched stack with a client beside it: what whole-stack tests and benchmarks start from."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.srv import GetState

from kin_core.errors import NotConverged, SolveTimeout, Unreachable
from kin_ros.client import Client, open_client
from kin_ros.messages import fill, find_type
from kin_tools.check import Question, read_questions
from kin_tools.launch import find_launch_file
from kin_tools.launch_xml import load_launch_file

__all__ = ["RunningStack", "find_message", "running_stack"]


def find_message(kind: str) -> Any:
    """The class of a topic's type, also of the feedback of actions.

    Raises:
        InvalidInput: There is none.
    """
    action = kind.removesuffix("_FeedbackMessage")
    if action != kind:
        return find_type(action, "action").Impl.FeedbackMessage
    return find_type(kind, "msg")


class RunningStack:
    """A stack that was launched as a process, in a ROS domain of its own.

    Attributes:
        client: Asks its services.
        names: Full names of its nodes.
        questions: What ``up --check`` would ask them.
        log: File with the output of all nodes.
    """

    def __init__(
        self,
        process: psutil.Popen,
        client: Client,
        names: list[str],
        questions: list[Question],
        log: Path,
    ) -> None:
        self.process = process
        self.client = client
        self.names = names
        self.questions = questions
        self.log = log

    def pid(self, node: str) -> int | None:
        """Process id of a node; None while it is being started again."""
        namespace, _, name = node.rpartition("/")
        for child in self.process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = child.cmdline()
                if f"__node:={name}" not in words or child.status() == psutil.STATUS_ZOMBIE:
                    continue
                spaces = [word[6:] for word in words if word.startswith("__ns:=")]
                if not spaces or spaces[-1].rstrip("/") == namespace:
                    return int(child.pid)
        return None

    def pids(self) -> dict[str, int | None]:
        """Process ids of all nodes."""
        return {name: self.pid(name) for name in self.names}

    def memory(self) -> dict[str, int]:
        """Resident memory of each node with its children [bytes]."""
        sizes = {}
        for name, pid in self.pids().items():
            if pid is None:
                continue
            with contextlib.suppress(psutil.Error):
                node = psutil.Process(pid)
                sizes[name] = sum(
                    process.memory_info().rss for process in [node, *node.children(recursive=True)]
                )
        return sizes

    def state(self, node: str, timeout: float = 30.0) -> str:
        """Lifecycle state of a node, by its own answer."""
        answer = self.client.call(
            f"{node}/get_state", GetState, GetState.Request(), wait=timeout, timeout=timeout
        )
        return str(answer.current_state.label)

    def wait_ready(self, timeout: float = 240.0) -> None:
        """Wait until the monitor says that every expected node is active.

        A node that is active and reports a fault counts: the controller stops safely when it loses
        its arm, which on a busy machine happens.

        Raises:
            NotConverged: It does not; with the monitor's sentence, and the end of the log.
        """
        monitor = next(name for name in self.names if name.endswith("/stack_monitor"))
        deadline = time.monotonic() + timeout
        sentence = "the monitor did not answer"
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                # Short questions: one that goes to a monitor which was killed is never answered.
                answer = self.client.call(
                    f"{monitor}/check_ready",
                    CheckReady,
                    CheckReady.Request(wait=1.0),
                    wait=2.0,
                    timeout=4.0,
                )
            except (SolveTimeout, Unreachable):
                continue
            if not (answer.missing or answer.silent or answer.starting):
                return
            sentence = answer.status.message
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])
        raise NotConverged(f"not ready: {sentence}\n{tail}")

    def services(self) -> dict[str, str]:
        """Names and types of the services that the nodes offer on top of those of every node."""
        offered = self._graph(self.client.node.get_service_names_and_types_by_node)
        return {
            service: kind for service, kind, _ in offered if kind.startswith("kin_interfaces/srv/")
        }

    def actions(self) -> dict[str, str]:
        """Names and types of the actions that the nodes offer."""
        offered = self._graph(self.client.node.get_service_names_and_types_by_node)
        goal = "/_action/send_goal"
        return {
            service.removesuffix(goal): kind.removesuffix("_SendGoal")
            for service, kind, _ in offered
            if service.endswith(goal)
        }

    def subscriptions(self) -> dict[str, tuple[str, str]]:
        """Topics that the nodes listen to: type, and full name of a node."""
        heard = self._graph(self.client.node.get_subscriber_names_and_types_by_node)
        return {
            topic: (kind, name)
            for topic, kind, name in heard
            if topic not in ("/clock", "/parameter_events")
        }

    def _graph(self, ask: Callable[[str, str], list[Any]]) -> Iterator[tuple[str, str, str]]:
        """What the graph says of each node, once it knows the node: name, type, and the node."""
        for name in self.names:
            namespace, _, short = name.rpartition("/")
            self.client.spin_until(partial(self._known, name), 20.0)
            for found, (kind, *_) in ask(short, namespace or "/"):
                yield found, kind, name

    def _known(self, name: str) -> bool:
        known = self.client.node.get_node_names_and_namespaces()
        return name in {f"{namespace.rstrip('/')}/{short}" for short, namespace in known}

    def examples(self, service: str) -> list[Any]:
        """Valid requests for a service: those of ``up --check``."""
        return [
            fill(find_type(question.kind, "srv").Request(), question.request)
            for question in self.questions
            if question.service == service
        ]

    def stop(self) -> int:
        """End it as Ctrl-C would; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return int(self.process.wait(60.0))
        except psutil.TimeoutExpired:
            self.process.kill()
            return int(self.process.wait(30.0))


@contextlib.contextmanager
def running_stack(
    log: Path,
    arguments: Mapping[str, str] | None = None,
    *,
    domain: int | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 240.0,
    file: Path | None = None,
) -> Iterator[RunningStack]:
    """Launch the full stack, wait until it is ready, and end it after the block.

    Args:
        log: File for the output of all nodes.
        arguments: Arguments of the launch file.
        domain: ROS domain; None for one that nobody else on this machine uses.
        environment: Variables on top of this process's.
        timeout: Longest time until all nodes are active [s].
        file: Another launch file.

    Raises:
        NotConverged: The stack did not become ready.
    """
    from domain_coordinator import domain_id

    given = dict(arguments or {})
    path = file or find_launch_file(["kin_bringup", "full_stack.launch.xml"])[0]
    plan = load_launch_file(path, given)
    questions = read_questions(path.parent / "config" / "check", plan.node_names)
    with contextlib.ExitStack() as stack:
        number = stack.enter_context(domain_id()) if domain is None else domain
        out = stack.enter_context(log.open("w"))
        words = [f"{name}:={value}" for name, value in given.items()]
        process = psutil.Popen(
            [sys.executable, "-m", "kin_tools.launch", str(path), *words],
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "ROS_DOMAIN_ID": str(number), **(environment or {})},
        )
        client = stack.enter_context(open_client("stack", domain=number))
        running = RunningStack(process, client, plan.node_names, questions, log)
        stack.callback(running.stop)
        running.wait_ready(timeout)
        yield running
