"""Structure abstraction: hide a part of a linkage behind a simpler interface.

After Vona, Sec. 3: encapsulate a connected part A as a sublinkage, substitute a virtual interface I
for it, and make A a driven sublinkage of I. Whether I is proper (A can reach whatever I drives it
to) is PSPACE-hard to decide; check_proper() can only refute it, by an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hier_ik.elements import Sublinkage
from hier_ik.errors import LinkageError
from hier_ik.linkage import Linkage
from hier_ik.solver import Solver
from hier_ik.spanning import assign_roles
from hier_ik.tables import Array
from hier_ik.validation import validate
from kin_core import checks
from kin_core.task import Task

__all__ = ["Properness", "check_proper", "encapsulate", "substitute"]


def encapsulate(
    linkage: Linkage, name: str, links: Iterable[str], disposition: str = "simultaneous"
) -> None:
    """Demarcate links of one sublinkage as a new sublinkage inside it.

    Raises:
        LinkageError: The links are in different sublinkages, or the result breaks a rule; the
            linkage is unchanged then.
    """
    chosen = list(links)
    for l in chosen:
        checks.one_of(f"encapsulate {name!r}, link", l, linkage.links)
    homes = sorted({linkage.links[l].sublinkage for l in chosen})
    if len(homes) != 1:
        raise LinkageError(
            f"sublinkage {name!r}",
            f"links of one sublinkage can be encapsulated, these are in {homes}",
            rule="proper nesting",
        )
    work = linkage.copy()
    work.add_sublinkage(name, disposition, parent=homes[0], links=chosen)
    assign_roles(work)
    validate(work)
    linkage.adopt(work)


def substitute(
    linkage: Linkage,
    implementation: str,
    interface: Linkage,
    ports: Mapping[str, str],
    *,
    name: str,
) -> None:
    """Put a virtual interface in the place of a sublinkage, which it drives from then on.

    Every joint that crossed the boundary of the implementation at an outer link p is moved to the
    interface's link ports[p], which a fixed virtual joint ties to p. So the frame of a port must be
    that of its outer link. Names of interface links and joints get the prefix ``name.``.

    Args:
        linkage: Changed in place, or not at all.
        implementation: Sublinkage A.
        interface: Linkage I, flat; its root must be one of the ports.
        ports: Outer link to interface link, for every outer link that a crossing joint of A uses.
        name: Of the new sublinkage.
    """
    checks.one_of("substitute, implementation", implementation, linkage.sublinkages)
    part = linkage.sublinkages[implementation]
    if part.parent is None:
        raise LinkageError(
            f"sublinkage {implementation!r}", "the top level cannot be substituted", rule="nesting"
        )
    outer = part.parent
    work = linkage.copy()
    crossing = [j for j in work.joints.values() if work.crossed(j) == implementation]
    for j in crossing:
        at = j.parent if work.links[j.parent].sublinkage != implementation else j.child
        if at not in ports:
            raise LinkageError(
                f"joint {j.name!r}", f"crosses at link {at!r}, which has no port", rule="ports"
            )
    for p, i in ports.items():
        checks.one_of("substitute, outer link", p, work.links)
        checks.one_of("substitute, port", i, interface.links)
    if interface.root not in ports.values():
        raise LinkageError(
            f"link {interface.root!r}", "the root of the interface must be a port", rule="ports"
        )
    work.add_sublinkage(name, "simultaneous", parent=outer)
    for l in interface.links.values():
        work.add_link(f"{name}.{l.name}", name, virtual=True)
    for j in interface.joints.values():
        renamed = replace(
            j, name=f"{name}.{j.name}", parent=f"{name}.{j.parent}", child=f"{name}.{j.child}",
            virtual=True,
        )  # fmt: skip
        work.insert_joint(renamed, interface.values.get(j.name, np.zeros(j.dof)).copy())
    work.sublinkages[implementation] = Sublinkage(implementation, name, "driven")
    for j in crossing:
        if work.links[j.parent].sublinkage != implementation:
            moved = replace(j, parent=f"{name}.{ports[j.parent]}")
        else:
            moved = replace(j, child=f"{name}.{ports[j.child]}")
        # An incrossing tree joint of A would move the interface: it becomes a closure.
        if moved.closure is False and work.links[moved.parent].sublinkage == implementation:
            moved = replace(moved, closure=True)
        work.replace_joint(moved)
    for p, i in ports.items():
        title = f"{name}.port.{p}"
        target = f"{name}.{i}"
        if i == interface.root:
            work.add_joint(title, "fixed", p, target, closure=False, virtual=True)
        else:
            work.add_joint(title, "fixed", target, p, closure=None, virtual=True)
    work.journal.append(("add_sublinkage", name))
    assign_roles(work)
    validate(work)
    linkage.adopt(work)


@dataclass(frozen=True)
class Properness:
    """Outcome of a search for a counterexample.

    Attributes:
        refuted: True if the witness shows that the abstraction is improper; False proves nothing.
        samples: Configurations of the interface that were tried.
        worst_residual: Largest residual of what the interface drives [m or rad].
        worst_closure: Where it occurred.
        witness: Coordinates of the interface's joints at the worst configuration.
    """

    refuted: bool
    samples: int
    worst_residual: float
    worst_closure: str
    witness: dict[str, Array]


def check_proper(
    linkage: Linkage,
    interface: str,
    *,
    samples: int = 200,
    seed: int = 0,
    tolerance: float = 1e-6,
    task: Task | None = None,
) -> Properness:
    """Try to refute that a sublinkage is a proper abstraction of what it drives.

    The interface's joints are put to random values within their limits (pi or 1 m either way where
    there is none), its own closures are met, and what it drives is solved for, walking there from
    the present posture in steps. The corners of the limits are tried too.

    Args:
        linkage: Valid; unchanged.
        interface: Sublinkage with driven sublinkages in it (at any depth).
        samples: Configurations to try.
        seed: Of the random numbers.
        tolerance: Residual above which a configuration counts as out of reach.
        task: For cancel and timeout.
    """
    checks.one_of("interface", interface, linkage.sublinkages)
    if isinstance(samples, bool) or not 1 <= samples <= 1_000_000:
        raise LinkageError("samples", f"must be from 1 to 1000000, got {samples!r}")
    work = linkage.copy()
    for g in list(work.goals):
        work.remove_goal(g)
    inside = _descendants(work, interface)
    own = [
        j
        for j in work.tree_joints()
        if j.dof
        and not j.locked
        and work.links[j.child].sublinkage == interface
        and (work.crossed(j) or interface) == interface
    ]
    driven = {
        c.name
        for c in work.closure_joints()
        if {work.links[c.parent].sublinkage, work.links[c.child].sublinkage}
        & (inside - {interface})
    }
    if not own or not driven:
        raise LinkageError(
            f"sublinkage {interface!r}",
            "has no joints of its own, or drives nothing",
            rule="interface",
        )
    solver = Solver(work)
    start = {j.name: work.values[j.name].copy() for j in own}
    generator = np.random.default_rng(seed)
    worst, where, witness, tried = -1.0, "", start, 0
    for n in range(samples):
        if task is not None:
            task.check()
            task.progress(n / samples, "", samples=float(n))
        goal = _sample(own, n, generator)
        residual, closure = _drive(solver, own, start, goal, driven, tolerance)
        tried += 1
        if residual > worst:
            worst, where = residual, closure
            values = solver.values()
            witness = {j.name: values[j.name] for j in own}
        if residual > tolerance:
            break
    return Properness(worst > tolerance, tried, worst, where, witness)


def _descendants(linkage: Linkage, name: str) -> set[str]:
    inside = {name}
    grown = True
    while grown:
        more = {s.name for s in linkage.sublinkages.values() if s.parent in inside} - inside
        inside |= more
        grown = bool(more)
    return inside


def _sample(own: list, n: int, generator: np.random.Generator) -> dict[str, Array]:  # type: ignore[type-arg]
    """A corner of the limits for the first 2^k samples, then anything inside."""
    freedoms = sum(j.dof for j in own)
    corners = 2 ** min(freedoms, 6)
    goal = {}
    bit = 0
    for j in own:
        angular = np.array(j.kind.angular)
        reach = np.where(angular, np.pi, 1.0)
        low = np.where(np.isfinite(j.lower), j.lower, -reach)
        high = np.where(np.isfinite(j.upper), j.upper, reach)
        share = generator.uniform(size=j.dof)
        if n < corners and freedoms <= 6:
            share = np.array([float(n >> (bit + i) & 1) for i in range(j.dof)])
            bit += j.dof
        goal[j.name] = low + share * (high - low)
    return goal


def _drive(
    solver: Solver,
    own: list,  # type: ignore[type-arg]
    start: dict[str, Array],
    goal: dict[str, Array],
    driven: set[str],
    tolerance: float,
) -> tuple[float, str]:
    """Walk the interface from start to goal and let the rest follow; the residual at the end.

    A posture that is only locally stuck must not count: the walk is tried with ever finer steps,
    each from the linkage's own posture.
    """
    best, where = np.inf, ""
    for steps in (4, 16, 64):
        solver.adopt_values(solver.linkage.values)
        for i in range(1, steps + 1):
            s = i / steps
            solver.set_values({j.name: (1 - s) * start[j.name] + s * goal[j.name] for j in own})
            solver.solve(tolerance=0.1 * tolerance, max_iterations=100, restarts=0)
        parts = [r for r in solver.residuals(tolerance) if r.name in driven]
        top = max(parts, key=lambda r: r.size)
        if top.size < best:
            best, where = top.size, top.name
        if best <= tolerance:
            break
    return float(best), where
