"""The continuum robot: bending rods, a handle to drag its platform, and how far the fold is."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from kin_dashboard.handle import DragHandle
from kin_dashboard.panel import Panel, View, put
from kin_dashboard.style import BLUE, WARN, WRONG, bar, chosen, table

__all__ = ["ContinuumPanel"]

#: The colours of the node's rods, for the key beside them, and the curvature of the last [1/m].
_RAMP = ("#440154", "#3b528b", "#218f8d", "#5ec962", "#fde725")
_MOST_CURVED = 4


class _ContinuumView(View):
    panel: ContinuumPanel

    def __init__(self, panel: ContinuumPanel, gui: Any) -> None:
        super().__init__(panel, gui)
        gui.add_html(_KEY)
        self._most = 0.0
        self._margin = gui.add_html("")
        self._lengths = gui.add_html("")
        self.x = gui.add_slider("x [m]", -0.3, 0.3, 0.005, 0.0)
        self.y = gui.add_slider("y [m]", -0.3, 0.3, 0.005, 0.0)
        self.z = gui.add_slider("z [m]", 0.2, 0.6, 0.005, 0.4)
        for slider in (self.x, self.y, self.z):
            slider.on_update(self._slid)
        self._figures = gui.add_html("")

    def _slid(self, event: Any) -> None:
        if event.client is not None:
            aim = (self.x.value, self.y.value, self.z.value)
            self.panel.node.post(lambda: self.panel.aim(aim, (1.0, 0.0, 0.0, 0.0)))

    def update(self) -> None:
        super().update()
        panel = self.panel
        figures = panel.node.diagnosis("continuum_ik")
        rows = [(f"Leg {i + 1}", f"{1e3 * v:.2f} mm") for i, v in enumerate(panel.lengths[:6])]
        if "fold margin" in figures:
            margin = float(figures["fold margin"])
            self._most = max(self._most, margin)
            put(self._margin, _margin_html(margin, self._most))
        put(self._lengths, table(rows, "Lengths") if rows else "")
        rows = chosen(
            figures,
            ("solved rate [Hz]", "Solves per second"),
            ("solve p50 [ms]", "Time of a solve, p50 [ms]"),
            ("solve p99 [ms]", "Time of a solve, p99 [ms]"),
            ("largest curvature [1/m]", "Largest curvature [1/m]"),
            ("residual", "Residual"),
            ("targets refused total", "Targets refused"),
        )
        put(self._figures, table(rows))


class ContinuumPanel(Panel):
    """Draws the rods by curvature and sends targets where the handle is dragged."""

    key = "Rods"
    title = "Continuum Stewart-Gough robot"
    about = "Drag the handle: six elastic rods are solved for each pose. Colour shows curvature."
    node_names = ("continuum_ik",)
    view_type = _ContinuumView
    place = (-3.8, 4.0, 0.0)
    scale = 3.6
    camera = ((1.4, -3.4, 1.7), (0.0, 0.0, 0.95))
    marker_bold = 1.3

    def connect(self) -> None:
        """Subscribe to the lengths and the platform, and make the handle."""
        self.lengths = np.zeros(0)
        self.pose: PoseStamped | None = None
        self.home: tuple[float, float, float] | None = None
        self._target = self.tell("continuum_ik", PoseStamped)
        self.hear("continuum_ik", JointState, self._on_lengths)
        self.hear("continuum_ik", PoseStamped, self._on_platform)
        self.handle = DragHandle(
            self.scene,
            f"{self.root}/handle",
            self.node.post,
            lambda position, wxyz: self.aim(position / self.scale, wxyz),
        )

    def _on_lengths(self, message: JointState) -> None:
        self.lengths = np.array(message.position)

    def _on_platform(self, message: PoseStamped) -> None:
        self.pose = message

    def aim(self, position: Any, wxyz: Any) -> None:
        """Publish a target for the platform."""
        message = PoseStamped()
        message.header.stamp = self.node.get_clock().now().to_msg()
        message.header.frame_id = self.pose.header.frame_id if self.pose else "base"
        where, turn = message.pose.position, message.pose.orientation
        where.x, where.y, where.z = (float(v) for v in position)
        turn.w, turn.x, turn.y, turn.z = (float(v) for v in wxyz)
        self._target.publish(message)

    def saw_markers(self, message: MarkerArray) -> None:
        """Learn where the platform is before it has been sent anywhere."""
        for marker in message.markers:
            if marker.ns == "platform" and marker.points and self.pose is None:
                corners = [(p.x, p.y, p.z) for p in marker.points]
                x, y, z = np.mean(corners[:-1] or corners, axis=0).tolist()
                self.home = (x, y, z)

    def draw(self) -> None:
        """Draw the rods; the handle follows the platform unless it is held."""
        super().draw()
        if self.pose is not None:
            where, turn = self.pose.pose.position, self.pose.pose.orientation
            position = np.array([where.x, where.y, where.z])
            self.handle.follow(self.scale * position, np.array([turn.w, turn.x, turn.y, turn.z]))
        elif self.home is not None:
            self.handle.follow(self.scale * np.array(self.home), np.array([1.0, 0.0, 0.0, 0.0]))


#: What the colours mean.
_KEY = (
    '<div style="display:flex;gap:.5em;align-items:center;padding:.1em .6em;font-size:.82em">'
    '<span>curvature 0</span><span aria-hidden="true" style="flex:1;height:.6em;'
    f'border-radius:.3em;background:linear-gradient(90deg,{",".join(_RAMP)})"></span>'
    f"<span>{_MOST_CURVED} 1/m</span></div>"
)


def _margin_html(margin: float, most: float) -> str:
    """The margin to the fold as a bar beside the largest one seen, which warns when it is small."""
    share = margin / most if most > 0.0 else 0.0
    colour = BLUE if share > 0.3 else WARN if share > 0.1 else WRONG
    return bar(share, f"margin to the fold {margin:.4f}", colour)
