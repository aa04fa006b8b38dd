"""Where everything lies in the one flat array that a solver works in.

One array of float64 with constant offsets keeps a compiled call down to two arguments, lets LLVM
see that loads and stores do not overlap, and makes a solver's whole state something that can be
copied. Rows of eight numbers hold one value for each rod, the lanes; rods 6 and 7 do not exist and
are fed with harmless values, so that every loop over lanes is one SIMD instruction.
"""

from __future__ import annotations

import numpy as np

from continuum_ik.rod import BLOCK, Array

RODS = 6
LANES = 8
#: Unknowns: rows nx, ny, nz, m0x, m0y, L. They are the first rows of block 0, where the rods are
#: shot.
Y = 0
UNKNOWNS = 48
# Block 0 holds the rods themselves, blocks 1..5 the rods with one unknown displaced, for the
# Jacobian.
JACOBIAN_BLOCKS = 1 * BLOCK

MODEL = 6 * BLOCK
BASE = MODEL  #: holes in the base, rows x, y, z [m]
PLATFORM = MODEL + 24  #: holes in the platform, rows x, y, z, platform frame [m]
MASK = MODEL + 48  #: 1 for the six rods, 0 for the two that fill up
FORCE, MOMENT, POINT = (
    MODEL + 56,
    MODEL + 59,
    MODEL + 62,
)  #: load, and where it acts (platform frame)
LENGTH_MIN, LENGTH_MAX = MODEL + 65, MODEL + 66  #: [m]
FORCE_MAX, CURVATURE_MAX = MODEL + 67, MODEL + 68  #: [N], [1/m]
HEIGHT_MIN = MODEL + 69  #: lowest platform hole above the base plate [m]
EI_TYPICAL, LENGTH_TYPICAL = MODEL + 70, MODEL + 71  #: scales of the unknowns
STRETCH = MODEL + 72  #: largest p' of a rod within its force limit

# The target and what follows from it.
POSE = MODEL + 80  #: x, y, z, then the rotation matrix row by row
ARM = POSE + 12 + 4  #: RE r_i, rows x, y, z
TIP = ARM + 24  #: pE + RE r_i - p0_i, rows x, y, z
WRENCH = TIP + 24  #: load on the platform about its origin, base frame

# Residual: five rows for each rod, then six numbers for the platform.
RESIDUAL = WRENCH + 8
PLATFORM_RESIDUAL = RESIDUAL + 40
DELTA = PLATFORM_RESIDUAL + 8  #: the Newton or chord step, laid out as Y
FREE = DELTA + UNKNOWNS  #: step of each rod's free unknown

# The factorised Jacobian, see equations.py.
JACOBIAN = FREE + 8  #: rod equations by rod unknowns, 5 x 6 rows
MOMENT_JACOBIAN = JACOBIAN + 30 * LANES  #: tip moment by rod unknowns, 3 x 6 rows
V = MOMENT_JACOBIAN + 18 * LANES  #: 6 x 5 rows: unknowns of a rod by its residuals
U = V + 30 * LANES  #: 6 rows: unknowns of a rod by its free unknown
W = U + 6 * LANES  #: 6 x 5 rows: platform equations by the rod's residuals
SCHUR = W + 30 * LANES  #: 6 x 6: platform equations by the free unknowns
SCHUR_INV = SCHUR + 36
TANGENT = SCHUR_INV + 36 + 8  #: dY / dpose: six columns of 48
COLUMN = 48

# Points of a path: 48 unknowns, the 12 numbers of a pose, and what is known of its stability.
ENTRY = 64
ENTRY_POSE, ENTRY_STABLE = 48, 60
#: Polished solutions of the last targets, a ring; HEAD is the newest.
HISTORY = TANGENT + 6 * COLUMN
ENTRIES = 6
ANSWER = HISTORY + ENTRIES * ENTRY  #: the last certified solution
HOME = ANSWER + ENTRY  #: where a cold start begins
START = HOME + ENTRY  #: continuation: where the path begins
ANCHOR = START + ENTRY  #: continuation: the last point that was accepted
WITHIN = ANCHOR + ENTRY  #: continuation: the last point within the limits
BEST = WITHIN + ENTRY  #: the furthest point that was reached, for reports
ORIGIN = BEST + ENTRY  #: scratch of the bisection: where its path begins
CLEAR = ORIGIN + ENTRY  #: continuation: the last point reached that is clear of singular ones
TARGET = CLEAR + ENTRY  #: pose that was asked for
AIM = TARGET + 16  #: scratch: the target, while another takes its place
GUESS_POSE = AIM + 16  #: pose that the extrapolation arrives at
SAVED = GUESS_POSE + 16  #: residual, put aside while the Jacobian is made
TRIAL = SAVED + 48  #: unknowns before they are corrected
SAVED_STEP = TRIAL + 48  #: Newton step, while it is halved
TWIST = SAVED_STEP + 48  #: continuation: position and rotation from START to TARGET

LENGTH_BY_POSE = TWIST + 8  #: 6 x 6
POSE_BY_LENGTH = LENGTH_BY_POSE + 36
FORWARD = POSE_BY_LENGTH + 36  #: forward kinematics: lengths that are asked for
LENGTHS = FORWARD + 8  #: forward kinematics: lengths of the present step

DIFFERENCES = LENGTHS + 8  #: analysis: tip (p, t, m) by five unknowns, 5 x 9 rows

# The solution at which the branch was last made sure of, see continuation.changed.
SURE = DIFFERENCES + 45 * LANES  #: its unknowns and pose
SURE_JACOBIAN = SURE + ENTRY  #: JACOBIAN and MOMENT_JACOBIAN there
SURE_ARM = SURE_JACOBIAN + 48 * LANES  #: ARM there
SLOPE = SURE_ARM + 24  #: continuation: dY by the part of the path, laid out as Y

# Forward kinematics, see forward.changed: the residual by the three rotations of the platform.
TURNS = SLOPE + UNKNOWNS  #: three columns of 48, at the present point
SURE_TURNS = TURNS + 3 * COLUMN  #: those at the sure one

# Continuation along the arc, see arc.py: the direction of the curve and how the equations change
# along the path, both laid out as Y.
DIRECTION = SURE_TURNS + 3 * COLUMN  #: unit tangent, by the unknowns
NEXT_DIRECTION = DIRECTION + UNKNOWNS  #: that of the point at hand
BY_PART = NEXT_DIRECTION + UNKNOWNS  #: residual by the part of the path
PARTICULAR = BY_PART + UNKNOWNS  #: scratch: what the rods' own equations ask for, two of them
ARC_START = PARTICULAR + 2 * UNKNOWNS  #: unknowns at the last point of the arc

# Stability, see stability.py.
STABLE_INVERSE = ARC_START + UNKNOWNS  #: inverse of dL/dpose at the point that is compared with
ROD_DETERMINANTS = STABLE_INVERSE + 40  #: of tips by forces and moments; 0: not looked at

# How accurate is accurate: what is asked for or, on the way to far targets, always fine.
RULES = ROD_DETERMINANTS + LANES
ACCEPT = RULES  #: sum of squares that is accepted: a little less, for the integration's own error
LEG_TOLERANCE = RULES + 1  #: estimated error of a length that is accepted [m]
STEP_ERROR, STEP_LEG_ERROR = RULES + 2, RULES + 3  #: error of the integration, in tips and lengths
STEP_X2, COARSE_X2 = RULES + 4, RULES + 5  #: x^2 that one step does, for residuals and Jacobians
STEP_MEASURED, STEP_SCALE = RULES + 6, RULES + 7  #: see equations.plan_steps
RULES_SIZE = 8
OTHER_RULES = RULES + RULES_SIZE  #: those that are not in force

# Scalars.
S = OTHER_RULES + RULES_SIZE
TOLERANCE = S  #: sum of squares that is asked for
SURE_WITHIN = S + 1  #: change of the scaled unknowns up to which nothing is in doubt; 0: unknown
IN_DOUBT = S + 2  #: 1 if tracking gave up because the branch was in doubt
ORDER = S + 3  #: order of the extrapolation
HEAD, COUNT = S + 4, S + 5  #: newest entry of the history, and entries that may be used
AGE = S + 6  #: solves since the Jacobian was made; negative: there is none
STEPS = S + 7  #: steps of the integration
SUM_SQUARES = S + 8  #: residual of the last evaluation
LEG_ERROR = S + 9  #: estimated error of the lengths [m]
# About the last solve:
EVALUATIONS, REFRESHES, SUBSTEPS = S + 10, S + 11, S + 12  #: evaluations, Jacobians, path steps
REACHED = S + 13  #: part of the way to the target that was reached
LIMITING = S + 14  #: leg that hinders, or -1
REASON = S + 15  #: why it was refused, see tracking.py
ROUTE = S + 16  #: how the target was reached, see tracking.py
ANSWER_SUM_SQUARES, ANSWER_LEG_ERROR = S + 17, S + 18  #: of the last certified solution
SOLVED_TOTAL, EVALUATIONS_TOTAL, REFRESHES_TOTAL, RECOVERED_TOTAL = S + 19, S + 20, S + 21, S + 22
DETOURS = S + 23  #: 1: may go round by home where the straight path fails
REACHED_WITHIN = S + 25  #: part of the way that was reached within the limits
HAS_HOME = S + 24
SMALLEST = S + 26  #: smallest step of a path, as part of it: below it the arc is followed
FORCE_STEP, MOMENT_STEP = S + 27, S + 28  #: displacements of the Jacobian's differences
STEPS_MAX = 192
ARC_PART, ARC_SIDE = (
    S + 29,
    S + 30,
)  #: of the path, and the component of DIRECTION there
STABLE = S + 31  #: whether the point at hand is: 0 no, 1 yes; 2 no, 3 yes, and close to the border
STABLE_REFERENCE = S + 32  #: 1 if STABLE_INVERSE may be used
STIFFNESS = S + 33  #: scaled, in the softest direction at home; 0: not known yet
ALLOW_UNSTABLE = S + 34  #: 1: equilibria that are not stable count as solutions
SOFTEST = S + 35  #: scaled stiffness in the softest direction, when it was last looked at
STABLE_WITHIN = S + 36  #: change of the scaled unknowns up to which STABLE stays as it is
STABLE_MOVED = S + 37  #: change of the scaled unknowns since SOFTEST was looked at
ARC_BUDGET, ARC_LEFT = S + 38, S + 39  #: most steps along the arc of one path, and those left
SIZE = S + 40


#: Bytes of a cache line, the size of a row.
LINE = 64


def allocate() -> Array:
    """Return a zeroed array for one solver.

    Rows begin at cache lines, so that no load of eight lanes touches two of them, and a spare pair
    of lines at the end keeps solvers of different threads from sharing any.
    """
    size = LINE // 8
    raw = np.zeros(SIZE + 3 * size)
    first = -raw.ctypes.data % LINE // 8
    return raw[first : first + SIZE]


def duplicate(w: Array) -> Array:
    """Return a copy of a solver's array, laid out as ``allocate`` does."""
    other = allocate()
    other[:] = w
    return other
