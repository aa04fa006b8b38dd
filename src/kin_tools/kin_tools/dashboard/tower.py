"""The linkage of many closed loops: drag any link, see real and virtual joints and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from kin_interfaces.msg import HierGoal
from kin_interfaces.srv import Decompose, LoadLinkage, SolveHierIK
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from kin_tools.dashboard.panel import Panel, View, put
from kin_tools.dashboard.style import table

__all__ = ["TowerPanel"]


class TowerPanel(Panel):
    """Drags links of the loaded linkage and shows how well every task is met."""

    key = "Tower"
    title = "Large closed-chain linkage"
    about = "A tower of closed loops, solved level by level. Choose a link and drag the handle."
    node_names = ("hier_ik",)
    place = (8.0, 0.0, 0.0)
    scale = 0.12
    camera = ((2.6, -4.4, 2.4), (0.0, 0.0, 1.0))

    def connect(self) -> None:
        """Subscribe to the joints and make the handle."""
        self.values: dict[str, np.ndarray] = {}
        self.residuals: list[Any] = []
        self.unmet: list[str] = []
        self.link = ""
        self.blocks = 15
        self._points = np.zeros((0, 3))
        self._goal = self.tell("hier_ik", HierGoal)
        self.hear("hier_ik", JointState, lambda m: self._on_joints("real", m), "/joint_states")
        self.hear(
            "hier_ik", JointState, lambda m: self._on_joints("virtual", m), "virtual_joint_states"
        )
        self._solve = self.client(SolveHierIK, "hier_ik/solve")
        self._decompose = self.client(Decompose, "hier_ik/decompose")
        self._load = self.client(LoadLinkage, "hier_ik/load")
        self.report = ""
        self.handle = self.scene.add_transform_controls(
            f"{self.root}/handle", scale=0.5, line_width=3.0, visible=False, depth_test=False,
            disable_rotations=True,
        )  # fmt: skip
        self.handle.on_update(lambda _: self._moved())

    def _on_joints(self, kind: str, message: JointState) -> None:
        self.values[kind] = np.array(message.position)

    def saw_markers(self, message: MarkerArray) -> None:
        """Remember where the real links are, to put the handle near the chosen plate."""
        for marker in message.markers:
            if marker.ns == "real links" and marker.points:
                self._points = np.array([(p.x, p.y, p.z) for p in marker.points])

    def _moved(self) -> None:
        position = np.array(self.handle.position) / self.scale
        self.node.post(lambda: self.drag(self.link, position))

    def drag(self, link: str, position: np.ndarray) -> None:
        """Ask for a link to go to a position in the root's frame [m]."""
        if not link:
            self.say("Choose a plate first.")
            return
        goal = HierGoal(link=link, kind="position", target=Pose())
        goal.target.position.x, goal.target.position.y, goal.target.position.z = map(
            float, position
        )
        goal.target.orientation.w = 1.0
        self._goal.publish(goal)

    def solve(self) -> None:
        """Solve to convergence with the goals as they are, and show the residuals."""

        def answered(response: Any) -> None:
            self.residuals = list(response.residuals)
            self.unmet = list(response.unmet)

        self.ask(self._solve, SolveHierIK.Request(keep=True), answered)

    def decompose(self) -> None:
        """Show the components in the order in which they are solved."""

        def answered(response: Any) -> None:
            self.report = f"{len(response.components)} components in {response.scc_count} groups"

        self.ask(self._decompose, Decompose.Request(), answered)

    def load(self, blocks: int) -> None:
        """Load a tower of another height."""

        def answered(response: Any) -> None:
            if response.links:
                self.blocks = blocks
                self.grab("")

        self.ask(self._load, LoadLinkage.Request(preset="tower", blocks=blocks), answered)

    def grab(self, link: str) -> None:
        """Put the handle on a plate, "P1" up to "P15"; nothing for an empty name."""
        self.link = link if link.startswith("P") else ""
        if self.link and len(self._points):
            low, high = self._points[:, 2].min(), self._points[:, 2].max()
            height = low + (high - low) * int(link[1:]) / self.blocks
            near = self._points[np.argsort(np.abs(self._points[:, 2] - height))[:8]]
            middle = near.mean(axis=0)
            self.handle.position = tuple(self.scale * np.array([middle[0], middle[1], height]))
        self.handle.visible = bool(self.link)

    def draw(self) -> None:
        """Draw the linkage."""
        self.draw_markers()

    def view(self, gui: Any) -> View:
        """Make the widgets."""
        return _TowerView(self, gui)


class _TowerView(View):
    def __init__(self, panel: TowerPanel, gui: Any) -> None:
        self._panel = panel
        self._notice = gui.add_html("")
        self._blocks = panel.blocks
        self.link = gui.add_dropdown("Plate to drag", _plates(panel.blocks))
        self.link.on_update(lambda _: panel.grab(self.link.value))
        self.blocks = gui.add_slider("Blocks", 1, 40, 1, 15)
        gui.add_button("Load a tower").on_click(lambda _: panel.load(int(self.blocks.value)))
        self.button = gui.add_button("Solve to convergence")
        self.button.on_click(lambda _: panel.solve())
        gui.add_button("Decompose").on_click(lambda _: panel.decompose())
        self._figures = gui.add_html("")

    def update(self) -> None:
        panel = self._panel
        if panel.blocks != self._blocks:
            self._blocks = panel.blocks
            self.link.options = _plates(panel.blocks)
        rows = [
            (f"{kind.capitalize()} joints", str(len(values)))
            for kind, values in panel.values.items()
        ]
        worst = sorted(panel.residuals, key=lambda r: -max(r.position, r.rotation))[:5]
        rows += [(r.name, f"{max(r.position, r.rotation):.1e}") for r in worst]
        if panel.unmet:
            rows.append(("Not met", ", ".join(panel.unmet[:3])))
        if panel.report:
            rows.append(("Decomposition", panel.report))
        rows += list(panel.node.diagnosis("hier_ik").items())[:12]
        put(self._notice, panel.notice())
        put(self._figures, table(rows))


def _plates(blocks: int) -> list[str]:
    """What can be dragged: the plate above each block, topmost first."""
    return ["none", *(f"P{k}" for k in range(blocks, 0, -1))]
