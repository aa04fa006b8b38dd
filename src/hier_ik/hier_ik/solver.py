"""The solver: task-priority damped least squares over components in solve order."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hier_ik.bodies import pose_rows, unpack
from hier_ik.closures import relative_poses
from hier_ik.compile import Compiled, compile_linkage
from hier_ik.decompose import Decomposition, decompose
from hier_ik.dense import CholeskyStep, SvdStep
from hier_ik.descent import Descent, Effort
from hier_ik.elements import coordinates
from hier_ik.errors import LinkageError
from hier_ik.fallback import SparseStep, Step
from hier_ik.files import apply_edits
from hier_ik.joints import joint_coordinates
from hier_ik.linkage import Linkage
from hier_ik.reach import beyond_reach, on_one_level, other_starts
from hier_ik.solution import Ending, Places, Posture, Residual, Solution, SolverOptions
from hier_ik.spanning import assign_roles
from hier_ik.split import outer_name, split_closures
from hier_ik.tables import Array, Tables
from hier_ik.validation import validate
from kin_core import checks
from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Task

__all__ = ["MODES", "Residual", "Solution", "Solver", "SolverOptions"]


#: Hierarchical; or the flattened linkage with exact priorities block by block, with a sparse
#: factorisation, with dense normal equations, with dense singular values.
MODES = ("hierarchical", "flat_structured", "flat_sparse", "flat_cholesky", "flat_svd")
#: Work spent on other starts, in iterations times freedoms.
WORK = 100_000
_FALLBACK: dict[str, type[Step]] = {
    "flat_sparse": SparseStep,
    "flat_cholesky": CholeskyStep,
    "flat_svd": SvdStep,
}


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
        self._seen = -1
        self._decomposition: Decomposition | None = None
        self._descent: Descent | None = None
        self._build()
        self._compile()

    def copy(self) -> Solver:
        """Another solver of the same linkage at the same posture.

        It shares what no solve changes, so it costs far less than to build one; what is done with
        it, edits too, leaves this one alone.
        """
        self.refresh()
        other = copy.copy(self)
        other.linkage = self.linkage.copy(own_values=False)  # the posture is in the tables
        if self._work is self.linkage:
            other._work = other.linkage
        other._seen = len(other.linkage.journal)
        other._descent = self.descent.copy()
        return other

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

    def edit(self, edits: Any, *, max_links: int | None = None) -> bool:
        """Make a list of edits and take them up, all or nothing; see apply_edits().

        Args:
            edits: List of mappings with ``op``.
            max_links: Largest number of links that is taken.

        Returns:
            Whether the linkage was decomposed anew.

        Raises:
            InvalidInput: Refused; the linkage, the posture and the tables are as they were.
            LimitExceeded: More links than are taken; likewise.
        """
        self.refresh()
        linkage, before = self.linkage, self.linkage.copy()
        entries, tables = len(linkage.journal), dict(self.__dict__)
        try:
            self.store()
            apply_edits(linkage, edits)
            if max_links is not None:
                checks.count("links", len(linkage.links), max_links)
            self.refresh()
            _ = self.compiled
        except BaseException:
            linkage.adopt(before)
            del linkage.journal[entries:]
            self.__dict__.update(tables)
            raise
        return self.decompositions != tables["decompositions"]

    def values(self) -> dict[str, Array]:
        """Coordinates of all joints [rad or m]; those of closures are read off the poses."""
        return self._posture().values()

    def _posture(self) -> Posture:
        self.refresh()
        poses = np.zeros((len(self.compiled.closure_of), 12))
        self.descent.kinematics()
        relative_poses(self.tables.bodies, self.tables.closures, poses)
        poses[:, 9:] *= self.compiled.bodies.length
        return Posture(self.q, poses, self._places)

    @property
    def q(self) -> Array:
        """Coordinates of all tree joints in kernel order [rad or m]; a copy."""
        return self.descent.q * self.compiled.bodies.unit

    def set_values(self, values: Mapping[str, ArrayLike]) -> None:
        """Set coordinates of tree joints.

        Raises:
            InvalidInput: Unknown joint, wrong number of coordinates, not finite, or a closure.
        """
        self.refresh()
        if not values:
            return
        checked = []
        for name, value in values.items():
            checks.one_of("joint", name, self.linkage.joints)
            if name not in self.compiled.bodies.dof_of:
                raise LinkageError(
                    f"joint {name!r}", "a closure has no value to set", rule="values of the tree"
                )
            dof = self.linkage.joints[name].dof
            checked.append((name, coordinates(f"joint {name!r}, value", value, dof)))
        of = self.compiled.bodies
        for name, v in checked:
            part = slice(of.dof_of[name], of.dof_of[name] + len(v))
            self.descent.q[part] = v / of.unit[part]
        self.descent.kinematics()

    def adopt_values(self, values: Mapping[str, ArrayLike]) -> None:
        """Set the tree joints among these, such as the values of a solution."""
        tree = self.compiled.bodies.dof_of
        self.set_values({n: v for n, v in values.items() if n in tree})

    def stand_like(self, other: Solver) -> None:
        """Take the posture of another solver of the same linkage, and the targets of its goals."""
        self.refresh()
        if self.compiled.bodies.dof_of == other.compiled.bodies.dof_of:
            self.descent.q[:] = other.q / self.compiled.bodies.unit
            self.descent.kinematics()
        else:  # not in one mode: closures with limits may be taken apart in one of them alone
            self.adopt_values(other.values())
        for goal in other.linkage.goals.values():
            if goal.name in self.linkage.goals:
                self.set_goal(goal.name, goal.target)

    def value(self, joint: str) -> Array:
        """Coordinates of one tree joint (dof,) [rad or m]; a copy."""
        self.refresh()
        first = self.compiled.bodies.dof_of[checks.one_of("joint", joint, self.linkage.joints)]
        part = slice(first, first + self.linkage.joints[joint].dof)
        value: Array = self.descent.q[part] * self.compiled.bodies.unit[part]
        return value

    def store(self, keep: Iterable[str] = ()) -> None:
        """Write the posture into the linkage, but for the joints named in ``keep``."""
        if self._descent is None:
            return  # edited and not moved since: the linkage has the posture
        spared, q = set(keep), self.q
        for name, first in self.compiled.bodies.dof_of.items():
            joint = self.linkage.joints.get(name)
            if joint is not None and joint.closure is False and name not in spared:
                self.linkage.values[name] = q[first : first + joint.dof].copy()

    def poses(self, links: Iterable[str] | None = None) -> dict[str, Array]:
        """Poses of links in the root frame (4, 4)."""
        self.refresh()
        self.descent.kinematics()
        of, poses = self.compiled.bodies, pose_rows(self.tables.bodies["pose"])
        names = self.linkage.links if links is None else list(links)
        for name in names:
            checks.one_of("link", name, self.linkage.links)
        return {n: unpack(poses[of.link_body[n]], of.length) @ of.link_offset[n] for n in names}

    def set_goal(self, name: str, target: ArrayLike) -> None:
        """Move a goal: its target frame (4, 4) or position (3,) in the reference link."""
        self.refresh()
        self.linkage.set_goal(name, target)
        self.compiled.set_target(self.linkage.goals[name])

    def put_goal(
        self,
        name: str,
        link: str,
        kind: str = "pose",
        *,
        target: ArrayLike,
        offset: ArrayLike | None = None,
        reference: str | None = None,
        rows: Sequence[bool] | None = None,
        priority: int | None = None,
        weight: float | None = None,
    ) -> None:
        """Add a goal, or change the one of this name; a goal that only moves costs next to nothing.

        The arguments are those of Linkage.add_goal(). With an empty ``link`` only the target of a
        known goal changes. A priority or weight of None is the default, or the one that a goal has
        which only moves.

        Raises:
            InvalidInput: Refused; a known goal stays as it was.
        """
        linkage, known = self.linkage, self.linkage.goals.get(name)
        moves = known is not None and (
            not link
            or (
                (known.link, known.reference, known.kind) == (link, reference or linkage.root, kind)
                and (kind != "rows" or rows is None or known.rows == tuple(rows))
                and np.array_equal(known.offset, np.eye(4) if offset is None else offset)
                and priority in (None, known.priority)
                and weight in (None, known.weight)
            )
        )
        if moves:
            self.set_goal(name, target)
            return
        arguments: dict[str, Any] = {
            "target": target, "offset": offset, "reference": reference, "rows": rows,
            "priority": priority, "weight": 1.0 if weight is None else weight,
        }  # fmt: skip
        trial = linkage.copy()  # so that a refused goal leaves the old one
        for work in (trial, linkage):
            if known is not None:
                work.remove_goal(name)
            work.add_goal(name, link, kind, **arguments)

    # ---- solving ----------------------------------------------------------------------------

    def iterate(self) -> float:
        """One iteration over all rounds; returns the largest residual of a component before it."""
        self.refresh()
        return self.descent.iterate()

    def solve(
        self,
        *,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        step_time: float | None = None,
        restarts: int | None = None,
        other_assemblies: bool = False,
        task: Task | None = None,
    ) -> Solution:
        """Iterate until every task is met, or as well as the priorities allow.

        Position limits hold for every joint that may move: a start outside is first brought inside.
        With ``step_time`` joints move at most velocity limit times step_time; one that starts
        outside its limits then comes back as fast as it may. Locked joints stay where they are.

        Where not everything can be met, a level is never left open for the sake of a lower one.
        Where a solve comes to rest short of its tasks, it tries to step out of a singular posture;
        then, without ``step_time``, other starts tell UNREACHABLE from a local minimum.

        Args:
            tolerance: Residual at which a task counts as met [m or rad].
            max_iterations: Iterations allowed.
            step_time: Time that the motion may take [s]; None: velocity limits do not count.
            restarts: Other starts to try; as in the options if not given.
            other_assemblies: Where only another start meets the tasks, answer that posture, however
                far from the start; without it, it is offered as ``alternative``.
            task: For cancel, timeout and progress.
        """
        self.refresh()
        tolerance = self.options.tolerance if tolerance is None else tolerance
        limit = self.options.max_iterations if max_iterations is None else max_iterations
        checks.positive("tolerance", tolerance)
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1_000_000:
            raise InvalidInput("max_iterations", f"must be from 1 to 1000000, got {limit!r}")
        restarts = self.options.restarts if restarts is None else restarts
        descent = self.descent
        descent.box(step_time)
        start = descent.q.copy()
        effort = Effort(tolerance, limit, task=task)
        if task is not None:
            effort.flag = task.flag
        ending = Ending(at_rest=descent.descend(effort))
        if descent.met(tolerance):
            return self._solution(effort, ending)
        descent.hold_levels(start, tolerance, limit)
        if not descent.met(tolerance) and not effort.flag[0]:
            ending.far = self._beyond_reach(tolerance)
            if ending.at_rest and ending.far is None:
                descent.step_out(effort)
                short = not descent.met(tolerance) and not effort.flag[0]
                if short and step_time is None and restarts:
                    ending.searched, ending.alternative = self._elsewhere(restarts, effort)
                if ending.alternative is not None and other_assemblies:
                    self._move_to(ending.alternative, effort)
        return self._solution(effort, ending)

    def residuals(self, tolerance: float | None = None) -> tuple[Residual, ...]:
        """Residual of every closure and goal at the present posture."""
        self.refresh()
        tolerance = self.options.tolerance if tolerance is None else tolerance
        out = self.descent.sizes()
        # Lists: reading a thousand numbers one by one from an array takes longer than to solve.
        level = self.tables.closures["level"].tolist()
        component = self.tables.closures["component"].tolist()
        met = (out.max(axis=1) <= tolerance).tolist()
        sizes = out.tolist()
        return tuple(
            Residual(
                outer_name(name),
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
        self._work, self._held = split_closures(work)
        news = linkage.journal[self._seen :] if self._seen >= 0 else [("", "")]
        if self._decomposition is None or not self._decomposition.outlives(news):
            self._decomposition = decompose(self._work, membership=self.options.membership)
            self.decompositions += 1
        used = self._decomposition
        if self.mode in ("flat_cholesky", "flat_svd"):
            used = used.merged()
        self._used = used
        self._descent = None
        self._seen = len(linkage.journal)

    @property
    def descent(self) -> Descent:
        """What moves the posture; made when first needed after an edit."""
        return self._descent if self._descent is not None else self._compile()

    @property
    def compiled(self) -> Compiled:
        """The tables of the linkage, and where each named element is in them."""
        return self.descent.compiled

    @property
    def tables(self) -> Tables:
        """The tables alone; see tables.py."""
        return self.descent.tables

    def _compile(self) -> Descent:
        compiled = compile_linkage(self._work, self._used, fallback=self.mode in _FALLBACK)
        joints = self.linkage.joints
        tree = {
            name: slice(first, first + self._work.joints[name].dof)
            for name, first in compiled.bodies.dof_of.items()
            if name in joints
        }
        self._places = Places(
            list(tree.items()),
            [
                (name, i, joints[name].type)
                for name, i in compiled.closure_of.items()
                if name in joints and name not in tree
            ],
            self._held,
            {name: j.virtual for name, j in joints.items()},
        )
        rests = any(j.rest is not None for j in self._work.joints.values())
        self._descent = Descent(
            compiled,
            _FALLBACK.get(self.mode, SparseStep),
            rest=self.options.rest_gain if rests else 0.0,
            patience=self.options.patience,
        )
        return self._descent

    # ---- when not everything can be met -----------------------------------------------------

    def _beyond_reach(self, tolerance: float) -> tuple[str, float, float] | None:
        """A goal that is farther away than its chain is long, with both lengths."""
        for goal in self.linkage.goals.values():
            far = beyond_reach(self.linkage, goal)
            if far is not None and far[0] > far[1] + tolerance:
                return goal.name, *far
        return None

    def _elsewhere(self, count: int, effort: Effort) -> tuple[bool, dict[str, Array] | None]:
        """Look for a posture that meets every task from other starts, loops open on the way.

        Returns whether all starts could be tried within the budget, and the posture.
        """
        self.store()
        options = replace(self.options, rest_gain=0.0, restarts=0)
        flat = Solver(on_one_level(self.linkage), "flat_structured", options)
        descent = flat.descent
        budget = WORK // max(len(descent.q), 1)
        spent = Effort(effort.tolerance, budget, effort.flag)
        for values in other_starts(flat.linkage, self.compiled.bodies.length, count):
            if effort.flag[0] or len(spent.history) >= budget:
                return False, None
            flat.set_values(values)
            descent.box(None)
            spent.limit = min(len(spent.history) + 100, budget)
            descent.descend(spent)
            if descent.met(effort.tolerance):
                flat.store()
                return True, dict(flat.linkage.values)
        return True, None

    def _move_to(self, values: dict[str, Array], effort: Effort) -> None:
        """Go over to a posture that meets every task, if it does so within the hierarchy too."""
        descent = self.descent
        before = descent.q.copy()
        self.adopt_values(values)
        effort.limit += len(effort.history)
        descent.descend(effort)
        if not descent.met(effort.tolerance):
            descent.q[:] = before
            descent.kinematics()

    def _solution(self, effort: Effort, ending: Ending) -> Solution:
        if effort.task is not None and effort.task.stopped:
            ending.stopped = StatusCode.CANCELLED if effort.flag[0] == 1 else StatusCode.TIMEOUT
        ending.iterations = len(effort.history)
        ending.early = self._used.early
        ending.at_limit, ending.outside = self._at_limit()
        parts = self.residuals(effort.tolerance)
        missed = sorted((r for r in parts if not r.met), key=lambda r: (-r.size, r.name))
        unmet = tuple(r.name for r in missed)
        closures = max((r.size for r in parts if not r.goal), default=0.0)
        worst = max([closures, *(r.size for r in parts if r.goal)])
        code, message = ending.verdict(len(parts), unmet, worst)
        return Solution(
            not unmet, code, message, ending.iterations, worst, closures, parts, unmet,
            ending.at_limit, self._posture(), tuple(effort.history), ending.outside,
            ending.alternative,
        )  # fmt: skip

    def _at_limit(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Joints at a limit, and locked joints beyond one."""
        c, q = self.compiled.bodies, self.q
        tight = (q <= c.lower + 1e-12) | (q >= c.upper - 1e-12)
        names = [
            (name, slice(first, first + self._work.joints[name].dof))
            for name, first in (c.dof_of.items() if tight.any() else ())
        ]
        outside = [n for n, s in names if (c.locked & ((q < c.lower) | (q > c.upper)))[s].any()]
        for name, X in self._held.items():
            j = self.linkage.joints[name]
            value = joint_coordinates(j.type, X)
            if ((value < j.lower) | (value > j.upper)).any():
                outside.append(name)
        at_limit = [n for n, s in names if tight[s].any()]
        return tuple(dict.fromkeys(at_limit + outside)), tuple(outside)
