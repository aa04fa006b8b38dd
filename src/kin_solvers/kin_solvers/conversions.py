"""Messages to questions of the library, and its answers to messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SolveManifold as SolveManifoldAction
from kin_interfaces.action import SolvePath as SolvePathAction
from kin_interfaces.msg import Manifold as ManifoldMessage
from kin_interfaces.msg import ManifoldProblem, PathProblem, SolveStatus
from kin_interfaces.msg import PathTree as PathTreeMessage
from kin_interfaces.srv import SolveAllIK
from numpy.typing import NDArray

from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Progress
from kin_core.urdf import Urdf, load_closures
from kin_ros.arrays import from_field, to_field
from kin_ros.poses import read_pose
from kin_solvers import library
from kin_solvers.all_ik import AllIK
from kin_solvers.lines import MAX_POSES, TURN_PER_STEP, along_poses
from kin_solvers.manifold import MAX_REFINED, Manifold
from kin_solvers.mechanism import Mechanism
from kin_solvers.mechanism_urdf import arm_from_urdf, loops_from_urdf
from kin_solvers.mechanism_yaml import load_mechanism
from kin_solvers.parameters import CuikParameters
from kin_solvers.paths import JointPath, PathTree
from kin_solvers.settings import Settings

__all__ = [
    "all_ik_response",
    "feedback",
    "manifold_message",
    "path_feedback",
    "path_tree_message",
    "read_arm",
    "read_boxes",
    "read_mechanism",
    "read_path",
    "read_seed",
    "read_settings",
    "report",
]

Array = NDArray[np.float64]
#: Gives the robot description of a topic; "" is the node's own.
Descriptions = Callable[[str], Urdf]
#: ``read(field, stamped, base)`` gives a pose of any frame in that of the base, shape (4, 4) [m].
PoseReader = Callable[[str, PoseStamped, str], Array]

_STOP_CODES = {
    "boxes": StatusCode.LIMIT_EXCEEDED,
    "memory": StatusCode.LIMIT_EXCEEDED,
    "time": StatusCode.TIMEOUT,
    "cancelled": StatusCode.CANCELLED,
}


_EVENTS = {
    "path": PathTreeMessage.PATH,
    "limit": PathTreeMessage.LIMIT,
    "meets": PathTreeMessage.MEETS,
    "singular": PathTreeMessage.SINGULAR,
    "unfinished": PathTreeMessage.UNFINISHED,
}


# From messages -----------------------------------------------------------------------------------


def read_mechanism(problem: ManifoldProblem, description: Descriptions) -> Mechanism:
    """The mechanism that a problem asks about."""
    pose = read_pose("target", problem.target) if problem.use_target else None
    if problem.source == ManifoldProblem.LIBRARY:
        mechanism = library.get(problem.mechanism)
    elif problem.source == ManifoldProblem.YAML:
        mechanism = load_mechanism(problem.mechanism)
    elif problem.source == ManifoldProblem.URDF:
        urdf = description(problem.mechanism)
        if problem.closures:
            mechanism = loops_from_urdf(urdf, load_closures(problem.closures))
        elif pose is not None:
            mechanism = arm_from_urdf(urdf, pose, base=problem.base_link, tip=problem.tip_link)
        else:
            raise InvalidInput("target", "is needed for a robot description without closures")
        pose = None
    else:
        raise InvalidInput("source", f"must be 0, 1 or 2, got {problem.source}")
    if pose is not None:
        mechanism = mechanism.with_target(pose)
    return mechanism.with_ranges(
        _ranges(problem.range_names, problem.range_lower, problem.range_upper)
    )


def read_arm(request: SolveAllIK.Request, description: Descriptions, read: PoseReader) -> Mechanism:
    """The arm at the pose that a request asks about."""
    arm, base = _arm(request, request.target.header.frame_id, description)
    return arm.with_target(read("target", request.target, base))


def read_path(
    problem: PathProblem, description: Descriptions, read: PoseReader
) -> tuple[Mechanism, Array, NDArray[np.int64]]:
    """The arm, the poses of its tip, shape (N, 4, 4) [m], and which of them are the waypoints."""
    arm, base = _arm(problem, problem.header.frame_id, description)
    if len(problem.waypoints) > MAX_POSES:
        raise InvalidInput("waypoints", f"must be at most {MAX_POSES}")
    if len(problem.waypoints) < 2:
        raise InvalidInput("waypoints", "must be two at least")
    unit = PoseStamped(header=problem.header)
    unit.pose.orientation.w = 1.0
    to_base = read("problem", unit, base)
    given = np.array(
        [to_base @ read_pose(f"waypoints[{k}]", pose) for k, pose in enumerate(problem.waypoints)]
    )
    for name in ("max_step", "max_turn"):
        if not (math.isfinite(getattr(problem, name)) and getattr(problem, name) >= 0.0):
            raise InvalidInput(name, "must be a number that is not negative")
    if problem.max_step == 0.0 and problem.max_turn == 0.0:
        return arm, given, np.arange(len(given))
    step = problem.max_step or math.inf
    return arm, *along_poses(given, step, problem.max_turn or TURN_PER_STEP * step)


def _arm(request: Any, frame: str, description: Descriptions) -> tuple[Mechanism, str]:
    """The arm that a request names, with its ranges, and the frame of its base."""
    base = request.base_link
    if request.arm:
        arm = library.get(request.arm)
        if frame and not base:
            raise InvalidInput(
                "base_link", f"must name the frame of the arm's base, to which {frame!r} is related"
            )
    else:
        urdf = description("")
        arm = arm_from_urdf(urdf, np.eye(4), base=base, tip=request.tip_link)
        base = base or urdf.root
    ranges = _ranges(request.range_names, request.range_lower, request.range_upper)
    return arm.with_ranges(ranges), base


def read_settings(problem: ManifoldProblem, p: CuikParameters) -> Settings:
    """How to solve a problem: what it says, within the budgets of the parameters."""
    if problem.sigma < 0.0:
        raise InvalidInput("sigma", f"must be greater than zero, got {problem.sigma}")
    return Settings(
        sigma=problem.sigma or p.sigma,
        rho=problem.rho or p.rho,
        method=problem.method or p.method,
        engine=problem.engine or p.engine,
        scheduler=p.scheduler,
        threads=p.threads,
        max_boxes=min(problem.max_boxes or p.max_boxes, p.max_boxes),
        max_bytes=min(problem.max_bytes or p.max_bytes, p.max_bytes),
        certify=not problem.skip_certificates,
    )


def read_boxes(problem: ManifoldProblem, size: int) -> tuple[Array, Array] | None:
    """The boxes to search, each of shape (N, V) [rad, m]; None for the ranges."""
    if not (len(problem.resume_lower) or len(problem.resume_upper)):
        return None
    return (
        _rows("resume_lower", problem.resume_lower, size),
        _rows("resume_upper", problem.resume_upper, size),
    )


def read_seed(problem: ManifoldProblem, size: int) -> Array:
    """The seed, shape (V,) [rad, m], or no number."""
    seed = from_field(problem.seed)
    if len(seed) not in (0, size):
        raise InvalidInput("seed", f"must hold {size} values or none, got {len(seed)}")
    if not np.isfinite(seed).all():
        raise InvalidInput("seed", "must be finite")
    return seed


def _ranges(names: Any, lower: Any, upper: Any) -> dict[str, tuple[float, float]]:
    if not len(names) == len(lower) == len(upper):
        raise InvalidInput(
            "range_names", "range_names, range_lower and range_upper must have one length"
        )
    return {n: (float(a), float(b)) for n, a, b in zip(names, lower, upper, strict=True)}


def _rows(field: str, values: Any, size: int) -> Array:
    array = from_field(values)
    if len(array) % size:
        raise InvalidInput(field, f"must hold a multiple of {size} values, got {len(array)}")
    return array.reshape(-1, size)


# To messages -------------------------------------------------------------------------------------


def report(status: SolveStatus, manifold: Manifold) -> None:
    """Fill a status with what a search came to."""
    status.code = int(_STOP_CODES.get(manifold.stopped, StatusCode.SUCCESS))
    status.message = manifold.message
    status.iterations = min(manifold.counters.reductions, 2**32 - 1)
    status.residual = math.nan


def manifold_message(manifold: Manifold, refine: int, seed: Array) -> ManifoldMessage:
    """A cover as a message.

    Args:
        manifold: The cover.
        refine: Points on the solution set to add.
        seed: Configuration to which distances are added, shape (V,) [rad, m]; or none.
    """
    message = ManifoldMessage()
    message.mechanism = manifold.mechanism.name
    message.variables = list(manifold.mechanism.names)
    message.translations = [v.kind == "translation" for v in manifold.mechanism.variables]
    message.sigma = manifold.sigma
    message.complete = manifold.complete
    message.box_count = len(manifold.lower)
    message.lower = to_field(manifold.lower.reshape(-1))
    message.upper = to_field(manifold.upper.reshape(-1))
    message.certificates = to_field(manifold.certified.astype(np.uint8), "uint8")
    # The analysis takes time, which a search that was stopped has not.
    labels = manifold.labels if manifold.complete else manifold.clusters
    message.components = to_field(labels.astype(np.int32), "int32")
    if len(seed):
        message.distances = to_field(manifold.distances(seed))
    message.component_count = int(labels.max(initial=-1)) + 1
    if manifold.complete:
        message.closed_curves = [c.closed_curve for c in manifold.components]
        _fill_components(message, manifold)
    if refine:
        points, labels = manifold.refine(min(refine, MAX_REFINED))
        message.point_count = len(points)
        message.points = to_field(points.reshape(-1))
        message.point_components = to_field(labels.astype(np.int32), "int32")
    message.unfinished_count = len(manifold.unfinished_lower)
    message.unfinished_lower = to_field(manifold.unfinished_lower.reshape(-1))
    message.unfinished_upper = to_field(manifold.unfinished_upper.reshape(-1))
    message.processed = manifold.counters.processed
    message.reductions = manifold.counters.reductions
    message.solutions = manifold.counters.solutions
    message.empty = manifold.counters.empty
    return message


def _fill_components(answer: Any, manifold: Manifold) -> None:
    """What an answer says of the components of a solution set."""
    parts = manifold.components
    answer.separated = manifold.separated
    answer.component_count = len(parts)
    answer.dimensions = to_field(np.array([c.dimension for c in parts], np.uint8), "uint8")
    answer.dimensions_proven = [c.proven for c in parts]
    answer.unresolved_count = len(manifold.unresolved)


def all_ik_response(arm: Mechanism, found: AllIK, most: int) -> SolveAllIK.Response:
    """All configurations of an arm as a response.

    Args:
        arm: The arm.
        found: Its configurations.
        most: Answer at most so many, the nearest ones; 0: all.
    """
    response = SolveAllIK.Response()
    keep = min(len(found.positions), most or len(found.positions))
    response.joints = list(arm.names)
    response.count = keep
    response.positions = to_field(found.positions[:keep].reshape(-1))
    response.distances = to_field(found.distances[:keep])
    response.certified = found.certified[:keep].tolist()
    response.components = to_field(found.components[:keep].astype(np.int32), "int32")
    response.complete = found.complete
    response.posture_count = found.postures
    response.dimension = found.dimension
    _fill_components(response, found.manifold)
    report(response.status, found.manifold)
    status = response.status
    if found.manifold.complete and len(found.manifold.lower) == 0:
        status.code = int(StatusCode.UNREACHABLE)
    status.message = found.message
    if status.code == int(StatusCode.SUCCESS):
        if keep < len(found.positions):
            status.message += f"; the {keep} nearest answered"
        status.residual = max((arm.residual(q) for q in found.positions[:8]), default=0.0)
    return response


def path_tree_message(
    tree: PathTree, best: JointPath, waypoints: NDArray[np.int64], status: SolveStatus
) -> PathTreeMessage:
    """The branches of a path as a message, and the status of the answer."""
    names = {name: k for k, name in enumerate(tree.arm.names)}
    message = PathTreeMessage(joints=list(names), pose_count=len(tree.poses))
    message.waypoints = to_field(waypoints.astype(np.uint32), "uint32")
    message.looked = tree.looked.tolist()
    message.complete = tree.complete
    message.branch_count = len(tree.branches)
    message.first = to_field(np.array([b.first for b in tree.branches], np.uint32), "uint32")
    counts = np.array([len(b.positions) for b in tree.branches], np.uint32)
    message.counts = to_field(counts, "uint32")
    rows = [b.positions.reshape(-1) for b in tree.branches]
    message.positions = to_field(np.concatenate([np.empty(0), *rows]))
    for end in ("begin", "end"):
        events = [getattr(b, f"{end}s") for b in tree.branches]
        kinds = np.array([_EVENTS[e.kind] for e in events], np.uint8)
        setattr(message, f"{end}s", to_field(kinds, "uint8"))
        setattr(message, f"{end}_places", to_field(np.array([e.place for e in events])))
        joints = np.array([names.get(e.joint, -1) for e in events], np.int32)
        setattr(message, f"{end}_joints", to_field(joints, "int32"))
        partners = np.array([e.partner for e in events], np.int32)
        setattr(message, f"{end}_partners", to_field(partners, "int32"))
    message.best = best.branch
    message.best_positions = to_field(best.positions.reshape(-1))
    message.fraction = best.fraction
    message.cost = best.cost
    status.code = int(StatusCode.SUCCESS if best.whole else StatusCode.UNREACHABLE)
    status.message = "; ".join(filter(None, (best.message, tree.message)))
    status.residual = math.nan
    return message


def path_feedback(progress: Progress) -> SolvePathAction.Feedback:
    """Progress along a path as a message."""
    branches = int(progress.counters.get("branches", 0.0))
    return SolvePathAction.Feedback(settled=progress.fraction, branches=branches)


def feedback(progress: Progress) -> SolveManifoldAction.Feedback:
    """Progress as a message."""
    counters = progress.counters
    return SolveManifoldAction.Feedback(
        settled=progress.fraction,
        queued=int(counters.get("queued", 0.0)),
        solutions=int(counters.get("solutions", 0.0)),
        processed=int(counters.get("processed", 0.0)),
    )
