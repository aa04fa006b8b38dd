"""The linkage of many closed loops: drag any link, see real and virtual joints and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from kin_interfaces.msg import HierGoal
from kin_interfaces.srv import Decompose, LoadLinkage, SolveHierIK
from sensor_msgs.msg import JointState

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
        self.joints: dict[str, tuple[str, ...]] = {}
        self.values: dict[str, np.ndarray] = {}
        self.residuals: list[Any] = []
        self.unmet: list[str] = []
        self.link = ""
        self._handle_link = ""
        self._goal = self.tell("hier_ik", HierGoal)
        self.hear("hier_ik", JointState, self._on_joints)
        self._solve = self.client(SolveHierIK, "hier_ik/solve_ik")
        self._decompose = self.client(Decompose, "hier_ik/decompose")
        self._load = self.client(LoadLinkage, "hier_ik/load_linkage")
        self.report = ""
        self.handle = self.scene.add_transform_controls(
            f"{self.root}/handle", scale=0.5, line_width=3.0, visible=False, depth_test=False,
            disable_rotations=True,
        )  # fmt: skip
        self.handle.on_update(lambda _: self._moved())

    def _on_joints(self, message: JointState) -> None:
        kind = (
            "virtual" if any("virtual" in name or "/v" in name for name in message.name[:1]) else ""
        )
        self.values[kind or "real"] = np.array(message.position)
        self.joints[kind or "real"] = tuple(message.name)

    def _moved(self) -> None:
        position = np.array(self.handle.position) / self.scale
        self.node.post(lambda: self.drag(self.link, position))

    def drag(self, link: str, position: np.ndarray) -> None:
        """Ask for a link to go to a position in the root's frame [m]."""
        if not link:
            self.say("Name a link first.")
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
        self.ask(self._load, LoadLinkage.Request(preset="tower", blocks=blocks))

    def grab(self, link: str) -> None:
        """Put the handle on a link."""
        self.link = link
        self.handle.visible = bool(link)

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
        self.link = gui.add_text("Link to drag", "")
        self.link.on_update(lambda _: panel.grab(self.link.value.strip()))
        self.blocks = gui.add_slider("Blocks", 1, 40, 1, 15)
        gui.add_button("Load a tower").on_click(lambda _: panel.load(int(self.blocks.value)))
        self.button = gui.add_button("Solve to convergence")
        self.button.on_click(lambda _: panel.solve())
        gui.add_button("Decompose").on_click(lambda _: panel.decompose())
        self._figures = gui.add_html("")

    def update(self) -> None:
        panel = self._panel
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
