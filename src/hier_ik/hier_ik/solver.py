"""The solver: task-priority damped least squares over components in solve order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hier_ik import layout as at
from hier_ik.compile import Compiled, compile_linkage, pack, unpack
from hier_ik.decompose import Component, Decomposition, decompose
from hier_ik.errors import LinkageError
from hier_ik.iteration import (
    all_kinematics,
    relative_poses,
    relax,
    residuals,
    run,
)
from hier_ik.joints import joint_coordinates
from hier_ik.linkage import Linkage
from hier_ik.outside import CholeskyStep, OutsideComponent, SparseStep, Step, SvdStep
from hier_ik.spanning import assign_roles, reversed_joint
from hier_ik.validation import validate
from kin_common import checks
from kin_common.errors import InvalidInput, StatusCode
from kin_common.task import Task

__all__ = ["MODES", "Residual", "Solution", "Solver", "SolverOptions"]

Array = NDArray[np.float64]

#: Hierarchical; or the flattened linkage with exact priorities block by block, with a sparse
#: factorisation, with dense normal equations, with dense singular values.
MODES = ("hierarchical", "flat_structured", "flat_sparse", "flat_cholesky", "flat_svd")
_OUTSIDE: dict[str, type[Step]] = {
    "flat_sparse": SparseStep,
    "flat_cholesky": CholeskyStep,
    "flat_svd": SvdStep,
}


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How to solve.

    Attributes:
        tolerance: Residual at which a task counts as met [m or rad].
        max_iterations: Iterations of one solve().
        rest_gain: Share of the way to the rest posture per iteration, 0 to leave it alone.
        membership: Where crossing tree joints of driving sublinkages belong; see decompose().
        patience: Iterations without progress after which a solve ends.
    """

    tolerance: float = 1e-9
    max_iterations: int = 200
    rest_gain: float = 0.2
    membership: str = "paper"
    patience: int = 30


@dataclass(frozen=True)
class Residual:
    """How far one closure or goal is from being met.

    Attributes:
        name: Closure joint or goal.
        level: Priority level.
        component: Index in solve order.
        position: Norm of its position rows [m].
        rotation: Norm of its rotation rows [rad].
        met: Whether both are within the tolerance.
        goal: Whether it is a goal and not a closure.
    """

    name: str
    level: int
    component: int
    position: float
    rotation: float
    met: bool
    goal: bool

    @property
    def size(self) -> float:
        """The larger of the two norms."""
        return max(self.position, self.rotation)


@dataclass(frozen=True)
class Solution:
    """The outcome of a solve.

    Attributes:
        success: Whether every task is met.
        code: SUCCESS, UNREACHABLE (at rest but not met), NOT_CONVERGED, TIMEOUT or CANCELLED.
        message: One sentence for people.
        iterations: Iterations made.
        residual: Largest residual of all tasks [m or rad].
        closure_residual: Largest residual of the closures alone.
        residuals: One per closure and goal.
        unmet: Names of what is not met, worst first.
        at_limit: Joints that stand at a limit.
        posture: Where the joints are; ``values`` gives it by name.
        history: Residual before each iteration.
    """

    success: bool
    code: StatusCode
    message: str
    iterations: int
    residual: float
    closure_residual: float
    residuals: tuple[Residual, ...] = field(repr=False)
    unmet: tuple[str, ...]
    at_limit: tuple[str, ...]
    posture: Posture = field(repr=False)
    history: tuple[float, ...] = field(repr=False)

    @cached_property
    def values(self) -> dict[str, Array]:
        """Coordinates of all joints; those of closures are read off the poses."""
        return self.posture.values()


@dataclass(frozen=True)
class _Places:
    """Where the coordinates of the joints are found in the tables.

    Attributes:
        tree: Tree joints and their parts of q.
        closures: Closure joints, their rows in the table of relative poses, and their types.
    """

    tree: list[tuple[str, slice]]
    closures: list[tuple[str, int, str]]


@dataclass(frozen=True)
class Posture:
    """The coordinates of all joints at one moment, not yet given to each by name.

    That takes longer than to solve, and not everybody wants it.

    Attributes:
        q: Coordinates of the tree joints.
        poses: Relative poses of the closures.
        places: Which of them belong to which joint.
    """

    q: Array
    poses: Array
    places: _Places

    def values(self) -> dict[str, Array]:
        """Coordinates of each joint [rad or m]; each is a part of one array."""
        out = {name: self.q[part] for name, part in self.places.tree}
        for name, row, kind in self.places.closures:
            out[name] = joint_coordinates(kind, unpack(self.poses[row]))
        return out


class Solver:
    """Solves one linkage, again and again, while goals move and topology changes.

    Edit ``solver.linkage`` as you like; the next call notices. The linkage is decomposed anew only
    if an edit can change its decomposition (``decompositions`` counts). Between calls the posture
    lives here: read it with values(), poses() or store().
    """

    def __init__(
        self,
        linkage: Linkage,
        mode: str = "hierarchical",
        options: SolverOptions | None = None,
    ) -> None:
        """Validate, decompose and compile.

        Args:
            linkage: Roles of its joints are found where they are not marked.
            mode: One of MODES.
            options: How to solve.

        Raises:
            LinkageError: The linkage breaks a rule.
        """
        checks.one_of("mode", mode, MODES)
        self.linkage = linkage
        self.mode = mode
        self.options = options or SolverOptions()
        self.decompositions = 0
        self._flag = np.zeros(1, np.int64)
        self._go, self._one = np.zeros(1, np.int64), np.zeros(1)
        self._seen = -1
        self._decomposition: Decomposition | None = None
        self._compiled: Compiled | None = None
        self._outside: dict[int, OutsideComponent] = {}
        self._rest = 0.0
        self._build()
        self._compile()

    # ---- the posture ------------------------------------------------------------------------

    @property
    def decomposition(self) -> Decomposition:
        """The decomposition of the linkage as it is now."""
        self.refresh()
        assert self._decomposition is not None  # noqa: S101 (made by refresh)
        return self._decomposition

    def refresh(self) -> bool:
        """Take up edits of the linkage; return whether it was decomposed anew."""
        if self._seen == len(self.linkage.journal):
            return False
        before = self.decompositions
        self.store(keep={n for op, n in self.linkage.journal[self._seen :] if op == "set_value"})
        self._build()
        return self.decompositions != before

    def values(self) -> dict[str, Array]:
        """Coordinates of all joints [rad or m]; those of closures are read off the poses."""
        return self._posture().values()

    def _posture(self) -> Posture:
        self.refresh()
        poses = np.zeros((len(self.compiled.closure_of), 12))
        all_kinematics(self._I, self._X)
        relative_poses(self._I, self._X, poses)
        return Posture(self.q.copy(), poses, self._places)

    @property
    def q(self) -> Array:
        """Coordinates of all tree joints in kernel order; a view, not a copy."""
        return self.compiled.packed[at.Q]

    def set_values(self, values: Mapping[str, ArrayLike]) -> None:
        """Set coordinates of tree joints.

        Raises:
            InvalidInput: Unknown joint, wrong number of coordinates, not finite, or a closure.
        """
        self.refresh()
        checked = []
        for name, value in values.items():
            checks.one_of("joint", name, self.linkage.joints)
            if name not in self.compiled.dof_of:
                raise LinkageError(
                    f"joint {name!r}", "a closure has no value to set", rule="values of the tree"
                )
            dof = self.linkage.joints[name].dof
            v = np.atleast_1d(checks.finite(f"joint {name!r}", value))
            checked.append((name, checks.shape(f"joint {name!r}", v, (dof,))))
        for name, v in checked:
            first = self.compiled.dof_of[name]
            self.q[first : first + len(v)] = v
        all_kinematics(self._I, self._X)

    def store(self, keep: Iterable[str] = ()) -> None:
        """Write the posture into the linkage, but for the joints named in ``keep``."""
        if self._compiled is None:
            return  # edited and not moved since: the linkage has the posture
        spared = set(keep)
        for name, first in self.compiled.dof_of.items():
            joint = self.linkage.joints.get(name)
            if joint is not None and joint.closure is False and name not in spared:
                self.linkage.values[name] = self.q[first : first + joint.dof].copy()

    def poses(self, links: Iterable[str] | None = None) -> dict[str, Array]:
        """Poses of links in the root frame (4, 4)."""
        self.refresh()
        all_kinematics(self._I, self._X)
        F = self.compiled.packed[at.POSE]
        names = self.linkage.links if links is None else list(links)
        for name in names:
            checks.one_of("link", name, self.linkage.links)
        return {
            n: unpack(F[self.compiled.link_body[n]]) @ self.compiled.link_offset[n] for n in names
        }

    def set_goal(self, name: str, target: ArrayLike) -> None:
        """Move a goal: its target frame (4, 4) or position (3,) in the reference link."""
        self.refresh()
        self.linkage.set_goal(name, target)
        goal = self.linkage.goals[name]
        i = self.compiled.closure_of[name]
        self.compiled.packed[at.OFFSET_A][i] = pack(
            self.compiled.link_offset[goal.reference] @ goal.target
        )

    # ---- solving ----------------------------------------------------------------------------

    def iterate(self) -> float:
        """One iteration over all rounds; returns the largest residual of a component before it."""
        self.refresh()
        _ = self.compiled
        return self._iterate()

    def solve(
        self,
        *,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        step_time: float | None = None,
        task: Task | None = None,
    ) -> Solution:
        """Iterate until every task is met, or as well as the priorities allow.

        Position limits hold for every result: a start outside is first brought inside. With
        ``step_time`` joints move at most velocity limit times step_time; one that starts outside
        its limits then comes back as fast as it may.

        Args:
            tolerance: Residual at which a task counts as met [m or rad].
            max_iterations: Iterations allowed.
            step_time: Time that the motion may take [s]; None: velocity limits do not count.
            task: For cancel, timeout and progress.
        """
        self.refresh()
        _ = self.compiled
        tolerance = self.options.tolerance if tolerance is None else tolerance
        limit = self.options.max_iterations if max_iterations is None else max_iterations
        checks.positive("tolerance", tolerance)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1_000_000:
            raise InvalidInput("max_iterations", f"must be from 1 to 1000000, got {limit!r}")
        self._box(step_time)
        all_kinematics(self._I, self._X)
        self.compiled.packed[at.LAM][:] = 1e-4
        history: list[float] = []
        at_rest = False
        flag = self._flag if task is None else task.flag
        best, since = math.inf, 0
        while len(history) < limit and not flag[0]:
            size = min(10, limit - len(history))
            if task is not None and task.stopped:
                break
            made, moved, worst = self._some(size, tolerance, flag, history)
            if task is not None:
                goals = [(n, self.compiled.closure_of[n]) for n in self.linkage.goals]
                task.progress(
                    _fraction(history, tolerance),
                    "",
                    iteration=len(history),
                    residual=worst,
                    closure_residual=self._closure_worst(goals),
                )
            if worst <= tolerance and (not self._rest or moved < 1e-6) and self._met(tolerance):
                at_rest = True
                break
            if moved < 1e-12:
                at_rest = True
                break
            better = worst < best * (1.0 - 1e-6) or (self._rest and worst <= tolerance)
            since = 0 if better else since + made
            best = min(best, worst)
            if since >= self.options.patience:
                at_rest = moved < 1e-6
                break
        if not self._met(tolerance):
            self._restore_closures(tolerance, flag)
        return self._solution(tolerance, history, at_rest, flag, task)

    def residuals(self, tolerance: float | None = None) -> tuple[Residual, ...]:
        """Residual of every closure and goal at the present posture."""
        self.refresh()
        _ = self.compiled
        tolerance = self.options.tolerance if tolerance is None else tolerance
        all_kinematics(self._I, self._X)
        out = np.zeros((len(self.compiled.closure_of), 2))
        residuals(self._I, self._X, out)
        # Lists: reading a thousand numbers one by one from an array takes longer than to solve.
        level = self.compiled.packed[at.CLOSURES][:, 7].tolist()
        component = np.asarray(self.compiled.component_of).tolist()
        met = (out.max(axis=1) <= tolerance).tolist()
        sizes = out.tolist()
        return tuple(
            Residual(
                name.removesuffix(_SPLIT),
                int(level[i]),
                int(component[i]),
                sizes[i][0],
                sizes[i][1],
                met[i],
                name in self.linkage.goals,
            )
            for name, i in self.compiled.closure_of.items()
        )

    # ---- inside -----------------------------------------------------------------------------

    def _build(self) -> None:
        linkage = self.linkage
        assign_roles(linkage)
        validate(linkage)
        work = linkage if self.mode == "hierarchical" else linkage.flattened()
        self._work = split_limited_closures(work)
        news = linkage.journal[self._seen :] if self._seen >= 0 else [("", "")]
        if self._decomposition is None or not _harmless(news, self._decomposition):
            self._decomposition = decompose(self._work, membership=self.options.membership)
            self.decompositions += 1
        used = self._decomposition
        if self.mode in ("flat_cholesky", "flat_svd"):
            used = _merged(used)
        self._used = used
        self._compiled = None
        self._seen = len(linkage.journal)

    @property
    def compiled(self) -> Compiled:
        """The tables; made when first needed after an edit."""
        if self._compiled is None:
            self._compile()
        assert self._compiled is not None  # noqa: S101 (just made)
        return self._compiled

    def _compile(self) -> None:
        self._compiled = compile_linkage(self._work, self._used, outside=self.mode in _OUTSIDE)
        packed = self._compiled.packed
        method = _OUTSIDE.get(self.mode, SparseStep)
        kinds = packed[at.COMPS][:, at.KIND]
        self._outside = {
            int(k): OutsideComponent(packed, int(k), method)
            for k in np.flatnonzero(kinds == at.OUTSIDE)
        }
        joints = self.linkage.joints
        tree = {
            name: slice(first, first + self._work.joints[name].dof)
            for name, first in self._compiled.dof_of.items()
            if name in joints
        }
        self._places = _Places(
            list(tree.items()),
            [
                (name, i, joints[name].type)
                for name, i in self._compiled.closure_of.items()
                if name in joints and name not in tree
            ],
        )
        self._rest = self.options.rest_gain
        if not any(j.rest is not None for j in self._work.joints.values()):
            self._rest = 0.0
        self._box(None)
        all_kinematics(self._I, self._X)

    @property
    def _I(self) -> NDArray[np.int64]:
        return self.compiled.packed.I

    @property
    def _X(self) -> Array:
        return self.compiled.packed.X

    def _box(self, step_time: float | None) -> None:
        """Limits for what follows; the posture is brought inside them."""
        c = self.compiled
        low, high, q = c.packed[at.LOW], c.packed[at.HIGH], self.q
        low[:], high[:] = c.lower, c.upper
        if step_time is not None:
            reach = c.velocity * checks.positive("step_time", step_time)
            low[:] = np.maximum(c.lower, q - reach)
            high[:] = np.minimum(c.upper, q + reach)
            above, below = q - reach > c.upper, q + reach < c.lower
            low[above] = high[above] = (q - reach)[above]
            low[below] = high[below] = (q + reach)[below]
        np.clip(q, low, high, out=q)

    def _iterate(self) -> float:
        rounds = int(self._I[at.N_ROUNDS])
        if not self._outside:
            return self._pass(0, rounds)
        worst = 0.0
        for r, (begin, end, _, _) in enumerate(self.compiled.packed[at.ROUNDS]):
            worst = max(worst, self._pass(r, r + 1))
            for k in range(begin, end):
                if k in self._outside:
                    worst = max(worst, math.sqrt(self._outside[k].step()))
        if self._rest and rounds > 1:
            relax(self._I, self._X, self._rest)
        return worst

    def _pass(self, begin: int, end: int) -> float:
        """One iteration over some rounds; the largest residual of a component before it."""
        run(self._I, self._X, self._rest, begin, end, 1, 0.0, self._go, self._one)
        return float(self._one[0])

    def _some(
        self, size: int, tolerance: float, flag: Any, history: list[float]
    ) -> tuple[int, float, float]:
        """Up to ``size`` iterations; how many were made, the last step, the best residual."""
        if not self._outside:
            seen = np.zeros(size)
            rounds = int(self._I[at.N_ROUNDS])
            made = int(run(self._I, self._X, self._rest, 0, rounds, size, tolerance, flag, seen))
            history += seen[:made].tolist()
        else:
            made = 0
            for _ in range(size):
                if flag[0]:
                    break
                history.append(self._iterate())
                made += 1
                if history[-1] <= tolerance or self._moved() < 1e-13:
                    break
        worst = min(history[-made:], default=math.inf) if made else math.inf
        return made, self._moved(), worst

    def _moved(self) -> float:
        return float(self.compiled.packed[at.STEP].max(initial=0.0))

    def _met(self, tolerance: float) -> bool:
        all_kinematics(self._I, self._X)
        out = np.zeros((len(self.compiled.closure_of), 2))
        residuals(self._I, self._X, out)
        return bool(out.max(initial=0.0) <= tolerance)

    def _restore_closures(self, tolerance: float, flag: Any) -> None:
        """Where goals cannot be met, let the closures have the last word.

        The goals follow the posture for a few iterations, so that nothing pulls on the loops.
        """
        packed, c = self.compiled.packed, self.compiled
        goals = [(n, c.closure_of[n]) for n in self.linkage.goals if n in c.closure_of]
        if not goals or len(goals) == len(c.closure_of):
            return
        levels, component = packed[at.CLOSURES][:, 7], c.component_of
        chosen = [i for _, i in goals]
        loops = np.setdiff1d(np.arange(len(levels)), chosen)
        for i in chosen:  # whoever gives a goal the rank of a loop wants it so
            if (levels[loops[component[loops] == component[i]]] >= levels[i]).any():
                return
        kept = packed[at.OFFSET_A].copy()
        poses = np.zeros((len(c.closure_of), 12))
        before = self.q.copy()
        worst = self._closure_worst(goals)
        for _ in range(20):
            if flag[0] or worst <= 1e-3 * tolerance:
                break
            all_kinematics(self._I, self._X)
            relative_poses(self._I, self._X, poses)
            for _name, i in goals:
                packed[at.OFFSET_A][i] = pack(unpack(packed[at.OFFSET_A][i]) @ unpack(poses[i]))
            self._iterate()
            new = self._closure_worst(goals)
            if not new < worst:
                if new > worst:
                    self.q[:] = before
                break
            worst = new
            before = self.q.copy()
        packed[at.OFFSET_A][:] = kept
        all_kinematics(self._I, self._X)

    def _closure_worst(self, goals: list[tuple[str, int]]) -> float:
        all_kinematics(self._I, self._X)
        out = np.zeros((len(self.compiled.closure_of), 2))
        residuals(self._I, self._X, out)
        out[[i for _, i in goals]] = 0.0
        return float(out.max(initial=0.0))

    def _solution(
        self, tolerance: float, history: list[float], at_rest: bool, flag: Any, task: Task | None
    ) -> Solution:
        parts = self.residuals(tolerance)
        worst = max((r.size for r in parts), default=0.0)
        closures = max((r.size for r in parts if not r.goal), default=0.0)
        unmet = tuple(r.name for r in sorted(parts, key=lambda r: (-r.size, r.name)) if not r.met)
        limits = self._at_limit()
        if not unmet:
            code, message = StatusCode.SUCCESS, f"all {len(parts)} tasks met"
        elif task is not None and task.stopped:
            code = StatusCode.CANCELLED if flag[0] == 1 else StatusCode.TIMEOUT
            message = "stopped before all tasks were met"
        elif at_rest:
            code = StatusCode.UNREACHABLE
            message = f"{len(unmet)} of {len(parts)} tasks cannot be met from here"
        else:
            code = StatusCode.NOT_CONVERGED
            message = f"{len(unmet)} of {len(parts)} tasks not met in {len(history)} iterations"
        if unmet:
            message += f"; worst {unmet[0]!r} by {worst:.3g}"
            if limits:
                message += f"; {len(limits)} joints at a limit, first {limits[0]!r}"
        return Solution(
            not unmet, code, message, len(history), worst, closures, parts, unmet, limits,
            self._posture(), tuple(history),
        )  # fmt: skip

    def _at_limit(self) -> tuple[str, ...]:
        c, q = self.compiled, self.q
        tight = (q <= c.lower + 1e-12) | (q >= c.upper - 1e-12)
        if not tight.any():
            return ()
        return tuple(
            name
            for name, first in c.dof_of.items()
            if tight[first : first + self._work.joints[name].dof].any()
        )


#: Suffix of the closure and link that stand in for a closure joint with limits.
_SPLIT = "~end"


def split_limited_closures(linkage: Linkage) -> Linkage:
    """Give closure joints with limits a place in the tree, where limits are kept.

    Such a joint becomes a tree joint to a new virtual link, and a fixed closure from there; nothing
    else changes, and names stay.
    """
    limited = [j for j in linkage.closure_joints() if j.limited and j.dof]
    if not limited:
        return linkage
    out = linkage.copy()
    poses = linkage.link_poses({l for j in limited for l in (j.parent, j.child)})
    for j in limited:
        level = linkage.level(j)
        X = np.linalg.inv(poses[j.parent] @ j.origin) @ poses[j.child] @ j.child_origin
        inner = linkage.crossed(j)
        if inner is not None and linkage.links[j.child].sublinkage == inner:
            j = reversed_joint(j)  # its coordinates belong to the inner sublinkage
        end = j.name + _SPLIT
        value = joint_coordinates(j.type, X)
        out.add_link(end, linkage.links[j.parent].sublinkage, virtual=True)
        out.replace_joint(
            replace(j, child=end, child_origin=np.eye(4), closure=False, priority=None), value
        )
        out.add_joint(
            end, "fixed", end, j.child, child_origin=j.child_origin, closure=True,
            virtual=j.virtual, priority=level, weight=j.weight,
        )  # fmt: skip
    return out


def _merged(d: Decomposition) -> Decomposition:
    """All components as one, for the dense baselines."""
    closures = tuple(n for c in d.components for n in c.closures)
    joints = tuple(dict.fromkeys(n for c in d.components for n in c.joints))
    merged = (Component(0, 0, closures, joints),) if closures else ()
    return replace(d, components=merged)


def _harmless(news: list[tuple[str, str]], decomposition: Decomposition) -> bool:
    """Whether edits leave the decomposition as it is."""
    solved = {j for c in decomposition.components for j in c.joints}
    names = {n for c in decomposition.components for n in c.closures}
    for op, name in news:
        if op in ("add_leaf", "remove_leaf", "set_limits", "set_rest", "set_value", "add_link"):
            continue
        if op == "remove_link":
            continue  # its joints and goals have entries of their own
        if op == "lock" and name not in solved and name not in names:
            continue
        return False
    return True


def _fraction(history: list[float], tolerance: float) -> float:
    """Progress to the tolerance on a logarithmic scale."""
    if not history or history[-1] <= tolerance:
        return 1.0
    start = math.log(max(history[0], tolerance * 10) / tolerance)
    return max(0.0, 1.0 - math.log(history[-1] / tolerance) / start)
