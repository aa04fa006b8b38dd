"""The continuum robot: bending rods, a handle to drag its platform, and how far the fold is."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from kin_tools.dashboard.panel import Panel, View, put
from kin_tools.dashboard.style import BLUE, WARN, WRONG, bar, table

__all__ = ["ContinuumPanel", "curvature"]

#: Curvature that is shown in the last colour [1/m].
_MOST_CURVED = 8.0
#: Dark blue, green, yellow: grows in lightness, so it reads without colour too (viridis).
_RAMP = np.array(
    [[0.267, 0.005, 0.329], [0.230, 0.322, 0.546], [0.128, 0.567, 0.551], [0.369, 0.789, 0.383],
     [0.993, 0.906, 0.144]]
)  # fmt: skip


def curvature(points: np.ndarray) -> np.ndarray:
    """Curvature of a polyline at each of its points [1/m]; the ends take their neighbour's.

    Args:
        points: Shape (n, 3) [m].
    """
    if len(points) < 3:
        return np.zeros(len(points))
    a, b = points[1:-1] - points[:-2], points[2:] - points[1:-1]
    c = points[2:] - points[:-2]
    # Of the circle through three points: four times the area over the product of the sides.
    area = np.linalg.norm(np.cross(a, b), axis=1)
    sides = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) * np.linalg.norm(c, axis=1)
    inner = np.divide(2.0 * area, sides, out=np.zeros(len(area)), where=sides > 1e-12)
    return np.concatenate([inner[:1], inner, inner[-1:]])


class ContinuumPanel(Panel):
    """Draws the rods by curvature and sends targets where the handle is dragged."""

    key = "Rods"
    title = "Continuum Stewart-Gough robot"
    about = "Drag the handle: six elastic rods are solved for each pose. Colour shows curvature."
    node_names = ("continuum_ik",)
    place = (4.0, 0.0, 0.0)
    scale = 3.0
    camera = ((2.2, -3.0, 2.3), (0.0, 0.0, 0.9))

    def connect(self) -> None:
        """Subscribe to the lengths and the platform, and make the handle."""
        self.lengths = np.zeros(0)
        self.pose: PoseStamped | None = None
        self.highest = 0.0
        self.dragged = False
        self._target = self.tell("continuum_ik", PoseStamped)
        self.hear("continuum_ik", JointState, self._on_lengths)
        self.hear("continuum_ik", PoseStamped, self._on_platform)
        self.handle = self.scene.add_transform_controls(
            f"{self.root}/handle", scale=0.5, line_width=3.0, visible=False, depth_test=False
        )
        self.handle.on_drag_start(lambda _: self._grab(True))
        self.handle.on_drag_end(lambda _: self._grab(False))
        self.handle.on_update(lambda _: self._moved())

    def _on_lengths(self, message: JointState) -> None:
        self.lengths = np.array(message.position)

    def _on_platform(self, message: PoseStamped) -> None:
        self.pose = message

    def _grab(self, held: bool) -> None:
        self.dragged = held

    def _moved(self) -> None:
        position, wxyz = self.handle.position / self.scale, self.handle.wxyz
        self.node.post(lambda: self.aim(position, wxyz))

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
        """Colour each rod by its curvature."""
        highest = 0.0
        for marker in message.markers:
            if marker.type == Marker.LINE_STRIP and len(marker.points) > 4:
                points = np.array([(p.x, p.y, p.z) for p in marker.points])
                bend = curvature(points)
                highest = max(highest, float(bend.max()))
                share = np.clip(bend / _MOST_CURVED, 0.0, 1.0) * (len(_RAMP) - 1)
                tints = np.stack(
                    [np.interp(share, np.arange(len(_RAMP)), _RAMP[:, k]) for k in range(3)], axis=1
                )
                marker.colors = [ColorRGBA(r=r, g=g, b=b, a=1.0) for r, g, b in tints.tolist()]
        self.highest = highest or self.highest

    def draw(self) -> None:
        """Draw the rods; the handle follows the platform unless it is held."""
        self.draw_markers()
        if self.pose is not None:
            self.handle.visible = True
            if not self.dragged:
                where, turn = self.pose.pose.position, self.pose.pose.orientation
                self.handle.position = (
                    self.scale * where.x,
                    self.scale * where.y,
                    self.scale * where.z,
                )
                self.handle.wxyz = (turn.w, turn.x, turn.y, turn.z)

    def view(self, gui: Any) -> View:
        """Make the widgets."""
        return _ContinuumView(self, gui)


class _ContinuumView(View):
    def __init__(self, panel: ContinuumPanel, gui: Any) -> None:
        self._panel = panel
        self._notice = gui.add_html("")
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
            self._panel.node.post(lambda: self._panel.aim(aim, (1.0, 0.0, 0.0, 0.0)))

    def update(self) -> None:
        panel = self._panel
        figures = panel.node.diagnosis("continuum_ik")
        margin = next((v for k, v in figures.items() if "fold" in k or "margin" in k), None)
        rows = [(f"Leg {i + 1}", f"{1e3 * v:.2f} mm") for i, v in enumerate(panel.lengths)]
        if panel.highest:
            rows.append(("Largest curvature", f"{panel.highest:.2f} 1/m"))
        put(self._notice, panel.notice())
        put(self._margin, _margin_html(margin))
        put(self._lengths, table(rows, "Lengths") if rows else "")
        put(self._figures, table(list(figures.items())[:12]))


def _margin_html(text: str | None) -> str:
    """The margin to the fold as a bar, which warns when it is small."""
    try:
        margin = float(text or "")
    except ValueError:
        return ""
    colour = BLUE if margin > 0.2 else WARN if margin > 0.05 else WRONG
    return bar(margin, f"margin to the fold {margin:.3f}", colour)
