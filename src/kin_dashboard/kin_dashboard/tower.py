"""The linkage of many closed loops: drag any link, see real and virtual joints and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from kin_interfaces.msg import HierGoal, HierProblem
from kin_interfaces.srv import Decompose, LoadLinkage, SolveHierIK
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from kin_dashboard.handle import DragHandle
from kin_dashboard.panel import Panel, View, put
from kin_dashboard.style import GOOD, WRONG, chosen, legend, table

__all__ = ["TowerPanel"]


#: A linkage that reaches less far than this [m] is shown so large [m].
_SMALL, _SHOWN = 2.0, 1.3


class _TowerView(View):
    panel: TowerPanel

    def __init__(self, panel: TowerPanel, gui: Any) -> None:
        super().__init__(panel, gui)
        self._names = tuple(panel.grips)
        self.link = gui.add_dropdown("Plate to drag", _choices(self._names))
        self.link.on_update(lambda _: panel.grab(self.link.value))
        gui.add_button("Let go").on_click(lambda _: panel.release())
        gui.add_html(
            legend(
                [
                    ("real links", "#333333", "hinges and bars that exist"),
                    ("virtual links", "#7570B3", "joints that exist in the computer only"),
                    ("task met", GOOD, "closure or goal within its tolerance"),
                    ("task not met", WRONG, "closure or goal that is missed"),
                ]
            )
        )
        self._figures = gui.add_html("")
        self.button = gui.add_button("Solve to convergence")
        self.button.on_click(lambda _: panel.solve())
        gui.add_button("Decompose").on_click(lambda _: panel.decompose())
        self.blocks = gui.add_slider("Blocks", 1, 40, 1, 15)
        gui.add_button("Load a tower").on_click(lambda _: panel.load(int(self.blocks.value)))

    def update(self) -> None:
        super().update()
        panel = self.panel
        names = tuple(panel.grips)
        if names != self._names:
            self._names = names
            self.link.options = _choices(names)
        put(self._figures, _figures(panel))


class TowerPanel(Panel):
    """Drags links of the loaded linkage and shows how well every task is met."""

    key = "Tower"
    title = "Large closed-chain linkage"
    about = "Closed loops, solved level by level. Choose a link and drag its handle."
    node_names = ("hier_ik",)
    view_type = _TowerView
    place = (3.8, 4.0, 0.0)
    scale = 0.165
    camera = ((0.9, -3.6, 1.4), (0.0, 0.0, 1.0))
    marker_bold = 8.0

    def connect(self) -> None:
        """Subscribe to the joints and make the handle."""
        self.values: dict[str, np.ndarray] = {}
        self.residuals: list[Any] = []
        self.unmet: list[str] = []
        self.report = ""
        self.link = ""
        self.pulled: set[str] = set()
        #: Position of each link that can be dragged, by name [m].
        self.grips: dict[str, np.ndarray] = {}
        #: Scale of the drawing, and what of the linkage stands on the floor [m].
        self.zoom, self.floor = self.scale, np.zeros(3)
        self._goal = self.tell("hier_ik", HierGoal)
        self.hear("hier_ik", JointState, self._on_real, "/joint_states")
        self.hear("hier_ik", JointState, self._on_virtual, "virtual_joint_states")
        self._solve = self.node.ask_of(SolveHierIK, "hier_ik/solve")
        self._decompose = self.node.ask_of(Decompose, "hier_ik/decompose")
        self._load = self.node.ask_of(LoadLinkage, "hier_ik/load")
        self.handle = DragHandle(
            self.scene,
            f"{self.root}/handle",
            self.node.post,
            lambda position, _: self.drag(self.link, position / self.zoom + self.floor),
            turns=False,
        )

    def _on_real(self, message: JointState) -> None:
        self.values["real"] = np.array(message.position)

    def _on_virtual(self, message: JointState) -> None:
        self.values["virtual"] = np.array(message.position)

    def saw_markers(self, message: MarkerArray) -> None:
        """Learn where the links are that can be dragged."""
        found = {m.text: m.pose.position for m in message.markers if m.ns == "grips" and m.text}
        if found:
            other = found.keys() != self.grips.keys()
            self.grips = {name: np.array([p.x, p.y, p.z]) for name, p in found.items()}
            if other:
                self._fit_linkage(np.array(list(self.grips.values())))

    def _fit_linkage(self, points: np.ndarray) -> None:
        """Show towers in one scale, robots of human size larger; nothing is below the floor."""
        size = float(np.abs(points).max(initial=0.0))
        self.zoom = self.scale if size > _SMALL or size == 0.0 else _SHOWN / size
        self.floor = np.array([0.0, 0.0, min(0.0, 1.1 * float(points[:, 2].min()))])
        for drawing in self.scenes.values():
            drawing.scale, drawing.centre = self.zoom, self.floor

    def drag(self, link: str, position: np.ndarray) -> None:
        """Ask for a link to go to a position in the root's frame [m]."""
        if link not in self.grips:
            self.say("Choose a plate first.")
            return
        message = HierGoal(link=link, kind="position", priority=-1)
        where = message.target.position
        where.x, where.y, where.z = (float(v) for v in position)
        self._goal.publish(message)
        self.pulled.add(link)
        self.say(f"{link} is pulled to ({where.x:.2f}, {where.y:.2f}, {where.z:.2f}) m")

    def release(self) -> None:
        """Let go of everything that was dragged; the linkage's own goals stay."""

        def send() -> None:
            own = max(self.grips, key=lambda name: self.grips[name][2], default="")
            for link in sorted(self.pulled - {own}):
                self._goal.publish(HierGoal(name=f"drag:{link}", remove=True))
            self.pulled.clear()
            self.say("let go")

        self.node.post(send)

    def solve(self) -> None:
        """Solve to convergence with the goals as they are, and show the residuals."""

        def answered(response: Any) -> None:
            self.residuals = list(response.solution.residuals)
            self.unmet = list(response.solution.unmet)

        self.ask(self._solve, SolveHierIK.Request(problem=HierProblem(keep=True)), answered)

    def decompose(self) -> None:
        """Show the components in the order in which they are solved."""

        def answered(response: Any) -> None:
            self.report = f"{len(response.components)} components in {response.scc_count} groups"

        self.ask(self._decompose, Decompose.Request(), answered)

    def load(self, blocks: int) -> None:
        """Load a tower of another height."""

        def answered(response: Any) -> None:
            if response.links:
                self.pulled.clear()
                self.grips = {}
                self.residuals, self.unmet, self.report = [], [], ""
                self.grab("")

        self.ask(self._load, LoadLinkage.Request(preset="tower", blocks=blocks), answered)

    def grab(self, link: str) -> None:
        """Put the handle on a link; an unknown name takes the handle away."""
        self.link = link if link in self.grips else ""
        self.handle.let_go()
        self._follow()

    def _follow(self) -> None:
        """The handle stays on its link, except while it is dragged."""
        here = self.grips.get(self.link)
        if here is None:
            self.handle.hide()
        else:
            self.handle.follow(self.zoom * (here - self.floor))

    def draw(self) -> None:
        """Draw the linkage."""
        super().draw()
        self._follow()


def _choices(names: tuple[str, ...]) -> list[str]:
    """What can be dragged, the last one, which is the top of a tower, first."""
    return ["none", *reversed(names)]


def _figures(panel: TowerPanel) -> str:
    told = panel.node.diagnosis("hier_ik")
    rows = [
        (f"{kind.capitalize()} joints", str(len(values))) for kind, values in panel.values.items()
    ]
    rows += chosen(
        told,
        ("residual", "Worst residual"),
        ("closure residual", "Worst closure"),
        ("unmet tasks", "Tasks not met"),
        ("joints at a limit", "Joints at a limit"),
        ("tick p50 [ms]", "Time of a tick, p50 [ms]"),
    )
    worst = sorted(panel.residuals, key=lambda r: -max(r.position, r.rotation))[:5]
    rows += [(f"Residual of {r.name}", f"{max(r.position, r.rotation):.1e}") for r in worst]
    if panel.unmet:
        rows.append(("Not met", ", ".join(panel.unmet[:3])))
    if panel.report:
        rows.append(("Decomposition", panel.report))
    return table(rows)
