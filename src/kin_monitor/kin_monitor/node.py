"""The stack monitor: one message that says how all nodes are, and a readiness service."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from kin_interfaces.msg import NodeState, StackState
from kin_interfaces.srv import CheckReady

from kin_core.errors import NotConverged
from kin_core.task import Task
from kin_monitor.graph_watch import GraphWatch, resolve_name
from kin_monitor.health import Health, StackView
from kin_monitor.parameters import MonitorParameters
from kin_ros.node import KinNode, run
from kin_ros.qos import LATCHED, STATE

__all__ = ["StackMonitor", "main"]

#: The state is published at least this often [s].
_HEARTBEAT = 1.0
#: Least time between two lines of the log about the whole stack [s].
_CALM = 5.0


class StackMonitor(KinNode[MonitorParameters]):
    """Watches the nodes in its namespace."""

    def __init__(self, **node_arguments: Any) -> None:
        """Declare the parameters."""
        super().__init__("stack_monitor", MonitorParameters, **node_arguments)
        self._looked = threading.Condition()
        self._view = StackView((), False, "not looked yet")
        self._published: tuple[object, ...] = ()
        self._published_at = 0.0
        self.looks = 0
        self._logged: bool | None = None
        self._logged_at = -_CALM

    def configure(self) -> None:
        """Make the watch, the topic and the service."""
        now = self.parameters
        self.watch = GraphWatch(self, self.get_namespace(), now.expected, now.silence)
        self._state = self.publish_to(StackState, "stack_state", LATCHED)
        self.listen(DiagnosticArray, "/diagnostics", self.watch.heard, STATE)
        self.every(now.period, self._look, steady=True)
        self.serve(CheckReady, "~/check_ready", self._check_ready)

    def activate(self) -> None:
        """Publish at once when the first look is done."""
        self._published = ()

    def cleanup(self) -> None:
        """Release the clients, and the state file."""
        self.watch.close()
        self._forget_state()

    def _look(self) -> None:
        view = self.watch.poll()
        with self._looked:
            self._view = view
            self.looks += 1
            self._looked.notify_all()
        self.diagnostics.value("nodes", float(len(view.nodes)))
        self.diagnostics.value("stack", view.message)
        self._log_change(view)
        essence = tuple((n.name, n.health, n.lifecycle, n.level, n.restarts) for n in view.nodes)
        now = time.monotonic()
        if essence != self._published or now - self._published_at >= _HEARTBEAT:
            self._published, self._published_at = essence, now
            self._state.publish(self._message(view))
            self._write_state(view)

    def _write_state(self, view: StackView) -> None:
        """Say in the state file, if there is one, how the stack is; readers see whole lines."""
        file = Path(self.parameters.state_file)
        if not file.name:
            return
        draft = file.with_name(f"{file.name}.new")
        try:
            words = " ".join(view.message.split())
            draft.write_text(f"{'ready' if view.ready else 'not ready'}: {words}\n")
            draft.replace(file)
        except OSError as error:
            self.get_logger().error(
                f"{file} cannot be written: {error.strerror}", throttle_duration_sec=60.0
            )

    def _forget_state(self) -> None:
        """Leave no state file that nobody keeps up to date."""
        if self.parameters.state_file:
            Path(self.parameters.state_file).unlink(missing_ok=True)

    def _log_change(self, view: StackView) -> None:
        """Log when the stack becomes ready or is so no more, not each step on the way."""
        now = time.monotonic()
        if view.ready == self._logged or now - self._logged_at < _CALM:
            return
        if view.ready:
            self.get_logger().info(view.message)
        elif self._logged is not None:
            self.get_logger().warning(view.message)
        self._logged, self._logged_at = view.ready, now

    def _message(self, view: StackView) -> StackState:
        return StackState(
            stamp=self.get_clock().now().to_msg(),
            scope=self.get_namespace(),
            ready=view.ready,
            message=view.message,
            nodes=[
                NodeState(
                    name=node.name,
                    health=int(node.health),
                    expected=node.expected,
                    lifecycle=node.lifecycle,
                    diagnostic_level=node.level,
                    silent_for=node.silent_for,
                    restarts=node.restarts,
                    message=f"{node.name} {node.message}",
                )
                for node in view.nodes
            ],
        )

    def _check_ready(self, request: CheckReady.Request, task: Task) -> CheckReady.Response:
        names = [resolve_name(name, self.get_namespace()) for name in request.nodes]
        deadline = time.monotonic() + request.wait
        with self._looked:
            # The answer rests on a look that began after the request came in.
            enough = self.looks + 2
            while True:
                fresh = self.looks >= enough
                response = self._readiness(self._view, names)
                late = time.monotonic() >= deadline
                if fresh and (response.ready or late):
                    break
                self._looked.wait(0.1)
                task.check()
        if not response.ready:
            error = NotConverged(response.status.message)
            response.status.code = int(error.code)
        return response

    def _readiness(self, view: StackView, names: list[str]) -> CheckReady.Response:
        view = view.among(names) if names else view
        response = CheckReady.Response(ready=view.ready)
        response.missing = view.names(Health.MISSING)
        response.unhealthy = view.names(Health.UNHEALTHY)
        response.silent = view.names(Health.SILENT)
        response.starting = view.names(Health.STARTING)
        response.status.message = view.message
        return response


def main(args: list[str] | None = None) -> int:
    """Run the stack monitor."""
    return run(StackMonitor, args)


if __name__ == "__main__":
    raise SystemExit(main())
