"""The tables on which the compiled solver works: records with named fields.

A linkage becomes a handful of numpy arrays of records. numba reads a field at a constant offset, so
a name costs nothing; a kernel is handed the tables it needs, or one record of them, and allocates
nothing. Lengths are in the linkage's own unit; see bodies.unit_of_length().
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array", "BALL", "BODY", "CLOSURE", "COMPONENT", "FALLBACK", "FREEDOM", "Ints", "PART", "POSE",
    "PRIORITIES", "PRISMATIC", "REVOLUTE", "ROUND", "SINGLE", "SUPPORT", "Record", "Records",
    "Tables", "record",
]  # fmt: skip

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
#: An array of one of the record types below, and one record of it as a kernel sees it.
Records = NDArray[Any]
Record = np.record

# Kinds of bodies: a turn about z, a slide along z, a ball.
REVOLUTE, PRISMATIC, BALL = 1, 2, 3
# Kinds of components: one level, several levels, or solved by fallback.py and not in the kernel.
SINGLE, PRIORITIES, FALLBACK = 0, 1, 2


def record(integers: str = "", numbers: str = "", **nested: np.dtype[Any]) -> np.dtype[Any]:
    """A record type of int64 fields, float64 fields and nested records, by name."""
    fields: list[tuple[str, Any]] = [(n, np.int64) for n in integers.split()]
    fields += [(n, np.float64) for n in numbers.split()]
    return np.dtype(fields + list(nested.items()), align=True)


VECTOR = record(numbers="x y z")
#: A rotation row by row, and a position.
POSE = record(numbers="xx xy xz yx yy yz zx zy zz x y z")
#: A body moves by its first freedom (a ball by three) against its parent; origin is its pose in the
#: parent at zero, pose that in the root frame.
BODY = record("parent kind freedom", origin=POSE, pose=POSE)
#: turns: an angle, not a length; wraps: the first of an unlimited ball; rests: has a rest value;
#: loose: rests, and no component moves it. Its axis is in the root frame.
FREEDOM = record("body turns wraps rests loose", "q low high rest step_max", axis=VECTOR)
#: Frame a (in body a) against frame b (in body b). Its rows stand at ``row`` of the component's,
#: their Jacobian at ``matrix`` of the workspace, one row each ``stride`` numbers. A goal's target
#: is frame a.
CLOSURE = record(
    "body_a body_b mode mask rows level component chain_begin chain_end row matrix stride",
    "weight",
    frame_a=POSE,
    frame_b=POSE,
)
#: One freedom of the chain between the two frames of a closure: the column in the component that it
#: is, and the entry of the Jacobian's row at which it is stored.
SUPPORT = record("freedom sign column entry")
#: The begins e to tau are places in the workspace, held and perm in the index; all components share
#: these. ``matrix`` is the Jacobian of a component with one level.
COMPONENT = record(
    "kind round rows columns has_rest freedom_begin freedom_end closure_begin closure_end fk_begin"
    " fk_end block_begin block_end level_begin level_end matrix e v dq saved x y z g norms tau held"
    " perm",
    "damping cost step rest_gain",
)
#: A block of the first level, or a lower level: its columns and closures, where its Jacobian and
#: its factor are, and what factoring found: where the factor begins, how many columns it spans, its
#: rank, and where its free coordinates begin among those that the first level leaves.
PART = record(
    "column_begin column_end closure_begin closure_end rows row matrix factor begin span rank free",
    "cost",
)
ROUND = record("component_begin component_end fk_begin fk_end")


@dataclass(frozen=True)
class Tables:
    """All tables of a linkage.

    Attributes:
        bodies: BODY records, parents before children; the first is the root.
        freedoms: FREEDOM records.
        closures: CLOSURE records, in the order of their components.
        chain: SUPPORT records, in the order of the closures.
        components: COMPONENT records in solve order.
        parts: PART records of all components with several levels.
        rounds: ROUND records.
        index: Lists of freedoms and of bodies, then integer workspace.
        work: Workspace.
    """

    bodies: Records
    freedoms: Records
    closures: Records
    chain: Records
    components: Records
    parts: Records
    rounds: Records
    index: Ints
    work: Array

    def as_tuple(self) -> tuple[NDArray[Any], ...]:
        """The tables in this order; numba takes a plain tuple faster than any other kind."""
        return tuple(vars(self).values())

    def copy(self) -> Tables:
        """Tables for a solve of its own; what no solve changes is shared."""
        shared = ("chain", "rounds")
        return Tables(**{k: v if k in shared else v.copy() for k, v in vars(self).items()})
