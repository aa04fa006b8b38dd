"""The fault-tolerant controller: the arm, desired and actual, and a light for each processor."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import numpy as np
from kin_interfaces.msg import FtProcessor, FtStatus
from kin_interfaces.srv import InjectFault, MoveArm, SetController
from viser import uplot
from visualization_msgs.msg import MarkerArray

from kin_dashboard.panel import Panel, View, put
from kin_dashboard.style import BLUE, GOOD, IDLE, SERIES, WARN, WRONG, chips, notice, table

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
#: Where the tip goes to and fro [m], and how long the arm rests before it does [s].
_TURNS = ((0.45, 1.0), (0.95, 0.6))
_REST = 0.7


class _ControllerView(View):
    panel: ControllerPanel

    def __init__(self, panel: ControllerPanel, gui: Any) -> None:
        super().__init__(panel, gui)
        # At the top: who needs it must not look for it.
        self._stopped = gui.add_html("")
        self.reset = gui.add_button("Reset after a stop")
        self.reset.on_click(lambda _: panel.reset())
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
        self.swing = gui.add_checkbox("Keep the simulated arm moving", panel.swinging)
        self.swing.on_update(self._swung)
        self.goal = gui.add_vector2("Move to [m]", _TURNS[0], step=0.05)
        gui.add_button("Move the arm").on_click(lambda _: panel.move(*self.goal.value))

    def _chosen(self, event: Any) -> None:
        if event.client is not None:  # a person's choice, not our own update
            self.panel.choose(self.controller.value)

    def _swung(self, event: Any) -> None:
        if event.client is not None:
            self.panel.swinging = bool(self.swing.value)

    def update(self) -> None:
        super().update()
        panel, status = self.panel, self.panel.status
        if self.swing.value != panel.swinging:
            self.swing.value = panel.swinging
        if status is None:
            return
        halted = status.state in (FtStatus.STOPPED, FtStatus.RAMP)
        put(self._stopped, notice(_halt(status), WRONG) if halted else "")
        items = []
        for unit in status.processors:
            colour, word = _STATES.get(unit.state, (IDLE, "unknown"))
            if halted and not status.kept_up and unit.state == FtProcessor.WORKING:
                colour, word = IDLE, "stands by"  # no torque goes out, whatever it votes
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


class ControllerPanel(Panel):
    """Watches the vote, and lets a person break processors on purpose."""

    key = "Arm"
    title = "Fault-tolerant controller"
    about = "Computed torque, voted on by several processes. Break one: the arm must not notice."
    node_names = ("ft_controller", "arm_simulator")
    view_type = _ControllerView
    place = (0.0, 4.0, 0.0)
    scale = 1.0
    camera = ((0.3, -2.9, 1.1), (0.05, 0.0, 0.72))
    marker_offset = (-0.6, 0.0, 0.25)
    marker_turn = (0.70710678, 0.70710678, 0.0, 0.0)  # its plane is shown upright
    marker_bold = 1.4

    def connect(self) -> None:
        """Subscribe to the status and make the clients."""
        self.status: FtStatus | None = None
        self.history: deque[tuple[float, float]] = deque(maxlen=600)
        self._start = time.monotonic()
        self.swinging = True
        self._turn = 0
        self._tip: tuple[float, float] = (0.0, 0.0)
        self.still_since = math.inf
        self.hear("ft_controller", FtStatus, self._on_status)
        self._inject = self.node.ask_of(InjectFault, "ft_controller/inject_fault")
        self._set = self.node.ask_of(SetController, "ft_controller/set_controller")
        self._move = self.node.ask_of(MoveArm, "ft_controller/move_arm")

    def _on_status(self, message: FtStatus) -> None:
        self.status = message
        if len(message.error):
            worst = float(np.max(np.abs(np.frombuffer(message.error))))
            self.history.append((time.monotonic() - self._start, worst))

    def saw_markers(self, message: MarkerArray) -> None:
        """Notice when the arm has come to rest."""
        for marker in message.markers:
            if marker.ns == "desired" and marker.points:
                tip = (marker.points[-1].x, marker.points[-1].y)
                if math.dist(tip, self._tip) > 1e-5:
                    self._tip, self.still_since = tip, time.monotonic()

    def draw(self) -> None:
        """Draw the arm (blue) and where it should be (orange); keep a simulated one moving."""
        super().draw()
        resting = time.monotonic() - self.still_since > _REST
        if self.swinging and resting and "arm_simulator" in self.there:
            self.still_since = time.monotonic()
            self._turn = (self._turn + 1) % len(_TURNS)
            x, y = _TURNS[self._turn]
            self.ask(self._move, MoveArm.Request(x=x, y=y, duration=2.5), quiet=True)

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
        """Move the end effector in a straight line, and leave it there."""
        self.swinging = False
        self.ask(self._move, MoveArm.Request(x=x, y=y))


def _halt(status: FtStatus) -> str:
    """A sentence for an arm that is not driven."""
    word = "ramps down" if status.state == FtStatus.RAMP else "is stopped"
    if status.kept_up and status.state == FtStatus.RAMP:
        word = "is brought to rest"
    return f"The arm {word}: {status.reason or 'no reason given'}. Reset to drive it again."


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
