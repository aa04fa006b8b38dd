"""Assembly: a closed posture near the one that a file gives, or which loop cannot be closed.

Loops that share no joint are closed apart from each other: first from the given posture, then from
starts ever farther from it. Where a set of loops is small, kin_solvers finds all ways to assemble
it, or proves that there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hier_ik.bodies import unit_of_length
from hier_ik.decompose import Component, decompose
from hier_ik.elements import Joint
from hier_ik.errors import LinkageError
from hier_ik.joints import joint_motion
from hier_ik.linkage import Linkage
from hier_ik.reach import other_starts
from hier_ik.solver import Solver
from hier_ik.spanning import assign_roles
from hier_ik.tables import Array
from hier_ik.validation import validate
from kin_core import checks
from kin_core.errors import KinError
from kin_core.rotations import inverse_transform
from kin_core.task import Task

if TYPE_CHECKING:
    from kin_solvers import Mechanism

__all__ = ["Assemblies", "Assembly", "all_assemblies", "assemble"]

#: Freedoms of the loops that kin_solvers is asked for, and how far a slide without limits may go,
#: in lengths of the linkage.
SMALL, SLIDE = 8, 10.0
_ITERATIONS = 500
_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True)
class Assembly:
    """A posture with as many loops closed as can be.

    Attributes:
        values: Coordinates of the tree joints [rad or m].
        moved: The largest change of one from the given posture [rad or m].
        open: Loops that no start could close, worst first, and what is left of each at the best of
            them [m or rad].
        starts: Starts that were needed for the set of loops that was hardest to close.
    """

    values: Mapping[str, Array]
    moved: float
    open: Mapping[str, float]
    starts: int

    @property
    def closed(self) -> bool:
        """Whether every loop is."""
        return not self.open

    @property
    def message(self) -> str:
        """One sentence for people."""
        if self.open:
            name, gap = next(iter(self.open.items()))
            more = f", and {len(self.open) - 1} more" if len(self.open) > 1 else ""
            return (
                f"the loop {name!r} cannot be closed{more}: {gap:.3g} m or rad are left at the best"
                f" of {self.starts} starts"
            )
        if self.moved == 0.0:
            return "all loops are closed"
        how = "from here" if self.starts == 1 else f"at start {self.starts}"
        return f"all loops were closed {how}; the joint that moved farthest moved {self.moved:.3g}"


def assemble(
    linkage: Linkage, hold: Sequence[str] = (), *, tolerance: float = 1e-10, starts: int = 64
) -> Assembly:
    """Close the loops of a linkage, which stays as it is.

    Args:
        linkage: Its values are where to begin; goals do not count, limits do.
        hold: Joints that stay where they are.
        tolerance: What may be left of a loop [m or rad].
        starts: Starts for each set of loops.

    Raises:
        LinkageError: The linkage breaks a rule, or a joint is not known.
    """
    flat = _flat(linkage, hold)
    solver = Solver(flat, "flat_structured")
    solution = solver.solve(tolerance=tolerance, restarts=0, max_iterations=_ITERATIONS)
    found, gaps, most = solver.values(), dict[str, float](), 1
    values = {name: found[name] for name in flat.values}
    for part, component in _parts(flat, solution.unmet):
        needed, found, left = _close(part, tolerance, starts)
        most = max(most, needed)
        values.update({name: found[name] for name in component.joints})
        gaps.update(left)
    moved = max(
        (float(np.abs(values[n] - q).max(initial=0.0)) for n, q in flat.values.items()), default=0.0
    )
    return Assembly(values, moved, dict(sorted(gaps.items(), key=lambda g: -g[1])), most)


def _flat(linkage: Linkage, hold: Sequence[str]) -> Linkage:
    """The linkage without hierarchy and goals, with joints held."""
    flat = linkage.flattened()
    assign_roles(flat)
    validate(flat)
    for name in list(flat.goals):
        flat.remove_goal(name)
    for name in hold:
        flat.set_locked(checks.one_of("hold", name, flat.joints), True)
    return flat


def _parts(flat: Linkage, wanted: Collection[str]) -> Iterator[tuple[Linkage, Component]]:
    """Per set of loops that share joints, with a wanted one, the linkage with no other loops."""
    for component in decompose(flat, goals=False).components:
        if not set(wanted) & set(component.closures):
            continue
        part = flat.copy()
        for c in flat.closure_joints():
            if c.name not in component.closures:
                part.remove_joint(c.name)
        yield part, component


def _close(
    part: Linkage, tolerance: float, starts: int
) -> tuple[int, dict[str, Array], dict[str, float]]:
    """Starts that were needed, the best posture, and the loops that are open there."""
    solver = Solver(part, "flat_structured")
    best, found, left = np.inf, dict(part.values), dict[str, float]()
    for k, values in enumerate(other_starts(part, unit_of_length(part), starts), 1):
        if k > 1:
            solver.set_values(values)
        solution = solver.solve(tolerance=tolerance, restarts=0, max_iterations=_ITERATIONS)
        if solution.residual < best:
            best, found = solution.residual, solver.values()
            left = {r.name: r.size for r in solution.residuals if not r.met}
        if solution.success:
            return k, found, {}
    return starts, found, left


# ---- all of them --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assemblies:
    """The ways to assemble one set of loops with some joints held.

    Attributes:
        closures: The loops.
        postures: Coordinates of the joints that close them [rad or m], one mapping each.
        complete: Whether there are no others, which is proven.
        message: One sentence for people.
    """

    closures: tuple[str, ...]
    postures: tuple[Mapping[str, Array], ...]
    complete: bool
    message: str


def all_assemblies(
    linkage: Linkage, hold: Sequence[str] | None = None, *, task: Task | None = None
) -> list[Assemblies]:
    """Every way to assemble each set of loops that is small; needs kin_solvers.

    Args:
        linkage: Its joints are searched within their limits, a turn where they have none.
        hold: Joints that stay where they are; None: the actuated ones.
        task: For cancel and timeout.

    Raises:
        KinError: kin_solvers is not installed.
    """
    flat = _flat(linkage, linkage.actuated if hold is None else hold)
    loops = [c.name for c in flat.closure_joints()]
    return [_all_of(part, component, task) for part, component in _parts(flat, loops)]


def _all_of(part: Linkage, component: Component, task: Task | None) -> Assemblies:
    try:
        from kin_solvers import Settings, solve
    except ImportError:
        raise KinError("finding all assemblies needs kin_solvers, which is not installed") from None
    try:
        mechanism = _mechanism(part, component)
    except LinkageError as error:
        return Assemblies(component.closures, (), False, f"not searched: {error.problem}")
    manifold = solve(mechanism, Settings(max_boxes=500_000), task=task)
    if any(c.dimension for c in manifold.components):
        return Assemblies(
            component.closures, (), False, "the loops move although the joints are held"
        )
    solver, postures = Solver(part, "flat_structured"), list[Mapping[str, Array]]()
    for q in 0.5 * (manifold.lower + manifold.upper):
        solver.set_values(_values(part, component, dict(zip(mechanism.names, q, strict=True))))
        if solver.solve(tolerance=1e-10, restarts=0).success:
            found = solver.values()
            postures.append({name: found[name] for name in component.joints})
    sure = manifold.complete and bool(manifold.certified.all())
    return Assemblies(component.closures, tuple(postures), sure, manifold.message)


def _values(part: Linkage, component: Component, by_name: Mapping[str, float]) -> dict[str, Any]:
    return {
        name: [by_name[f"{name}/{k}"] for k in range(part.joints[name].dof)]
        for name in component.joints
    }


def _mechanism(part: Linkage, component: Component) -> Mechanism:
    """The loops as kin_solvers has them.

    Raises:
        LinkageError: They are too many, or of a type that it does not know.
    """
    from kin_solvers import Constant, Loop, Mechanism, Motion, Variable

    freedoms = sum(part.joints[n].dof for n in component.joints)
    if freedoms > SMALL:
        raise LinkageError("loops", f"{freedoms} passive freedoms are more than {SMALL}")
    length = SLIDE * unit_of_length(part)
    variables: dict[str, Variable] = {}

    def motions(j: Joint, sign: int) -> list[Any]:
        if j.closure is False and j.name not in component.joints:
            X = joint_motion(j.type, part.values[j.name])
            return [Constant(X if sign > 0 else inverse_transform(X))]
        out = []
        for k, freedom in enumerate(j.kind.freedoms):
            if freedom == "s":
                raise LinkageError(f"joint {j.name!r}", "balls in the tree are not taken")
            turns, name = freedom[0] == "r", f"{j.name}/{k}"
            ends = float(j.lower[k]), float(j.upper[k])
            if not turns:
                ends = max(ends[0], -length), min(ends[1], length)
            elif not ends[1] - ends[0] < 2 * np.pi:
                ends = -np.pi, np.pi
            kind = "rotation" if turns else "translation"
            variables.setdefault(name, Variable(name, kind, *ends))
            index = list(variables).index(name)
            out.append(Motion(index, _AXES[freedom[1]], sign))
        return out if sign > 0 else out[::-1]

    above = {j.child: j for j in part.tree_joints()}

    def path(link: str) -> list[Joint]:
        out = []
        while link != part.root:
            out.append(above[link])
            link = above[link].parent
        return out[::-1]

    loops = []
    for name in component.closures:
        c = part.joints[name]
        if c.type not in ("fixed", "revolute", "prismatic", "cylindrical", "spherical"):
            raise LinkageError(f"joint {name!r}", f"{c.type} closures are not taken")
        a, b = path(c.parent), path(c.child)
        while a and b and a[0] is b[0]:
            a, b = a[1:], b[1:]
        there, back = list[Any](), list[Any]()
        for j in a:
            there += [
                Constant(j.origin),
                *motions(j, 1),
                Constant(inverse_transform(j.child_origin)),
            ]
        for j in reversed(b):
            back += [
                Constant(j.child_origin),
                *motions(j, -1),
                Constant(inverse_transform(j.origin)),
            ]
        at, end = Constant(c.origin), Constant(inverse_transform(c.child_origin))
        point = c.type == "spherical"
        factors = [end, *back, *there, at] if point else [*there, at, *motions(c, 1), end, *back]
        loops.append(Loop(tuple(factors), "point" if point else "pose", name))
    return Mechanism(part.name, tuple(variables.values()), tuple(loops))
