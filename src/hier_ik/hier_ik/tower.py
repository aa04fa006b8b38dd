"""The tower: a chain of blocks, each a hybrid of two four-bar legs under two abstractions.

After Vona, Sec. 5 and Fig. 3 and 4. The motion is in the plane xz, all hinges turn about y. Each
block moves as a tilt and an expansion (C), which drives two pistons (B with I), each of which
drives a leg of four revolute joints (A) whose middle link stays parallel to the piston. Per block 8
real revolute joints and 10 virtual joints that are not fixed.
"""

from __future__ import annotations

import math
from typing import Any

from hier_ik.elements import frame
from hier_ik.linkage import Linkage
from kin_core.errors import InvalidInput

__all__ = ["HALF_WIDTH", "LEG", "MIDDLE", "block_posture", "tower"]

#: Half the distance of the two legs, length of the outer bars, length of the middle bar [m].
HALF_WIDTH, LEG, MIDDLE = 0.4, 0.4, 0.4
#: Limits of the block's two freedoms: tilt [rad] and height [m].
TILT, LOW, HIGH = math.radians(15.0), 0.65, 0.95
MAX_BLOCKS = 1000
_Y = (0.0, 1.0, 0.0)


def tower(blocks: int, *, flat: bool = False, goal: bool = True) -> Linkage:
    """Build a tower.

    Args:
        blocks: 1 to 1000.
        flat: Without sublinkages; the priorities of the closures stay.
        goal: With the goal "drag", the position of the topmost plate.
    """
    if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= MAX_BLOCKS:
        raise InvalidInput("blocks", f"must be an integer from 1 to {MAX_BLOCKS}, got {blocks!r}")
    tower = Linkage(f"tower{blocks}")
    tower.add_link("P0")
    for k in range(1, blocks + 1):
        _add_block(tower, k)
    if goal:
        tower.add_goal("drag", f"P{blocks}", "position")
    return tower.flattened() if flat else tower


def block_posture(tilt: float, height: float, side: int) -> tuple[float, ...]:
    """Closed form of a leg: (alpha, length, end angle, R1, R2, R3) for side -1 (left) or +1.

    The top anchor stands at R(tilt)(side w, height) from the centre of the block below; theta
    opens the leg to the outside.
    """
    w = side * HALF_WIDTH
    x = w * math.cos(tilt) + height * math.sin(tilt) - w
    z = -w * math.sin(tilt) + height * math.cos(tilt)
    length, alpha = math.hypot(x, z), math.atan2(x, z)
    theta = side * math.acos((length - MIDDLE) / (2.0 * LEG))
    return alpha, length, tilt - alpha, alpha + theta, -theta, -theta


def _tree(t: Linkage, name: str, kind: str, parent: str, child: str, **options: Any) -> None:
    """Add a virtual tree joint."""
    t.add_joint(name, kind, parent, child, closure=False, virtual=True, **options)


def _add_block(t: Linkage, k: int) -> None:
    below, above = f"P{k - 1}", f"P{k}"
    C, B = f"C{k}", f"B{k}"
    t.add_link(above)
    t.add_sublinkage(C, "simultaneous")
    c = [f"{C}.c{i}" for i in range(3)]
    for name in c:
        t.add_link(name, C, virtual=True)
    height = 2.0 * LEG * math.cos(math.radians(60.0)) + MIDDLE
    _tree(t, f"{C}.base", "fixed", below, c[0])
    _tree(t, f"{C}.tilt", "revolute", c[0], c[1], axis=_Y, lower=-TILT, upper=TILT)
    _tree(t, f"{C}.expand", "prismatic", c[1], c[2], lower=LOW, upper=HIGH, value=height)
    _tree(t, f"{C}.top", "fixed", c[2], above)

    t.add_sublinkage(B, "driven", parent=C)
    b0, b1 = f"{B}.b0", f"{B}.b1"
    t.add_link(b0, B, virtual=True)
    t.add_link(b1, B, virtual=True)
    _tree(t, f"{B}.base", "fixed", c[0], b0)
    t.add_joint(f"{B}.top", "fixed", c[2], b1, xyz=(-HALF_WIDTH, 0, 0), closure=True, virtual=True)
    for side, letter in ((-1, "L"), (1, "R")):
        _add_piston(t, k, side, letter, b0, b1)
        _add_leg(t, k, side, letter)


def _add_piston(t: Linkage, k: int, side: int, letter: str, b0: str, b1: str) -> None:
    """The interface I: a virtual revolute, prismatic, revolute chain between the plates of B."""
    piston = f"I{k}{letter}"
    alpha, length, end, *_ = block_posture(0.0, 0.8, side)
    t.add_sublinkage(piston, "simultaneous", parent=f"B{k}")
    e0, u, v, e1 = (f"{piston}.{n}" for n in ("e0", "u", "v", "e1"))
    for name in (e0, u, v, e1):
        t.add_link(name, piston, virtual=True)
    _tree(t, f"{piston}.base", "fixed", b0, e0, xyz=(side * HALF_WIDTH, 0, 0))
    _tree(t, f"{piston}.swing", "revolute", e0, u, axis=_Y, value=alpha)
    _tree(t, f"{piston}.slide", "prismatic", u, v, value=length)
    _tree(t, f"{piston}.end", "revolute", v, e1, axis=_Y, value=end)
    if side < 0:
        _tree(t, f"{piston}.top", "fixed", e1, b1)
    else:
        t.add_joint(
            f"{piston}.top", "fixed", b1, e1, xyz=(2 * HALF_WIDTH, 0, 0), closure=True,
            virtual=True,
        )  # fmt: skip


def _add_leg(t: Linkage, k: int, side: int, letter: str) -> None:
    """The implementation A: four real revolute joints, its middle link parallel to the piston."""
    leg, piston = f"A{k}{letter}", f"I{k}{letter}"
    *_, r1, r2, r3 = block_posture(0.0, 0.8, side)
    t.add_sublinkage(leg, "driven", parent=piston)
    a, m, b = (f"{leg}.{n}" for n in ("a", "m", "b"))
    for name in (a, m, b):
        t.add_link(name, leg)
    t.add_joint(f"{leg}.R1", "revolute", f"{piston}.e0", a, axis=_Y, closure=False, value=r1)
    t.add_joint(f"{leg}.R2", "revolute", a, m, xyz=(0, 0, LEG), axis=_Y, closure=False, value=r2)
    t.add_joint(f"{leg}.R3", "revolute", m, b, xyz=(0, 0, MIDDLE), axis=_Y, closure=False, value=r3)
    t.add_joint(
        f"{leg}.R4", "revolute", f"{piston}.e1", b, child_origin=frame((0, 0, LEG)), axis=_Y,
        closure=True,
    )  # fmt: skip
    t.add_joint(
        f"{leg}.parallel", "cartesian2", f"{piston}.u", m, axis=_Y, closure=True, virtual=True
    )
