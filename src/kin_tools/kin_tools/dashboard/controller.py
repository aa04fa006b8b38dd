"""The fault-tolerant controller: the arm, desired and actual, and a light for each processor."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from kin_interfaces.msg import FtProcessor, FtStatus
from kin_interfaces.srv import InjectFault, MoveArm, SetController
from sensor_msgs.msg import JointState
from viser import uplot
from visualization_msgs.msg import Marker, MarkerArray

from kin_tools.dashboard.panel import Panel, View, put
from kin_tools.dashboard.style import BLUE, GOOD, IDLE, SERIES, WARN, WRONG, chips, table

__all__ = ["ControllerPanel"]

_STATES = {
    FtProcessor.STARTING: (WARN, "starting"),
    FtProcessor.WORKING: (GOOD, "votes"),
    FtProcessor.EXCLUDED: (WRONG, "voted out"),
    FtProcessor.SUSPECT: (WARN, "suspect"),
    FtProcessor.DEAD: (WRONG, "dead"),
}
_MODES = {
    FtStatus.IDLE: (IDLE, "idle"),
    FtStatus.RUN: (GOOD, "running"),
    FtStatus.HOLD: (WARN, "holding"),
    FtStatus.RAMP: (WARN, "ramping down"),
    FtStatus.STOPPED: (WRONG, "stopped"),
}
#: Words on the buttons, and the faults they are.
_FAULTS = {"Kill": "sigkill", "Stop": "sigstop", "Corrupt": "wrong_element", "Heal": "clear"}
#: Length of the strip chart [s].
_SPAN = 30.0


class ControllerPanel(Panel):
    """Watches the vote, and lets a person break processors on purpose."""

    key = "Arm"
    title = "Fault-tolerant controller"
    about = "Computed torque, voted on by several processes. Break one: the arm must not notice."
    node_names = ("ft_controller", "arm_simulator")
    place = (-4.0, 0.0, 0.9)
    scale = 0.6
    camera = ((0.0, -4.2, 1.6), (0.0, 0.0, 0.0))

    def connect(self) -> None:
        """Subscribe to the status and the joints."""
        self.status: FtStatus | None = None
        self.history: deque[tuple[float, float]] = deque(maxlen=600)
        self._joints: dict[str, float] = {}
        self._lengths = np.zeros(0)
        self._ghost: Any = None
        self._start = time.monotonic()
        self.hear("ft_controller", FtStatus, self._on_status)
        self.hear("arm_simulator", JointState, self._on_joints)
        self._inject = self.client(InjectFault, "ft_controller/inject_fault")
        self._set = self.client(SetController, "ft_controller/set_controller")
        self._move = self.client(MoveArm, "ft_controller/move_arm")

    def _on_status(self, message: FtStatus) -> None:
        self.status = message
        if len(message.error):
            worst = float(np.max(np.abs(np.frombuffer(message.error))))
            self.history.append((time.monotonic() - self._start, worst))

    def _on_joints(self, message: JointState) -> None:
        if self.status is not None and set(self.status.joints) <= set(message.name):
            self._joints = dict(zip(message.name, message.position, strict=False))

    def saw_markers(self, message: MarkerArray) -> None:
        """Learn the lengths of the links from the drawn arm."""
        for marker in message.markers:
            if marker.type == Marker.LINE_STRIP and len(marker.points) > 2:
                points = np.array([(p.x, p.y, p.z) for p in marker.points])
                self._lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
                return

    def draw(self) -> None:
        """Draw the arm from its markers, and where it should be."""
        self.draw_markers()
        status = self.status
        if status is None or not self._joints or len(self._lengths) != len(status.joints):
            return
        angles = np.array([self._joints[name] for name in status.joints])
        wanted = np.cumsum(angles + np.frombuffer(status.error))
        steps = self._lengths[:, None] * np.stack([np.cos(wanted), np.sin(wanted)], axis=1)
        points = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
        points = np.column_stack([points, np.full(len(points), -0.02)])
        points *= self.scale
        segments = np.stack([points[:-1], points[1:]], axis=1)
        if self._ghost is None:
            self._ghost = self.scene.add_line_segments(
                f"{self.root}/desired", segments, (230, 159, 0), thickness=0.02
            )
        else:
            self._ghost.points = segments

    def inject(self, word: str, processor: int) -> None:
        """Break one processor, or heal all."""
        kind = _FAULTS[word]
        request = InjectFault.Request(kind=kind, element=-1, magnitude=0.5 * (word == "Corrupt"))
        if kind != "clear":
            request.processors = [processor]
        self.ask(self._inject, request)

    def reset(self) -> None:
        """Leave a safe stop."""
        self.ask(self._set, SetController.Request(reset=True))

    def choose(self, controller: str) -> None:
        """Change the controller while it runs."""
        self.ask(self._set, SetController.Request(controller=controller))

    def move(self, x: float, y: float) -> None:
        """Move the end effector in a straight line."""
        self.ask(self._move, MoveArm.Request(x=x, y=y))

    def view(self, gui: Any) -> View:
        """Make the widgets."""
        return _ControllerView(self, gui)


class _ControllerView(View):
    def __init__(self, panel: ControllerPanel, gui: Any) -> None:
        self._panel = panel
        self._notice = gui.add_html("")
        self._lights = gui.add_html("")
        self.processor = gui.add_dropdown("Processor", [str(i) for i in range(4)])
        self._count = 4
        self.buttons = gui.add_button_group("Fault", list(_FAULTS))
        self.buttons.on_click(
            lambda event: panel.inject(event.target.value, int(self.processor.value))
        )
        self._chart = gui.add_uplot(
            data=(np.array([0.0, 1.0]), np.array([0.0, 0.0])),
            series=(
                uplot.Series(label="t [s]"),
                uplot.Series(label="error [rad]", stroke=BLUE, width=2, points={"show": False}),
            ),
            scales={"x": uplot.Scale(time=False), "y": uplot.Scale(auto=True)},
            title="Largest tracking error [rad]",
            height=150,
            legend=uplot.Legend(show=False),
        )
        self._figures = gui.add_html("")
        self.controller = gui.add_dropdown(
            "Controller",
            ["serial", "parallel", "high_tolerance", "lower_tolerance", "echo"],
            initial_value="echo",
        )
        self.controller.on_update(self._chosen)
        self.goal = gui.add_vector2("Move to [m]", (0.0, 0.0), step=0.05)
        gui.add_button("Move the arm").on_click(lambda _: panel.move(*self.goal.value))
        gui.add_button("Reset after a stop").on_click(lambda _: panel.reset())

    def _chosen(self, event: Any) -> None:
        if event.client is not None:  # a person's choice, not our own update
            self._panel.choose(self.controller.value)

    def update(self) -> None:
        panel, status = self._panel, self._panel.status
        put(self._notice, panel.notice())
        if status is None:
            return
        items = []
        for unit in status.processors:
            colour, word = _STATES.get(unit.state, (IDLE, "unknown"))
            items.append((f"{unit.id}: {word}", colour, _vote(unit, len(status.processors))))
        put(self._lights, chips(items) + _votes(status))
        if len(status.processors) != self._count and status.processors:
            self._count = len(status.processors)
            self.processor.options = [str(unit.id) for unit in status.processors]
        if len(panel.history) > 1:
            times, errors = np.array(panel.history).T
            recent = times > times[-1] - _SPAN
            self._chart.data = (times[recent], errors[recent])
        colour, word = _MODES.get(status.state, (IDLE, "unknown"))
        rows = [
            ("State", word + (f": {status.reason}" if status.reason else "")),
            ("Controller", status.controller),
            ("Agreeing", f"{status.agreeing} of {len(status.processors)}, quorum {status.quorum}"),
            (
                "Vote, p99",
                f"{1e6 * status.vote_time:.0f} \u00b5s, {1e6 * status.vote_time_p99:.0f} \u00b5s",
            ),
            ("Voted out so far", str(status.exclusions)),
            ("Ticks held", str(status.held_ticks)),
        ]
        if panel.history:
            rows.insert(2, ("Tracking error", f"{panel.history[-1][1]:.2e} rad"))
        put(self._figures, table(rows))


def _vote(unit: FtProcessor, count: int) -> str:
    allowed = [str(i) for i in range(count) if unit.suggestion >> i & 1]
    said = unit.detail or "nothing wrong seen"
    return f"process {unit.pid}: {said}; suggests {', '.join(allowed) or 'nobody'}"


def _votes(status: FtStatus) -> str:
    """Who suggests whom: one row per voter, a filled square for each processor it trusts."""
    rows = []
    count = len(status.processors)
    for unit in status.processors:
        cells = "".join(
            f'<span style="display:inline-block;width:.8em;height:.8em;margin-right:.15em;'
            f"border-radius:.15em;border:1px solid {SERIES[0]};background:"
            f'{SERIES[0] if unit.suggestion >> i & 1 else "transparent"}"></span>'
            for i in range(count)
        )
        against = f"{unit.votes_against} against it" if unit.votes_against else ""
        rows.append(
            f'<tr><td style="padding-right:.6em">{unit.id} votes for</td><td>{cells}</td>'
            f'<td style="padding-left:.6em">{against}</td></tr>'
        )
    style = "font-size:.76em;margin:0 .6em .2em"
    return f'<table style="{style}" aria-label="votes">{"".join(rows)}</table>'
