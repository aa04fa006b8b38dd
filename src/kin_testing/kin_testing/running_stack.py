"""A launched stack with a client beside it: what whole-stack tests and benchmarks start from."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from domain_coordinator import domain_id
from kin_interfaces.msg import NodeState, StackState
from kin_interfaces.srv import SetController
from lifecycle_msgs.srv import GetState

from kin_core.errors import NotConverged, SolveTimeout, Unreachable
from kin_ros.client import Client, open_client
from kin_ros.messages import fill, find_type
from kin_ros.qos import LATCHED
from kin_ros.status import outcome_of
from kin_tools.check import Question, read_questions
from kin_tools.guard import die_with_parent
from kin_tools.launch import find_launch_file

__all__ = ["RunningStack", "running_stack"]


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

    def active(self, node: str) -> bool:
        """Whether a node says so; a short question, for one that goes to a dead node is lost."""
        try:
            return self.state(node, 2.0) == "active"
        except (SolveTimeout, Unreachable):
            return False

    def reset_controller(self) -> None:
        """Lead the controller out of a safe stop: a killed arm or a busy machine leads it there."""
        request = SetController.Request(reset=True)
        service = f"{self._controller}/set_controller"
        self.client.call(service, SetController, request, wait=60.0, timeout=60.0)

    @property
    def _controller(self) -> str:
        return next(name for name in self.names if name.endswith("/ft_controller"))

    def answer_everything(self, attempts: int = 10) -> None:
        """See that every node answers the questions of ``up --check`` with SUCCESS.

        Only the controller may need more than one attempt, and the monitor, which names it then.

        Raises:
            NotConverged: One of them does not.
        """
        for question in self.questions:
            if question.source == "lifecycle":
                continue
            kind = find_type(question.kind, "srv")
            request = fill(kind.Request(), question.request)
            for field, seconds in (("timeout", 100.0), ("wait", 5.0)):  # enough when it is busy
                if hasattr(request, field):
                    setattr(request, field, seconds)
            for _ in range(attempts):
                outcome = outcome_of(
                    self.client.call(question.service, kind, request, wait=60.0, timeout=120.0)
                )
                faulty = question.node == self._controller or self._controller in outcome.message
                if outcome.good or not faulty:
                    break
                self.reset_controller()
            if not outcome.good:
                raise NotConverged(f"{question.service}: {outcome.message}")

    def services(self) -> dict[str, str]:
        """Names and types of the services that the nodes offer on top of those of every node."""
        offered = self._graph(self.client.node.get_service_names_and_types_by_node)
        return {
            service: kind
            for service, kind, node in offered
            if kind.startswith("kin_interfaces/srv/")
            # kin_solvers answers these for whichever robot described itself last.
            or (kind.startswith("moveit_msgs/srv/") and node.rpartition("/")[2] == "hier_ik")
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
        return _stop(self.process)


@contextlib.contextmanager
def running_stack(
    log: Path,
    arguments: Mapping[str, str] | None = None,
    *,
    domain: int | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 240.0,
) -> Iterator[RunningStack]:
    """Launch the full stack, wait until it is ready, and end it after the block.

    Args:
        log: File for the output of all nodes.
        arguments: Arguments of the launch file.
        domain: ROS domain; None for one that nobody else on this machine uses.
        environment: Variables on top of this process's.
        timeout: Longest time until all nodes are active [s].

    Raises:
        NotConverged: The stack did not become ready.
    """
    given = dict(arguments or {})
    namespace = f"/{given['namespace']}" if given.get("namespace") else ""
    path, _ = find_launch_file(["kin_bringup", "full_stack.launch.xml"])
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
            # Killed with us, its supervisor ends all nodes.
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
        stack.callback(_stop, process)
        client = stack.enter_context(open_client("stack", domain=number))
        names = _wait_ready(process, client, f"{namespace}/stack_state", timeout, log)
        questions = read_questions(path.parent / "config" / "check", names)
        yield RunningStack(process, client, names, questions, log)


def _wait_ready(
    process: psutil.Popen, client: Client, topic: str, timeout: float, log: Path
) -> list[str]:
    """Wait until the monitor says that every expected node is active; their full names.

    A node that is active and reports a fault counts: the controller stops safely when it loses
    its arm, which on a busy machine happens.
    """
    heard: list[StackState] = []
    subscription = client.node.create_subscription(StackState, topic, heard.append, LATCHED)
    away = (NodeState.STARTING, NodeState.SILENT, NodeState.MISSING)

    def ready() -> bool:
        return bool(heard) and not any(n.expected and n.health in away for n in heard[-1].nodes)

    good = client.spin_until(ready, timeout, lambda: process.poll() is not None)
    client.node.destroy_subscription(subscription)
    if good:
        return [node.name for node in heard[-1].nodes if node.expected]
    sentence = heard[-1].message if heard else "the monitor said nothing"
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
    raise NotConverged(f"not ready: {sentence}\n{tail}")


def _stop(process: psutil.Popen) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        return int(process.wait(60.0))
    except psutil.TimeoutExpired:
        process.kill()
        return int(process.wait(30.0))
