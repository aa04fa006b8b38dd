"""The solver as a Python object: inverse and forward kinematics of one robot."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from continuum_ik.analysis import Analysis, analyse, present_margin, rod_places
from continuum_ik.errors import ContinuumError
from continuum_ik.forward import forward_run
from continuum_ik.layout import OUTCOME, duplicate, named
from continuum_ik.path import tell_last
from continuum_ik.pose import as_poses
from continuum_ik.reasons import FOLD, NOT_FINITE, ROUTE_NAMES, describe
from continuum_ik.robot import ContinuumRobot, Load
from continuum_ik.rod import LENGTH, RODS, Array
from continuum_ik.stability import CLOSE_STABLE, STABLE
from continuum_ik.tracking import run, track
from continuum_ik.workspace import build, find_home, set_tolerance
from kin_core import checks
from kin_core.errors import (
    InvalidInput,
    KinError,
    NotConverged,
    StatusCode,
    Unreachable,
)
from kin_core.task import Task

#: Sum of squares of the residual, as in the tutorial: lengths to some 10 um.
TUTORIAL = 1e-6
#: The tight setting: lengths to 1 nm.
TIGHT = 1e-12
#: What is said of a forward kinematics answer that a real platform would leave.
UNSTABLE = "an equilibrium that is not stable, like the one it starts from: a rod has buckled there"
_STABLE = (STABLE, CLOSE_STABLE)
#: What the compiled batch gets for "from the target before" and "lengths only".
_NOTHING, _NO_OUTCOMES = np.empty(0), np.empty(0, OUTCOME)
#: Most targets of one call.
BATCH_LIMIT = 1_000_000


class _Result:
    """What results have in common."""

    code: StatusCode
    residual: float
    iterations: int
    reason: str

    @property
    def success(self) -> bool:
        """Whether the request was solved."""
        return self.code == StatusCode.SUCCESS

    def check(self) -> Self:
        """Return self, or raise the error that the code stands for."""
        if self.success:
            return self
        about: dict[str, Any] = {"residual": self.residual, "iterations": self.iterations}
        if self.code == StatusCode.INVALID_INPUT:
            raise InvalidInput("", self.reason, **about)
        kinds: dict[StatusCode, type[KinError]] = {
            StatusCode.UNREACHABLE: Unreachable,
            StatusCode.NOT_CONVERGED: NotConverged,
        }
        raise kinds.get(self.code, ContinuumError)(self.reason, **about)


@dataclass(frozen=True, eq=False)
class IKResult(_Result):
    """How an inverse kinematics request ended.

    Attributes:
        code: Status.
        lengths: Leg lengths (6) [m]; NaN unless solved.
        forces: Force that each rod carries, (6, 3), base frame [N]; NaN unless solved.
        moments: Moment of each rod at the base, (6, 2) [N m]; NaN unless solved.
        residual: Sum of squares of the residual at these very lengths, forces and moments.
        leg_error: Estimated error of the lengths [m].
        iterations: Evaluations of the equations.
        reached: Part of the way from the last good pose that was reached; 1 = the pose itself.
        best_pose: The furthest pose that was reached, 12 numbers.
        limiting_leg: The leg or rod that hinders, or -1.
        route: How the solution was reached.
        stable: Whether the solution is a minimum of energy at its lengths, as a real platform
            needs. Unless the solver allows others, all solutions are.
        reason: For people; empty on success.
    """

    code: StatusCode
    lengths: Array
    forces: Array
    moments: Array
    residual: float
    leg_error: float
    iterations: int
    reached: float
    best_pose: Array
    limiting_leg: int
    route: str
    stable: bool
    reason: str


@dataclass(frozen=True, eq=False)
class FKResult(_Result):
    """How a forward kinematics request ended.

    Attributes:
        code: Status.
        pose: 12 numbers; the furthest pose reached unless solved.
        forces: Force that each rod carries, (6, 3), base frame [N]; NaN unless solved.
        residual: Sum of squares of the residual; NaN unless solved.
        iterations: Evaluations of the equations.
        reached: Part of the way from the start's lengths that was reached.
        limiting_leg: The leg or rod that hinders, or -1.
        stable: Whether the pose is a minimum of energy at these lengths, as a real platform needs.
        reason: For people; empty on success, unless the pose is not stable.
    """

    code: StatusCode
    pose: Array
    forces: Array
    residual: float
    iterations: int
    reached: float
    limiting_leg: int
    stable: bool
    reason: str


@dataclass(frozen=True, eq=False)
class Batch:
    """Answers to many inverse kinematics targets.

    Attributes:
        lengths: (n, 6) [m]; NaN where not solved.
        codes: (n,) status codes.
        residuals: (n,) sums of squares.
        forces: (n, 6, 3) [N]; NaN where not solved.
        reached: (n,) part of the way.
        best: (n, 12) poses reached.
        limiting_leg: (n,) or -1.
        reason: (n,) numbers of reasons.py.
        stable: (n,) whether the solutions are minima of energy; False where not solved.
    """

    lengths: Array
    codes: NDArray[np.uint8]
    residuals: Array
    forces: Array
    reached: Array
    best: Array
    limiting_leg: NDArray[np.int8]
    reason: NDArray[np.uint8]
    stable: NDArray[np.bool_]

    def message(self, k: int) -> str:
        """Return the sentence about target k; empty if it was solved."""
        return describe(int(self.reason[k]), int(self.limiting_leg[k]), float(self.reached[k]))


@dataclass(frozen=True, eq=False)
class FKBatch:
    """Answers to many forward kinematics requests.

    Attributes:
        poses: (n, 12); the furthest poses reached where not solved.
        codes: (n,) status codes.
        residuals: (n,) sums of squares; NaN where not solved.
        reached: (n,) part of the way.
        limiting_leg: (n,) or -1.
        reason: (n,) numbers of reasons.py.
        stable: Whether the solved poses are minima of energy. All are, or none: they are
            connected with the start without a singular point between.
    """

    poses: Array
    codes: NDArray[np.uint8]
    residuals: Array
    reached: Array
    limiting_leg: NDArray[np.int8]
    reason: NDArray[np.uint8]
    stable: bool

    def message(self, k: int) -> str:
        """Return the sentence about row k; empty if it was solved and is stable."""
        if self.codes[k] == StatusCode.SUCCESS:
            return "" if self.stable else UNSTABLE
        return _forward_reason(
            int(self.reason[k]), int(self.limiting_leg[k]), float(self.reached[k])
        )


class ContinuumSolver:
    """Inverse and forward kinematics of one robot, each solve starting from the last.

    Not for several threads at once: give each thread a ``copy``.

    Attributes:
        robot: The robot.
        track: ``track(pose) -> int``, the fastest call there is: a pose of 12 numbers (or position
            and quaternion, 7) in, a status code out, the lengths in ``lengths``.
        lengths: View of the last solution's lengths (6) [m].
        state: The array that kernels work in.
        named: The same with the names of layout.py.
    """

    def __init__(
        self,
        robot: ContinuumRobot | None = None,
        tolerance: float = TUTORIAL,
        *,
        detours: bool = True,
        allow_unstable: bool = False,
    ) -> None:
        """Build the solver and find the robot's home.

        Args:
            robot: The robot; the tutorial's if None.
            tolerance: Sum of squares of the residual that counts as solved, 1e-18 to 1e-2. Below
                1e-8 the estimated error of the lengths also has to be below 5e-10 m.
            detours: Whether a pose that cannot be reached straight from the last one may be reached
                by way of home.
            allow_unstable: Whether equilibria that are not stable count as solutions.

        Raises:
            RobotError: The description is wrong.
            NoHome: There is no equilibrium to start from.
        """
        self.robot = ContinuumRobot() if robot is None else robot
        self.state = build(self.robot, *_tolerances(tolerance))
        find_home(self.state, self.robot)
        self._bind()
        self.named.detours, self.allow_unstable = detours, allow_unstable

    def _bind(self) -> None:
        self.named = named(self.state)
        self.track: Callable[[Array], int] = functools.partial(track, self.state)
        self.lengths: Array = self.named.answer.y[LENGTH, :RODS]
        self._stable_at: tuple[tuple[str, int, float], bool] | None = None

    def copy(self) -> ContinuumSolver:
        """Return an independent solver in the same state; cheap."""
        other = object.__new__(type(self))
        other.robot = self.robot
        other.state = duplicate(self.state)
        other._bind()
        other._stable_at = self._stable_at
        return other

    def under(self, load: Load) -> ContinuumSolver:
        """Return a solver for the same robot under another load, at the same pose if it can be."""
        other = ContinuumSolver(
            self.robot.with_load(load),
            self.tolerance,
            detours=bool(self.named.detours),
            allow_unstable=self.allow_unstable,
        )
        if self.solved:
            other.solve(self.pose)  # or a cold start, if the load does not allow it
        return other

    @property
    def tolerance(self) -> float:
        """Sum of squares of the residual that counts as solved."""
        return float(self.named.tolerance)

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        set_tolerance(self.state, *_tolerances(value))

    @property
    def allow_unstable(self) -> bool:
        """Whether equilibria that are not stable count as solutions."""
        return bool(self.named.allow_unstable)

    @allow_unstable.setter
    def allow_unstable(self, value: bool) -> None:
        self.named.allow_unstable = value

    @property
    def solved(self) -> bool:
        """Whether there is a last solution."""
        return bool(self.named.count > 0)

    @property
    def _entry(self) -> str:
        """The name of the entry of the last solution, or home."""
        return "answer" if self.solved else "home"

    @property
    def pose(self) -> Array:
        """Pose of the last solution, or home; 12 numbers."""
        return np.array(self.named[self._entry].pose).reshape(12)

    @property
    def present_lengths(self) -> Array:
        """Lengths of the last solution, or home; (6) [m]."""
        return np.array(self.named[self._entry].y[LENGTH, :RODS])

    @property
    def home_lengths(self) -> Array:
        """Lengths at home (6) [m]."""
        return np.array(self.named.home.y[LENGTH, :RODS])

    @property
    def home(self) -> IKResult:
        """The robot's home, where cold starts begin, as an answer."""
        other = self.copy()
        w = other.named
        w.answer, w.reached, w.limiting = w.home, 1.0, -1
        return other.result(int(StatusCode.SUCCESS))

    @property
    def statistics(self) -> dict[str, int]:
        """Counts since the solver was made."""
        w = self.named
        return {
            "solved": int(w.solved_total),
            "evaluations": int(w.evaluations_total),
            "jacobians": int(w.refreshes_total),
            "recoveries": int(w.recovered_total),
        }

    def reset(self) -> None:
        """Forget the last solution: the next solve is a cold start from home."""
        self.named.count, self.named.age = 0, -1

    def solve(self, pose: ArrayLike) -> IKResult:
        """Solve for one pose (12 or 7 numbers, or 4x4), starting from the last solution."""
        target = np.asarray(pose, dtype=np.float64)
        if target.shape == (4, 4):
            target = as_poses(target)[0]
        if target.ndim != 1:
            raise InvalidInput("pose", f"must be 12 or 7 numbers or 4x4, got {target.shape}")
        return self.result(self.track(_own(target)))

    def result(self, code: int) -> IKResult:
        """Return everything about the last ``track``, given the code that it returned."""
        found = np.empty(1, OUTCOME)
        tell_last(self.state, code, found)
        out = found[0]
        solved = code == StatusCode.SUCCESS
        leg, reached = int(out["limiting"]), float(out["reached"])
        return IKResult(
            code=StatusCode(code),
            lengths=out["lengths"],
            forces=out["forces"],
            moments=out["moments"],
            residual=float(out["sum_squares"]),
            leg_error=float(out["leg_error"]),
            iterations=int(out["evaluations"]),
            reached=reached,
            best_pose=out["pose"].reshape(12),
            limiting_leg=leg,
            route=ROUTE_NAMES[out["route"]] if solved else "",
            stable=out["stable"] in _STABLE,
            reason="" if solved else describe(int(out["reason"]), leg, reached),
        )

    def run(self, poses: ArrayLike, task: Task | None = None) -> tuple[Array, NDArray[np.uint8]]:
        """Follow a path (n, 12 | 7 | 3 or n, 4, 4) in one compiled call.

        Returns:
            Lengths (n, 6) [m], NaN where a pose was not solved, and status codes (n,).
        """
        targets = _targets(poses)
        lengths = np.full((len(targets), 6), np.nan)
        codes = np.full(len(targets), int(StatusCode.CANCELLED), dtype=np.uint8)
        flag = np.zeros(1, dtype=np.int64) if task is None else task.flag
        run(self.state, _NOTHING, targets, lengths, codes, _NO_OUTCOMES, flag)
        if task is not None:
            task.check()
        return lengths, codes

    def solve_many(
        self,
        poses: ArrayLike,
        *,
        independent: bool = False,
        threads: int = 1,
        task: Task | None = None,
    ) -> Batch:
        """Solve many poses, as a path or each from the present state, and tell all about each.

        Args:
            poses: (n, 12), (n, 7), (n, 3) or (n, 4, 4).
            independent: Start each from the present solution (which stays), over ``threads``;
                otherwise each starts from the one before.
            threads: Threads for independent poses.
            task: To cancel, limit the time, and see the progress.
        """
        targets = _targets(poses)
        n = len(targets)
        lengths, codes = np.full((n, 6), np.nan), np.zeros(n, dtype=np.uint8)
        outcomes = np.zeros(n, OUTCOME)
        task = task or Task()
        pieces = _pieces(n, threads if independent else 1)

        def work(piece: slice) -> None:
            # A path moves this solver on; independent poses leave it as it is.
            w = duplicate(self.state) if independent else self.state
            fresh = duplicate(self.state) if independent else _NOTHING
            run(w, fresh, targets[piece], lengths[piece], codes[piece], outcomes[piece], task.flag)
            task.progress(piece.stop / max(n, 1))

        with task:
            _spread(work, pieces)
        task.check()
        return Batch(
            lengths=lengths,
            codes=codes,
            residuals=outcomes["sum_squares"].copy(),
            forces=outcomes["forces"].copy(),
            reached=outcomes["reached"].copy(),
            best=outcomes["pose"].reshape(n, 12),
            limiting_leg=outcomes["limiting"].astype(np.int8),
            reason=outcomes["reason"].astype(np.uint8),
            stable=np.isin(outcomes["stable"], _STABLE),
        )

    def forward(self, lengths: ArrayLike, guess: ArrayLike | None = None) -> FKResult:
        """Find the pose for six lengths [m], starting from the last solution or a guessed pose.

        The solver's own state stays as it is.

        Raises:
            InvalidInput: The lengths are not six numbers, or the guess cannot be solved.
        """
        wanted = _own(lengths)
        if wanted.shape != (6,):
            raise InvalidInput("lengths", f"must be six numbers, got {wanted.shape}")
        outcomes, stable = self._forward(wanted[None], guess, True, 1, Task())
        out = outcomes[0]
        solved = out["code"] == StatusCode.SUCCESS
        leg, reached = int(out["limiting"]), float(out["reached"])
        reason = "" if stable else UNSTABLE
        if not solved:
            reason = _forward_reason(int(out["reason"]), leg, reached)
        return FKResult(
            code=StatusCode(int(out["code"])),
            pose=out["pose"].reshape(12),
            forces=out["forces"],
            residual=float(out["sum_squares"]),
            iterations=int(out["evaluations"]),
            reached=reached,
            limiting_leg=leg,
            stable=bool(solved and stable),
            reason=reason,
        )

    def forward_many(
        self,
        lengths: ArrayLike,
        guess: ArrayLike | None = None,
        *,
        independent: bool = False,
        threads: int = 1,
        task: Task | None = None,
    ) -> FKBatch:
        """Find poses for rows of lengths (n, 6) [m].

        Args:
            lengths: (n, 6) [m].
            guess: A pose to start from; the last solution if None.
            independent: Start each row there, over ``threads``; otherwise from the row before.
            threads: Threads for independent rows.
            task: To cancel, and limit the time.
        """
        wanted = _own(lengths)
        if wanted.ndim != 2 or wanted.shape[1] != 6:
            raise InvalidInput("lengths", f"must have the shape (n, 6), got {wanted.shape}")
        checks.count("lengths", len(wanted), BATCH_LIMIT)
        outcomes, stable = self._forward(wanted, guess, independent, threads, task or Task())
        return FKBatch(
            poses=outcomes["pose"].reshape(-1, 12),
            codes=outcomes["code"].astype(np.uint8),
            residuals=outcomes["sum_squares"].copy(),
            reached=outcomes["reached"].copy(),
            limiting_leg=outcomes["limiting"].astype(np.int8),
            reason=outcomes["reason"].astype(np.uint8),
            stable=stable,
        )

    def _forward(
        self, lengths: Array, guess: ArrayLike | None, independent: bool, threads: int, task: Task
    ) -> tuple[NDArray[np.void], bool]:
        """Solve rows of lengths: an OUTCOME for each, and whether the start is stable."""
        start = self if guess is None else self.copy()
        if guess is not None and start.track(_own(guess)) != StatusCode.SUCCESS:
            reason = start.result(int(StatusCode.UNREACHABLE)).reason
            raise InvalidInput("guess", f"is not a reachable pose: {reason}")
        stable = start._stable()
        outcomes = np.zeros(len(lengths), OUTCOME)

        def work(piece: slice) -> None:
            one = duplicate(start.state)
            forward_run(one, lengths[piece], independent, outcomes[piece], task.flag)

        with task:
            _spread(work, _pieces(len(lengths), threads if independent else 1))
        task.check()
        return outcomes, stable

    def _stable(self) -> bool:
        """Whether the last solution is stable, or home; worked out once for each."""
        key = (self._entry, int(self.named.solved_total), self.tolerance)
        if self._stable_at is None or self._stable_at[0] != key:
            self._stable_at = (key, analyse(self.state, self._entry).stable)
        return self._stable_at[1]

    def analyse(self) -> Analysis:
        """Return Jacobian, stiffness, fold margin and stability at the last solution, or home."""
        return analyse(self.state, self._entry)

    def fold_margin(self) -> float:
        """Return the distance to the fold at the last solution, or home; quick, to some 1e-4."""
        return float(present_margin(duplicate(self.state)))

    def shapes(self, points: int = 21) -> Array:
        """Return the rods' centrelines (6, points, 3) at the last solution, or home [m]."""
        if not 2 <= points <= 10_000:
            raise InvalidInput("points", f"must be between 2 and 10000, got {points}")
        return self.places(np.outer(self.present_lengths, np.linspace(0.0, 1.0, points)))

    def places(self, arcs: ArrayLike) -> Array:
        """Return places along the rods at the last solution, or home, base frame.

        Args:
            arcs: Lengths along each rod from the base, (6, n) [m]; below it rods are straight.

        Returns:
            (6, n, 3) [m].
        """
        return rod_places(self.state, self._entry, _own(checks.shape("arcs", arcs, (RODS, None))))


def run_streams(
    solvers: list[ContinuumSolver], paths: list[Array], threads: int
) -> list[tuple[Array, NDArray[np.uint8]]]:
    """Let many robots follow a path each, over threads; one compiled call for each robot."""
    if len(solvers) != len(paths):
        raise InvalidInput("paths", f"must be as many as solvers, {len(solvers)}")
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        return list(pool.map(lambda pair: pair[0].run(pair[1]), zip(solvers, paths, strict=True)))


def _forward_reason(reason: int, leg: int, reached: float) -> str:
    if reason == FOLD:
        rod = f", where rod {leg} changes most" if leg >= 0 else ""
        return f"the platform gives way on the path{rod}; reached {100.0 * reached:.1f} % of it"
    if reason == NOT_FINITE:
        return f"lengths: must be finite, length {leg} is not"
    return describe(reason, leg, reached)


def _tolerances(tolerance: float) -> tuple[float, float]:
    checks.within("tolerance", tolerance, 1e-18, 1e-2)
    if tolerance <= 1e-16:
        return float(tolerance), 2e-12
    return float(tolerance), 5e-10 if tolerance <= 1e-8 else 0.04 * math.sqrt(tolerance)


def _own(numbers: ArrayLike) -> Array:
    """Return a contiguous array that may be written to: for others kernels are compiled anew."""
    return np.require(numbers, np.float64, ("C", "W"))


def _targets(poses: ArrayLike) -> Array:
    targets = _own(as_poses(poses))
    checks.count("poses", len(targets), BATCH_LIMIT)
    return targets


def _pieces(n: int, threads: int) -> list[slice]:
    size = max(1, -(-n // max(1, threads)))
    return [slice(k, min(k + size, n)) for k in range(0, n, size)]


def _spread(work: Callable[[slice], None], pieces: list[slice]) -> None:
    if len(pieces) <= 1:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(max_workers=len(pieces)) as pool:
        for done in [pool.submit(work, piece) for piece in pieces]:
            done.result()


__all__ = [
    "TIGHT",
    "TUTORIAL",
    "Batch",
    "ContinuumSolver",
    "FKBatch",
    "FKResult",
    "IKResult",
    "run_streams",
]
