"""Where each table stands in the two packed arrays that the kernels take.

All integers of a compiled linkage are in one array I, all numbers in one array X. A kernel call
then passes two arrays instead of fifty (which costs more than a small component), and nothing is
ever allocated. The first entries of I hold where each table begins; Python sees the tables as named
views (compile.Model, compile.State).
"""

from __future__ import annotations

# Integer tables, in I. Columns in brackets where there are several.
BODIES = 0  # [parent body, kind, first freedom]
DOFS = 1  # [body, is an angle, 1 for the first freedom of an unlimited ball, has a rest value]
CLOSURES = 2  # [body a, body b, rotation mode, row mask, rows, chain begin, chain end, level]
CHAIN = 3  # [freedom, sign, column in the component]
COMPS = 4  # see the columns below
COMP_DOFS = 5
COMP_CLOSURES = 6
COMP_FK = 7
BLOCKS = 8  # see the columns below
LEVELS = 9  # see the columns below
ROUNDS = 10  # [components begin, end, kinematics begin, end]
ROUND_FK = 11
ALL_FK = 12
LOOSE = 13
HELD = 14
PERM = 15
RANK = 16
FREE = 17
LEVEL_START = 18
LEVEL_RANK = 19
# Number tables, in X.
BODY_ORIGIN = 20  # (12) pose of a body in its parent at zero
STEP_MAX = 21  # largest step of a freedom
WEIGHT = 22
OFFSET_A = 23  # (12) frame a of a closure in its body; the targets of goals are here
OFFSET_B = 24  # (12)
Q = 25
POSE = 26  # (12) pose of each body
AXIS = 27  # (3) axis of each freedom in the root frame
LOW = 28
HIGH = 29
REST = 30
LAM = 31  # damping per component
COST = 32  # squared residual per component
STEP = 33  # last step per component, as a share of the largest allowed
DQ = 34
SAVED = 35
E = 36  # residual rows of the component at hand
V = 37
W = 38  # matrices of the component at hand
WX = 39
WY = 40
WZ = 41
G = 42
NORMS = 43
TAU = 44
LEVEL_COST = 45
# Counts.
N_COMPS = 46
N_ROUNDS = 47
N_CLOSURES = 48
N_BODIES = 49
N_LOOSE = 50
HEADER = 51

# Columns of COMPS.
DOF_BEGIN, DOF_END, CLOSURE_BEGIN, CLOSURE_END, ROWS, COLUMNS = 0, 1, 2, 3, 4, 5
FK_BEGIN, FK_END, KIND, BLOCK_BEGIN, BLOCK_END, LEVEL_BEGIN, LEVEL_END = 6, 7, 8, 9, 10, 11, 12
ROUND, HAS_REST = 13, 14
COMP_WIDTH = 15
# Columns of BLOCKS: column begin and end, closures begin and end, rows, matrix, factor, first row.
B_BEGIN, B_END, B_CLOSURE_BEGIN, B_CLOSURE_END, B_ROWS, B_MATRIX, B_FACTOR, B_ROW = range(8)
BLOCK_WIDTH = 8
# Columns of LEVELS: closures begin and end, rows, matrix, factor, first row.
L_CLOSURE_BEGIN, L_CLOSURE_END, L_ROWS, L_MATRIX, L_FACTOR, L_ROW = range(6)
LEVEL_WIDTH = 6

# Kinds of components.
SINGLE, PRIORITIES, OUTSIDE = 0, 1, 2  # outside: solved by outside.py, not in the kernel
# Kinds of bodies.
REVOLUTE, PRISMATIC, BALL = 1, 2, 3
