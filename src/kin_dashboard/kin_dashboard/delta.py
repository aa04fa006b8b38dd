"""Delta robots: the moving fleet, how many robots are solved in a second, and by what."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from kin_interfaces.msg import DeltaBatch
from kin_interfaces.srv import SolveDelta

from kin_dashboard.panel import Panel, View, put
from kin_dashboard.style import chosen, table
from kin_ros.arrays import to_field

__all__ = ["DeltaPanel"]

#: How long an answer is waited for before another batch may be asked for [s].
_PATIENCE = 5.0
_SIZES = ("1 000", "10 000", "100 000", "300 000")


class _DeltaView(View):
    panel: DeltaPanel

    def __init__(self, panel: DeltaPanel, gui: Any) -> None:
        super().__init__(panel, gui)
        self._figures = gui.add_html("")
        self.size = gui.add_dropdown("Robots in a batch", list(_SIZES), initial_value=_SIZES[2])
        self.button = gui.add_button("Solve a batch")
        self.button.on_click(lambda _: panel.solve(int(self.size.value.replace(" ", ""))))
        self._answer = gui.add_html("")

    def update(self) -> None:
        super().update()
        panel = self.panel
        told = panel.node.diagnosis("gpu_kinematics")
        rows = chosen(
            told,
            ("backend", "Backend"),
            ("fleet", "Robots in the fleet"),
            ("robots rate [Hz]", "Robots solved per second"),
            ("robots_per_second", "Throughput of the last batch [1/s]"),
            ("fleet p50 [ms]", "Time of the fleet, p50 [ms]"),
            ("fleet p99 [ms]", "Time of the fleet, p99 [ms]"),
        )
        put(self._figures, table(rows))
        if panel.last is not None:
            count, failed, inside, outside, backend = panel.last
            html = table(
                [
                    ("Robots", f"{count:,}".replace(",", " ")),
                    ("Unreachable", str(failed)),
                    ("Time in the node", f"{1e3 * inside:.2f} ms"),
                    ("Round trip with transport", f"{1e3 * outside:.1f} ms"),
                    ("Throughput in the node", f"{count / max(inside, 1e-9) / 1e6:.1f} million/s"),
                    ("Backend", backend),
                ],
                "Last batch",
            )
            put(self._answer, html)


class DeltaPanel(Panel):
    """Shows the fleet of the demo and solves batches on request."""

    key = "Delta"
    title = "Delta robots"
    about = "A fleet on pick-and-place cycles: every robot of it solved in one batch per tick."
    node_names = ("gpu_kinematics",)
    view_type = _DeltaView
    place = (1.95, 0.0, 0.0)
    camera = ((1.2, -2.9, 1.9), (0.0, 0.0, 0.25))
    marker_offset = (0.0, 0.0, 0.35)
    marker_reach = 1.6
    marker_bold = 1.5

    def connect(self) -> None:
        """Make the client."""
        self._solve = self.node.ask_of(SolveDelta, "gpu_kinematics/solve_delta")
        self.last: tuple[int, int, float, float, str] | None = None
        self._busy_until = 0.0

    def solve(self, count: int) -> None:
        """Have the node solve the forward kinematics of random robots, all in one request."""
        if time.monotonic() < self._busy_until:
            return
        angles = np.random.default_rng(count).uniform(-0.3, 0.9, 3 * count)
        request = SolveDelta.Request(operation=SolveDelta.Request.FORWARD, count=count)
        request.layout = DeltaBatch.SOA
        request.data = to_field(angles, "float64")
        start = time.monotonic()
        self._busy_until = start + _PATIENCE

        def answered(response: Any) -> None:
            self._busy_until = 0.0
            if response.count:
                self.last = (
                    response.count,
                    response.failed,
                    response.status.solve_time,
                    time.monotonic() - start,
                    response.backend,
                )

        self.ask(self._solve, request, answered)
