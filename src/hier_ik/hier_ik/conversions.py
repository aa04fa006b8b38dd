"""Between messages and the library."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from kin_interfaces.msg import HierComponent, HierGoal, HierResidual
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from hier_ik.decompose import Decomposition
from hier_ik.linkage import GOAL_ROWS, Linkage
from hier_ik.solver import Residual, Solution, Solver
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_ros.arrays import to_field
from kin_ros.markers import BLACK, BLUE, PURPLE, colour, make_marker, to_points
from kin_ros.poses import read_pose

Array = NDArray[np.float64]

#: Links that are shown with their frame and name at most.
_GRIPS = 100


def set_goal(solver: Solver, message: HierGoal, field: str = "goal") -> None:
    """Add, move or remove the goal of a message."""
    linkage = solver.linkage
    name = message.name or f"drag:{message.link}"
    if message.remove:
        linkage.remove_goal(name)
        return
    kind = message.kind or "pose"
    reference = message.reference_link or linkage.root
    target = read_pose(f"{field}.target", message.target, zero_is_identity=True)
    offset = read_pose(f"{field}.offset", message.offset, zero_is_identity=True)
    known = linkage.goals.get(name)
    rows = tuple(bool(r) for r in message.rows) if kind == "rows" else GOAL_ROWS.get(kind)
    if known is not None and not message.link:
        solver.set_goal(name, target)
        return
    if known is not None:
        same = (
            known.link == message.link
            and known.reference == reference
            and known.kind == kind
            and known.rows == rows
            and np.array_equal(known.offset, offset)
            and (message.priority < 0 or known.priority == message.priority)
            and (message.weight == 0.0 or known.weight == message.weight)
        )
        if same:
            solver.set_goal(name, target)
            return
    work = linkage.copy()  # so that a refused goal leaves the old one
    if known is not None:
        work.remove_goal(name)
    arguments: dict[str, Any] = {
        "target": target,
        "offset": offset,
        "reference": reference,
        "rows": list(rows) if kind == "rows" and rows is not None else None,
        "priority": None if message.priority < 0 else int(message.priority),
        "weight": message.weight or 1.0,
    }
    work.add_goal(name, message.link, kind, **arguments)
    if known is not None:
        linkage.remove_goal(name)
    linkage.add_goal(name, message.link, kind, **arguments)


def split_names(
    linkage: Linkage, values: Mapping[str, Array], *, virtual: bool
) -> tuple[list[str], Array]:
    """Names and values, one per freedom, of the real or the virtual joints."""
    names: list[str] = []
    numbers: list[float] = []
    for name, joint in linkage.joints.items():
        if joint.virtual != virtual or name not in values:
            continue
        q = values[name]
        names += [name] if len(q) == 1 else [f"{name}/{i + 1}" for i in range(len(q))]
        numbers += q.tolist()
    return names, np.array(numbers)


def joint_state(
    linkage: Linkage, values: Mapping[str, Array], stamp: Any, *, virtual: bool
) -> JointState:
    """A JointState of the real or the virtual joints."""
    message = JointState()
    message.header.stamp = stamp
    message.name, positions = split_names(linkage, values, virtual=virtual)
    message.position = to_field(positions, "float64")
    return message


def fill_solution(response: Any, linkage: Linkage, solution: Solution) -> None:
    """Write a solution into a SolveHierIK response or a SolveHier result."""
    response.status.code = int(solution.code)
    response.status.message = solution.message
    response.status.residual = solution.residual
    response.status.iterations = solution.iterations
    response.joint_names, real = split_names(linkage, solution.values, virtual=False)
    response.joint_positions = to_field(real, "float64")
    response.virtual_names, virtual = split_names(linkage, solution.values, virtual=True)
    response.virtual_positions = to_field(virtual, "float64")
    response.residuals = [residual_message(r) for r in solution.residuals]
    response.unmet = list(solution.unmet)
    response.at_limit = list(solution.at_limit)


def residual_message(r: Residual) -> HierResidual:
    """One residual as a message."""
    return HierResidual(
        name=r.name, level=r.level, component=r.component, position=r.position,
        rotation=r.rotation, met=r.met,
    )  # fmt: skip


def fill_decomposition(response: Any, d: Decomposition) -> None:
    """Write a decomposition into a Decompose response."""
    response.components = [
        HierComponent(round=c.round, scc=c.scc, closures=list(c.closures), joints=list(c.joints))
        for c in d.components
    ]
    response.sublinkages = list(d.scc)
    response.sublinkage_scc = list(d.scc.values())
    response.sublinkage_round = [d.rounds[s] for s in d.scc]
    response.scc_count = d.scc_count
    response.locked_wrt_calls = d.locked_wrt_calls
    response.warnings = list(d.warnings)
    response.report = d.report()


def start_values(solver: Solver, names: Iterable[str], positions: Array) -> dict[str, Array]:
    """Joint values of a request, joints with several freedoms one after the other."""
    out: dict[str, Array] = {}
    at = 0
    for name in names:
        checks.one_of("start_names", name, solver.linkage.joints)
        if name in out:
            raise InvalidInput("start_names", f"{name!r} stands twice")
        dof = solver.linkage.joints[name].dof
        out[name] = positions[at : at + dof]
        at += dof
    if at != len(positions):
        raise InvalidInput(
            "start_positions", f"the named joints have {at} freedoms, got {len(positions)} values"
        )
    return out


def markers(solver: Solver, frame_id: str, stamp: Any, tolerance: float) -> MarkerArray:
    """Links as bars (real grey, virtual violet), closures and goals as balls by residual.

    A met closure is green; from the tolerance to 0.1 (m or rad) the colour goes to red. The frames
    of up to a hundred real links that lie in no sublinkage, such as the plates of a tower, are
    shown as cubes that carry the link's name as text: what a person can take hold of.
    """
    linkage = solver.linkage
    poses = solver.poses()
    points, bars = _bars(linkage, poses)
    pairs = [pair for of_link in bars.values() for pair in of_link]
    array = MarkerArray()
    size = _size(points, pairs)
    places = to_points(points)
    for i, virtual in enumerate((False, True)):
        marker = make_marker(
            Marker.LINE_LIST,
            "virtual links" if virtual else "real links",
            i,
            frame_id=frame_id,
            stamp=stamp,
            size=size * (0.15 if virtual else 0.4),
            shade=colour(PURPLE, 0.6) if virtual else colour(BLACK),
        )
        marker.points = [
            places[end]
            for name, of_link in bars.items()
            if linkage.links[name].virtual == virtual
            for pair in of_link
            for end in pair
        ]
        array.markers.append(marker)
    centres, shades = [], []
    for r in solver.residuals(tolerance):
        if r.name in linkage.goals:
            g = linkage.goals[r.name]
            T = poses[g.link] @ g.offset
        else:
            c = linkage.joints[r.name]
            T = poses[c.child] @ c.child_origin
        centres.append(T[:3, 3])
        shades.append(_colour(r.size, tolerance))
    marker = make_marker(
        Marker.SPHERE_LIST,
        "closures",
        2,
        frame_id=frame_id,
        stamp=stamp,
        size=size,
        shade=ColorRGBA(),
        points=np.reshape(centres, (-1, 3)),
    )
    marker.colors = shades
    array.markers.append(marker)
    array.markers += _grips(linkage, poses, frame_id, stamp, size)
    return array


def _grips(
    linkage: Linkage, poses: Mapping[str, Array], frame_id: str, stamp: Any, size: float
) -> list[Marker]:
    """The links that can be dragged, each as a cube at its frame with its name."""
    top = linkage.links[linkage.root].sublinkage
    named = [n for n, link in linkage.links.items() if not link.virtual and link.sublinkage == top]
    array = []
    for number, name in enumerate(named[:_GRIPS]):
        marker = make_marker(
            Marker.CUBE,
            "grips",
            number,
            frame_id=frame_id,
            stamp=stamp,
            size=(2.0 * size, 2.0 * size, 0.5 * size),
            shade=colour(BLUE),
            position=poses[name][:3, 3],
            rotation=poses[name][:3, :3],
        )
        marker.text = name
        array.append(marker)
    return array


def _bars(
    linkage: Linkage, poses: Mapping[str, Array]
) -> tuple[Array, dict[str, list[tuple[int, int]]]]:
    """Where the joints sit on their links, shape (2 joints, 3) [m], and bars between neighbours.

    All at once: one product per joint would take longer than to solve for them.
    """
    links = [link for j in linkage.joints.values() for link in (j.parent, j.child)]
    if not links:
        return np.zeros((0, 3)), {}
    origins = [T for j in linkage.joints.values() for T in (j.origin, j.child_origin)]
    frames = np.array([poses[link] for link in links])
    inside = np.array(origins)[:, :3, 3]
    points = np.einsum("kij,kj->ki", frames[:, :3, :3], inside) + frames[:, :3, 3]
    ends: dict[str, list[int]] = {}
    for number, link in enumerate(links):
        ends.setdefault(link, []).append(number)
    return points, {link: list(pairwise(numbers)) for link, numbers in ends.items()}


def _size(points: Array, pairs: list[tuple[int, int]]) -> float:
    """About a twentieth of a middling bar."""
    if not pairs:
        return 0.02
    ends = points[np.array(pairs)]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    long = lengths[lengths > 1e-6]
    return 0.06 * float(np.median(long)) if long.size else 0.02


def _colour(residual: float, tolerance: float) -> ColorRGBA:
    share = 0.0
    if residual > tolerance:
        share = np.log10(residual / tolerance) / max(np.log10(0.1 / tolerance), 1e-9)
    r, g, b = colorsys.hsv_to_rgb((1.0 - min(1.0, max(0.0, float(share)))) / 3.0, 0.9, 0.85)
    return ColorRGBA(r=r, g=g, b=b, a=1.0)


__all__ = [
    "fill_decomposition", "fill_solution", "joint_state", "markers",
    "residual_message", "set_goal", "split_names", "start_values",
]  # fmt: skip
