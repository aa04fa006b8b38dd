"""Closed mechanisms: every solution as boxes, and the linkage that walks along them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from kin_interfaces.action import SolveManifold
from kin_interfaces.msg import Manifold, ManifoldProblem
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from kin_core.errors import StatusCode
from kin_dashboard.markers import CUBE_CORNERS, CUBE_FACES
from kin_dashboard.panel import Panel, View, put
from kin_dashboard.style import GOOD, SERIES, WARN, WRONG, bar, chips, rgb, table
from kin_ros.arrays import from_field

__all__ = ["CuikPanel", "along_curve"]

_MECHANISMS = (
    "bennett",
    "planar_four_bar",
    "spherical_four_bar",
    "bricard",
    "manseur_doty",
    "puma560",
    "ur5",
    "iiwa7",
    "three_rpr",
    "double_butterfly",
)
#: Boxes that are drawn at most.
_DRAWN = 20_000


def along_curve(points: NDArray[np.float64], angles: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Order points of a curve by walking from each to its nearest unvisited neighbour.

    Args:
        points: Shape (n, v) [rad, m].
        angles: Shape (v,), whether a variable is an angle, which closes at +-pi.

    Returns:
        Indices into ``points``.
    """
    count = len(points)
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.zeros(count, dtype=np.int64)
    left = np.ones(count, dtype=bool)
    here = 0
    for k in range(count):
        order[k] = here
        left[here] = False
        step = points - points[here]
        turned = np.where(angles, np.arctan2(np.sin(step), np.cos(step)), step)
        distance = np.where(left, np.einsum("ij,ij->i", turned, turned), np.inf)
        here = int(np.argmin(distance))
    return order


class _CuikView(View):
    panel: CuikPanel

    def __init__(self, panel: CuikPanel, gui: Any) -> None:
        super().__init__(panel, gui)
        self._variables: tuple[str, ...] = ()
        self.mechanism = gui.add_dropdown("Mechanism", list(_MECHANISMS))
        self.sigma = gui.add_slider("Box side [rad]", 0.01, 0.5, 0.01, 0.1)
        self.button = gui.add_button("Solve")
        self.button.on_click(lambda _: panel.solve(self.mechanism.value, float(self.sigma.value)))
        self.stop = gui.add_button("Cancel", disabled=True)
        self.stop.on_click(lambda _: panel.cancel())
        self._progress = gui.add_html("")
        self.curve = gui.add_slider("Walk the curve", 0.0, 1.0, 0.002, 0.0)
        self.curve.on_update(lambda _: panel.walk(float(self.curve.value)))
        self._figures = gui.add_html("")
        self.axes = [gui.add_dropdown(f"Along {letter}", ("-",)) for letter in "xyz"]
        for axis in self.axes:
            axis.on_update(self._turned)

    def _turned(self, event: Any) -> None:
        if event.client is not None and self._variables:  # a person's choice, not our own update
            x, y, z = (self._variables.index(axis.value) for axis in self.axes)
            self.panel.show_axes((x, y, z))

    def _name_axes(self, variables: tuple[str, ...]) -> None:
        self._variables = ()  # no event is a person's choice while the names change
        for axis, chosen in zip(self.axes, self.panel.axes, strict=True):
            axis.options = variables
            axis.value = variables[min(chosen, len(variables) - 1)]
        self._variables = variables

    def update(self) -> None:
        super().update()
        panel, manifold = self.panel, self.panel.manifold
        self.stop.disabled = not panel.solving
        put(self._progress, bar(panel.progress, panel.counters) if panel.solving else "")
        put(self._figures, _figures(manifold) if manifold is not None else "")
        if manifold is not None and manifold.variables:
            variables = tuple(manifold.variables)
            if variables != self._variables:
                self._name_axes(variables)


class CuikPanel(Panel):
    """Solves a mechanism with progress and cancel, and shows its solution set."""

    key = "Cuik"
    title = "All solutions of a mechanism"
    about = "Each box may hold solutions; nothing lies outside them. Colours are components."
    node_names = ("kin_solvers",)
    view_type = _CuikView
    place = (-1.95, 0.0, 0.0)
    scale = 0.25
    camera = ((0.6, -4.3, 1.9), (0.15, 0.0, 0.85))
    skipped_markers = ("/markers",)  # the boxes, which are drawn here by component
    marker_offset = (0.85, -0.1, 0.95)
    marker_reach = 0.7
    #: Middle of the box cover, from the place [m].
    middle = (-0.75, 0.0, 0.95)

    def connect(self) -> None:
        """Subscribe to the last manifold and make the action's client."""
        self.manifold: Manifold | None = None
        self.status_text = ""
        self.progress = -1.0
        self.counters = ""
        self._goal: Any = None
        self._asked = 0  # solves so far
        self._unwanted = False
        self._begun = False
        self._dirty = False
        self._boxes: list[Any] = []
        self._walker: Any = None
        self.axes = (0, 1, 2)
        self.curve: NDArray[np.float64] = np.zeros((0, 0))
        self._show = self.tell("kin_solvers", JointState)
        self.hear("kin_solvers", Manifold, self._on_manifold)
        self._cover = f"{self.root}/cover"
        self.scene.add_frame(self._cover, show_axes=False, position=self.middle)
        self._action = self.node.act_on(SolveManifold, "kin_solvers/solve_manifold")

    def _on_manifold(self, message: Manifold) -> None:
        if self.manifold is None or list(message.variables) != list(self.manifold.variables):
            self.axes = (0, 1, 2)
        self.manifold = message
        self._dirty = True
        self._bounds = None
        count = len(message.variables)
        points = from_field(message.points, "float64").reshape(-1, max(count, 1))
        owner = from_field(message.point_components, "int32")
        angles = ~np.array(message.translations, dtype=bool)
        if len(owner) and len(points):
            # The component with most points is the curve to walk.
            chosen = points[owner == np.bincount(owner[owner >= 0]).argmax()][:2000]
            self.curve = chosen[along_curve(chosen, angles)]
        else:
            self.curve = np.zeros((0, count))

    # Requests ----------------------------------------------------------------------------------

    def solve(self, mechanism: str, sigma: float) -> None:
        """Start a solve; feedback moves the progress bar."""

        def send() -> None:
            if not self._action.server_is_ready():
                self.say("kin_solvers does not answer: is it running?", WRONG)
                return
            problem = ManifoldProblem(
                source=ManifoldProblem.LIBRARY, mechanism=mechanism, sigma=sigma, refine=400
            )
            if self._goal is not None:  # the last one wins
                self._goal.cancel_goal_async()
            self._asked += 1
            asked = self._asked
            self._goal, self.progress, self.counters, self._unwanted = None, 0.0, "", False
            self.say(f"solving {mechanism}")
            goal = SolveManifold.Goal(problem=problem, timeout=120.0)
            sent = self._action.send_goal_async(goal, partial(self._on_feedback, asked))
            sent.add_done_callback(partial(self._accepted, asked))

        self.node.post(send)

    def cancel(self) -> None:
        """Cancel the running solve."""

        def send() -> None:
            self._unwanted = self.solving
            if self._goal is not None:
                self._goal.cancel_goal_async()

        self.node.post(send)

    # The answer to one solve may come when the next is under way already: each knows its own.

    def _on_feedback(self, asked: int, message: Any) -> None:
        if asked != self._asked or not self.solving:
            return
        feedback = message.feedback
        self.progress = float(feedback.settled)
        self.counters = f"{feedback.queued} boxes waiting, {feedback.solutions} solutions"

    def _accepted(self, asked: int, future: Any) -> None:
        goal = future.result()
        if asked != self._asked:
            if goal.accepted:
                goal.cancel_goal_async()
            return
        if not goal.accepted:
            self.progress = -1.0
            self.say("kin_solvers does not take the goal", WRONG)
            return
        self._goal = goal
        if self._unwanted:  # cancelled before it was accepted
            goal.cancel_goal_async()
        goal.get_result_async().add_done_callback(partial(self._finished, asked))

    def _finished(self, asked: int, future: Any) -> None:
        if asked != self._asked:
            return
        result = future.result().result
        self._goal = None
        self.progress = -1.0
        status = result.status
        if status.code == StatusCode.SUCCESS:
            self.say(f"solved in {1e3 * status.solve_time:.1f} ms. {status.message}", GOOD)
        else:
            colour = WARN if status.code == StatusCode.CANCELLED else WRONG
            self.say(f"{StatusCode(status.code).name}: {status.message}", colour)
        if result.manifold.variables:
            self._on_manifold(result.manifold)

    @property
    def solving(self) -> bool:
        """Whether a solve is under way."""
        return self.progress >= 0.0

    # Drawing -----------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw the boxes of the chosen three variables, and the markers of the node."""
        super().draw()
        if not self._begun and self.present and self._action.server_is_ready():
            # An empty place tells nobody anything.
            self._begun = True
            if self.manifold is None:
                self.solve(_MECHANISMS[0], 0.1)
        if self._dirty and self.manifold is not None:
            self._draw_boxes(self.manifold)
            self._dirty = False  # only now: what failed on the way is drawn again the next time

    def show_axes(self, axes: tuple[int, int, int]) -> None:
        """Choose the variables that are drawn along x, y and z."""
        self.axes = axes
        self._dirty = self.manifold is not None

    def walk(self, share: float) -> None:
        """Put the walker at a share, 0 to 1, of the self-motion curve."""
        if len(self.curve):
            here = self.curve[min(int(share * len(self.curve)), len(self.curve) - 1)]
            where = self._project(here[None])[0]
            if self.manifold is not None:
                names = list(self.manifold.variables)
                state = JointState(name=names, position=here.tolist())
                self.node.post(lambda: self._show.publish(state))
            if self._walker is None:
                self._walker = self.scene.add_icosphere(
                    f"{self._cover}/walker", radius=0.045, color=(20, 20, 20)
                )
            self._walker.position = tuple(where)
            self._walker.visible = True

    def _project(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Three chosen variables of points, those that do not exist as zero."""
        count = points.shape[1]
        return (
            np.stack(
                [points[:, a] if a < count else np.zeros(len(points)) for a in self.axes], axis=1
            )
            * self.scale
        )

    def _draw_boxes(self, manifold: Manifold) -> None:
        for handle in self._boxes:
            handle.remove()
        self._boxes = []
        if self._walker is not None:
            self._walker.visible = False
        count = len(manifold.variables)
        if count == 0:
            return
        lower = from_field(manifold.lower, "float64").reshape(-1, count)[:_DRAWN]
        upper = from_field(manifold.upper, "float64").reshape(-1, count)[:_DRAWN]
        owner = from_field(manifold.components, "int32")[:_DRAWN]
        if len(lower):
            middle = self._project(0.5 * (lower + upper))
            size = np.maximum(self._project(upper - lower), 0.022)
            tints = np.array([rgb(c) for c in SERIES], dtype=np.uint8)[owner % len(SERIES)]
            self._boxes.append(
                self.scene.add_batched_meshes_simple(
                    f"{self._cover}/boxes",
                    CUBE_CORNERS,
                    CUBE_FACES,
                    np.tile([1.0, 0.0, 0.0, 0.0], (len(lower), 1)),
                    middle,
                    batched_scales=size,
                    batched_colors=tints,
                    opacity=0.55,
                    flat_shading=True,
                    lod="off",
                    cast_shadow=False,
                    receive_shadow=False,
                )
            )
        edges = np.array([[a, b] for a in range(8) for b in range(a) if bin(a ^ b).count("1") == 1])
        frame = 2.0 * np.pi * self.scale * CUBE_CORNERS
        self._boxes.append(
            self.scene.add_line_segments(
                f"{self._cover}/range", frame[edges], (150, 155, 165), thickness=0.008
            )
        )
        for axis, letter in enumerate("xyz"):
            if self.axes[axis] < count:
                spot = -np.pi * self.scale * np.ones(3)
                spot[axis] = 0.0
                name = manifold.variables[self.axes[axis]]
                self._boxes.append(
                    self.scene.add_label(f"{self._cover}/axis_{letter}", name, position=tuple(spot))
                )


def _figures(manifold: Manifold) -> str:
    certified = int(np.sum(from_field(manifold.certificates, "uint8") == Manifold.CERTIFIED))
    closed = sum(map(bool, manifold.closed_curves))
    dimensions = sorted(set(manifold.dimensions))
    rows = [
        ("Mechanism", manifold.mechanism),
        ("Variables", str(len(manifold.variables))),
        ("Boxes", f"{manifold.box_count}, {certified} certified"),
        ("Components", f"{manifold.component_count}, {closed} closed curves"),
        ("Dimension", ", ".join(map(str, dimensions)) or "no solution"),
        ("Complete", "yes, none lost" if manifold.complete else "no, stopped early"),
        ("Boxes processed", str(manifold.processed)),
    ]
    owner = from_field(manifold.components, "int32")
    owners = np.bincount(owner[owner >= 0])[: len(SERIES)]  # -1: a box without a component
    parts = [
        (f"{k + 1}: {boxes} boxes", SERIES[k], f"component {k + 1}")
        for k, boxes in enumerate(owners.tolist())
    ]
    return table(rows) + chips(parts)
