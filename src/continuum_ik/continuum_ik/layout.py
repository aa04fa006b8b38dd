"""What a solver knows, as one numpy record with named fields.

Kernels get the record and read its fields at constant offsets, so that LLVM sees which loads and
stores overlap. Python holds the same memory as one flat array of float64, which is the quickest to
pass to a kernel and to copy: a solver's whole state is one array. ``named`` gives it its names.

A change of the unknowns is laid out as the unknowns y are: rows nx, ny, nz, m0x, m0y, L, one lane
for each rod. A residual too has six rows: five for each rod, and in the row PLATFORM the six
equations of the platform. A pose has four rows of three: the position, then the rotation matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from continuum_ik.rod import LANES, RODS_RECORD, Array, Record

#: Row of a residual that holds the platform's equations: force, then moment.
PLATFORM = 5
#: Rows of a Jacobian: five equations of a rod, then the moment at its tip.
MOMENT = 5
#: Most steps of an integration.
STEPS_MAX = 192
#: Polished solutions that are kept for the extrapolation.
ENTRIES = 6
#: Bytes of a cache line, the size of a row of lanes.
LINE = 64


def _fields(shape: Any, names: str, kind: Any = np.float64) -> list[tuple[Any, ...]]:
    return [(name, kind, shape) for name in names.split()]


_LANES = (6, LANES)
_POSE = (4, 3)

#: A point of a path: unknowns, pose, and what is known of its stability (stability.py).
ENTRY = np.dtype(
    [
        *_fields(_LANES, "y"),
        *_fields(_POSE, "pose"),
        *_fields((), "stable", np.int64),
        *_fields(3, "spare"),
    ]
)

#: How accurate is accurate. The sum of squares that is accepted is a little less than what is asked
#: for, for the integration's own error; an estimated error of a length is in m.
RULES = np.dtype(
    _fields(
        (),
        "accept leg_tolerance "
        "step_error step_leg_error "  # error of the integration, in tips and lengths
        "step_x2 coarse_x2 "  # x^2 that one step does, for residuals and Jacobians
        "step_measured step_scale",  # see equations.plan_steps
    )
)

#: How closely the rods are watched for buckling, see stability.py and continuation.changed.
#: Verdicts do not hang on these numbers: a test halves and doubles each.
CAUTION = np.dtype(
    _fields(
        (),
        # Distance from where a rod would buckle, in the scaled unknowns, within which each answer
        # is decided with fine differences: more than is gone between two looks at the rods.
        "near "
        # How far two looks may lie apart for their difference to tell that distance, and how far to
        # go until the next look if they lie further apart.
        "local unseen "
        # Part of that distance that may be gone before the next look, on the way there: below 1,
        # for a determinant that falls faster than before.
        "towards "
        # How far the rods' tips are moved where the power iteration begins, as part of the robot's
        # size: any number but 0, so that directions that the platform does not stir take part.
        "tips",
    )
)

#: How one target or row of lengths ended: about the solution, or the furthest point reached.
OUTCOME = np.dtype(
    [
        *_fields((), "code reason route limiting stable evaluations", np.int64),
        *_fields((), "sum_squares leg_error reached"),
        *_fields(_POSE, "pose"),
        *_fields(6, "lengths"),
        *_fields((6, 3), "forces"),
        *_fields((6, 2), "moments"),
    ]
)

SOLVER = np.dtype(
    [
        # The rods as they are shot, and the rods with one unknown displaced, for the Jacobian.
        ("rods", RODS_RECORD),
        ("displaced", RODS_RECORD, 5),
        # The robot: holes in the base and the platform [m]; 1 for rods, 0 for lanes that fill up.
        *_fields((3, LANES), "base_holes platform_holes"),
        *_fields(LANES, "mask"),
        # What follows from the pose: RE r_i, and pE + RE r_i - p0_i.
        *_fields((3, LANES), "arm tip"),
        # Residual; Newton or chord step; step of each rod's free unknown.
        *_fields(_LANES, "residual delta"),
        *_fields(LANES, "free"),
        # The Jacobian, rows by unknowns by rods, and its factors, see equations.py.
        *_fields((8, 6, LANES), "jacobian"),
        *_fields((6, 5, LANES), "V"),  # unknowns of a rod by its residuals
        *_fields(_LANES, "U"),  # unknowns of a rod by its free unknown
        *_fields((6, 5, LANES), "W"),  # platform equations by the rods' residuals
        *_fields((6, *_LANES), "tangent"),  # dy / dpose, a column for each part of the pose
        # Put aside: residual while the Jacobian is made, unknowns before they are corrected,
        # Newton step while it is halved.
        *_fields(_LANES, "saved trial saved_step"),
        *_fields((5, 9, LANES), "differences"),  # tip (p, t, m) by five unknowns
        # Continuation: the Jacobian and the arms where the branch was last made sure of (see
        # continuation.changed), and dy by the part of the path.
        *_fields((8, 6, LANES), "sure_jacobian"),
        *_fields((3, LANES), "sure_arm"),
        *_fields(_LANES, "slope"),
        # Forward kinematics: the residual by the rotations of the platform, here and there.
        *_fields((3, *_LANES), "turns sure_turns"),
        # Continuation along the arc (arc.py): unit tangent of the curve at the last point and at
        # the point at hand, residual by the part of the path, what the rods' own equations ask
        # for, unknowns at the last point.
        *_fields(_LANES, "direction next_direction by_part own_part own_rest arc_start"),
        # Determinants of tips by forces and moments (stability.py); 0: not looked at.
        *_fields(LANES, "rod_determinants"),
        # Points: of the last targets (polished, newest at ``head``), the last certified solution,
        # where cold starts begin; of a path its beginning, the last point accepted, the last one
        # within the limits, the furthest that was reached, the beginning of a bisected path, the
        # last one clear of singular ones; where the branch was last made sure of.
        ("history", ENTRY, ENTRIES),
        *_fields((), "answer home start anchor within best origin clear sure", ENTRY),
        # The pose at hand, the one asked for, the same while another takes its place, and the one
        # that the extrapolation arrives at.
        *_fields(_POSE, "pose target aside guess_pose"),
        *_fields(6, "twist"),  # from start to target: position, rotation vector
        *_fields(6, "wrench"),  # load on the platform about its origin, base frame
        *_fields((6, 6), "schur schur_inv"),  # platform equations by the free unknowns
        *_fields((6, 6), "length_by_pose pose_by_length stable_inverse"),
        *_fields(6, "wanted lengths"),  # forward kinematics: asked for, and of the present step
        *_fields(3, "force moment point"),  # load, and where it acts (platform frame)
        # Limits [m, N, 1/m]; lowest platform hole above the base; p' at the force limit.
        *_fields((), "length_min length_max force_max curvature_max height_min stretch"),
        *_fields((), "EI L"),  # scales of the unknowns: typical stiffness [N m^2] and length [m]
        *_fields((), "force_step moment_step"),  # displacements of the Jacobian's differences
        # Accuracy: as asked for, and the fine one on the way to far targets; which is in force.
        ("rules", RULES, 2),
        *_fields((), "fine", np.int64),
        ("caution", CAUTION),
        *_fields((), "tolerance"),  # sum of squares that is asked for
        # Settings: order of the extrapolation; detours by home; unstable solutions; whether there
        # is a home; smallest step of a path, as part of it; most steps along the arc, those left.
        *_fields((), "order detours allow_unstable has_home", np.int64),
        *_fields((), "smallest"),
        *_fields((), "arc_budget arc_left", np.int64),
        # Tracking: newest entry of the history, entries that may be used, solves since the Jacobian
        # was made (negative: there is none), steps of the integration, branch in doubt.
        *_fields((), "head count age steps in_doubt", np.int64),
        *_fields((), "sum_squares leg_error"),  # of the last evaluation; error of the lengths [m]
        *_fields((), "answer_sum_squares answer_leg_error"),  # of the last certified solution
        # Change of the scaled unknowns up to which the branch is not in doubt; 0: unknown.
        *_fields((), "sure_within"),
        # Arc: part of the path, and the component of the direction there.
        *_fields((), "arc_part arc_side"),
        # Stability: of the point at hand; whether stable_inverse may be used; scaled stiffness in
        # the softest direction at home (0: not known), and when it was last looked at; change of
        # the scaled unknowns up to which it stays as it is, and since it was looked at.
        *_fields((), "stable stable_reference", np.int64),
        *_fields((), "stiffness softest stable_within stable_moved"),
        # About the last solve: evaluations, Jacobians, steps of the path, part of the way reached
        # (and within the limits), leg that hinders or -1, reason and route (reasons.py).
        *_fields((), "evaluations refreshes substeps", np.int64),
        *_fields((), "reached reached_within"),
        *_fields((), "limiting reason route", np.int64),
        *_fields((), "solved_total evaluations_total refreshes_total recovered_total", np.int64),
    ]
)


def allocate() -> Array:
    """Return a zeroed flat array for one solver.

    Rows begin at cache lines, so that no load of eight lanes touches two of them, and a spare pair
    of lines at the end keeps solvers of different threads from sharing any.
    """
    size, line = SOLVER.itemsize // 8, LINE // 8
    raw = np.zeros(size + 3 * line)
    first = -raw.ctypes.data % LINE // 8
    return raw[first : first + size]


def duplicate(state: Array) -> Array:
    """Return a copy of a solver's array, laid out as ``allocate`` does."""
    other = allocate()
    other[:] = state
    return other


def named(state: Array) -> Any:
    """Return a solver's array as a recarray with the names of SOLVER, the same memory."""
    return state.view(SOLVER).reshape(()).view(np.recarray)


@njit(inline="always")
def record(state: Array) -> Record:
    """Return a solver's array as the record SOLVER, in a kernel."""
    return state.view(SOLVER)[0]
