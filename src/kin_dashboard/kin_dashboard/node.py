"""The dashboard's node: parameters, the stack's state, and the clock that redraws."""

from __future__ import annotations

import contextlib
import errno
import math
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from kin_interfaces.msg import NodeState, StackState
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile

from kin_core.errors import KinError
from kin_core.texts import shortened
from kin_dashboard.access import Access
from kin_dashboard.continuum import ContinuumPanel
from kin_dashboard.controller import ControllerPanel
from kin_dashboard.cuik import CuikPanel
from kin_dashboard.delta import DeltaPanel
from kin_dashboard.page import OVERVIEW, Page, Session
from kin_dashboard.panel import Panel, Topics
from kin_dashboard.parameters import DashboardParameters
from kin_dashboard.stack import diagnostics_html, state_html, summary_html
from kin_dashboard.style import IDLE, WARN, WRONG
from kin_dashboard.tower import TowerPanel
from kin_ros.failures import Guarded
from kin_ros.node import KinNode, run
from kin_ros.qos import LATCHED, profile

__all__ = ["Dashboard", "free_port", "main"]

PANELS: tuple[type[Panel], ...] = (
    CuikPanel,
    ControllerPanel,
    DeltaPanel,
    ContinuumPanel,
    TowerPanel,
)
#: How often the graph is looked at while no page is open [s].
_IDLE_PAUSE = 10.0


class Dashboard(KinNode[DashboardParameters]):
    """Serves the page; talks to the systems as any client would."""

    def __init__(self, **node_arguments: Any) -> None:
        """Make the node; the page opens when it is configured."""
        super().__init__("dashboard", DashboardParameters, **node_arguments)
        self.page: Page | None = None
        self.panels: list[Panel] = []
        self._stack: StackState | None = None
        self._stack_seen = 0.0
        self.diagnoses: dict[str, tuple[float, DiagnosticStatus]] = {}
        self._drawings: list[Guarded] = []
        self.looked = -_IDLE_PAUSE
        self._shown: set[str] = set()

    # Lifecycle ---------------------------------------------------------------------------------

    def configure(self) -> None:
        """Open the page and subscribe."""
        now = self.parameters
        port = free_port(now.host, now.port)
        if now.port not in (0, port):
            self.get_logger().warning(f"port {now.port} is taken; the dashboard uses {port}")
        access = Access(now.host, now.allowed_hosts)
        self.page = Page(now.host, port, "kinstack", access, self._refused)
        self.listen(StackState, "stack_state", self._on_stack, LATCHED)
        self.listen(DiagnosticArray, "/diagnostics", self._on_diagnostics)
        self.panels = [kind(self, self.page.server.scene) for kind in PANELS]
        self._drawings = [self.guard(f"panel {p.key}", p.draw) for p in self.panels]
        self._updating = self.guard("page", lambda session: session.update())
        for panel in self.panels:
            panel.connect()
        self.page.open_to(
            lambda client: Session(client, self.panels, self.header),
            lambda action: self.guard(f"page {action.__name__}", action, lasts=30.0),
        )
        self.every(1.0 / now.rate, self._refresh, steady=True)

    def activate(self) -> None:
        """Say where the page is."""
        assert self.page is not None  # noqa: S101
        self.get_logger().info(f"dashboard: {self.page.address}")
        self.diagnostics.value("url", self.page.address)  # `up` prints what is named url

    def cleanup(self) -> None:
        """Close the page."""
        if self.page is not None:
            self.page.stop()
            self.page = None
        self.panels = []

    # For the panels ----------------------------------------------------------------------------

    def post(self, action: Callable[[], None]) -> None:
        """Run something on the executor; browsers' threads must not touch ROS themselves."""
        executor = self.executor
        if executor is not None:
            executor.create_task(lambda: self._guard("a button", action))

    def ask_of(self, service: type, name: str) -> Any:
        """Make a client that goes with the node's other resources."""
        client = self.create_client(service, name, callback_group=self.reentrant_group)
        self._releases.append(lambda: self.destroy_client(client))
        return client

    def act_on(self, action: type, name: str) -> ActionClient:
        """Make an action client that goes with the node's other resources."""
        client = ActionClient(self, action, name, callback_group=self.reentrant_group)
        self._releases.append(client.destroy)
        return client

    def attend(
        self, message: type, topic: str, callback: Callable[[Any], None]
    ) -> Callable[[], None]:
        """Listen to a topic until the function that this returns is called."""
        self.listen(message, topic, callback, self.fitting_qos(topic))
        release = self._releases[-1]

        def stop() -> None:
            self._releases.remove(release)
            release()

        return stop

    def fitting_qos(self, topic: str) -> QoSProfile:
        """The QoS that hears a topic's publishers, latched ones from their last message on."""
        offered = self.get_publishers_info_by_topic(topic)
        latched = bool(offered) and all(
            info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for info in offered
        )
        return profile(2, reliable=latched, latched=latched)

    def diagnosis(self, node: str) -> dict[str, str]:
        """The last diagnostics of a node as keys and values; empty if there are none."""
        status = self._last_status(node)
        return {} if status is None else {item.key: item.value for item in status.values}

    def complaint(self, node: str) -> tuple[str, str]:
        """What a node's diagnostics warn of, such as a refused target, and its colour."""
        status = self._last_status(node)
        if status is None or status.level == DiagnosticStatus.OK:
            return "", IDLE
        colour = WARN if status.level == DiagnosticStatus.WARN else WRONG
        return shortened(f"{node}: {status.message}", 300), colour

    # Inside ------------------------------------------------------------------------------------

    def _last_status(self, node: str) -> DiagnosticStatus | None:
        """The last diagnostics of a node, unless they are old."""
        seen, status = self.diagnoses.get(node, (-math.inf, None))
        return status if time.monotonic() - seen <= 5.0 else None

    def _refused(self, why: str) -> None:
        """Somebody who may not use the page asked for it; called in the server's thread."""
        self.diagnostics.count("requests refused")
        self.get_logger().warning(f"refused: {why}", throttle_duration_sec=1.0)

    def _on_stack(self, message: StackState) -> None:
        self._stack = message
        self._stack_seen = time.monotonic()

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        for status in message.status[:200]:
            space, _, name = status.name.split(":")[0].rpartition("/")
            if (space or "/") == self.get_namespace():
                self.diagnoses[name] = (now, status)

    def _refresh(self) -> None:
        assert self.page is not None  # noqa: S101
        sessions = self.page.sessions
        shown = {session.shown for session in sessions}
        self._look_at_graph(shown, bool(sessions) or self.parameters.eager)
        if not sessions:
            return
        start = time.monotonic()
        # Each by itself: one that fails is shown as failing, and neither stops nor hides the rest.
        for panel, drawing in zip(self.panels, self._drawings, strict=True):
            if shown & {panel.key, OVERVIEW}:
                drawing()
        for session in sessions:
            self._updating(session)
        self.diagnostics.time("redraw", time.monotonic() - start)
        self.diagnostics.value("pages", len(sessions))

    def _look_at_graph(self, shown: set[str], wanted: bool) -> None:
        """Notice which systems are there, and listen to those that somebody looks at.

        Asked once in a second, at once when a page opens or changes, and hardly ever while nobody
        looks: most of what the dashboard costs is what it hears.
        """
        now = time.monotonic()
        pause = 1.0 if wanted else _IDLE_PAUSE
        if shown == self._shown and now - self.looked < pause:
            return
        self.looked, self._shown = now, shown
        here = self.get_namespace()
        names = {name for name, space in self.get_node_names_and_namespaces() if space == here}
        for panel in self.panels:
            panel.there = names.intersection(panel.node_names)
            panel.present = panel.node_names[0] in names
            if not (self.parameters.eager or shown & {panel.key, OVERVIEW}):
                panel.rest()
                continue
            published: Topics = {}
            subscribed: Topics = {}
            for name in panel.there:
                # The node may leave between two questions.
                with contextlib.suppress(Exception):
                    published[name] = self.get_publisher_names_and_types_by_node(name, here)
                    subscribed[name] = self.get_subscriber_names_and_types_by_node(name, here)
            self._guard(f"topics of {panel.key}", partial(panel.find_topics, published, subscribed))

    def header(self) -> tuple[str, str]:
        """State of the nodes and summary of their diagnostics, as HTML."""
        fresh = time.monotonic() - self._stack_seen < 5.0
        states: list[NodeState] = list(self._stack.nodes) if self._stack and fresh else []
        absent = [panel.node_names[0] for panel in self.panels if not panel.present]
        now = time.monotonic()
        diagnoses = {
            name: status for name, (seen, status) in self.diagnoses.items() if now - seen < 30.0
        }
        message = self._stack.message if self._stack and fresh else ""
        state = state_html(message, states, absent) + summary_html(diagnoses)
        return state, diagnostics_html(diagnoses)


def free_port(host: str, wanted: int) -> int:
    """Return ``wanted`` if it can be listened on, otherwise any port that can.

    Raises:
        KinError: The address is not one of this machine's.
    """
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE and port != 0:
                    continue
                raise KinError(
                    f"the dashboard cannot listen on {host}:{port}: {error.strerror}"
                ) from error
            return int(probe.getsockname()[1])
    raise KinError(f"the dashboard finds no free port on {host}")


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(Dashboard, args)
