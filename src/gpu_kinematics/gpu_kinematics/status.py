"""The status mask of a robot: 16 bits, four of them for each arm."""

from __future__ import annotations

from collections import Counter
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

__all__ = ["ARMS", "Status", "arm_bits", "explain", "summary"]

ARMS = 3


class Status(IntFlag):
    """Bits of the mask. The first four belong to arm 0; ``arm_bits`` moves them to another arm."""

    OK = 0
    TOO_FAR = 1
    TOO_NEAR = 2
    BELOW_LIMIT = 4
    ABOVE_LIMIT = 8
    INVALID = 4096
    SINGULAR = 8192
    NO_ASSEMBLY = 16384
    BAD_GEOMETRY = 32768

    #: Any arm out of reach.
    UNREACHABLE = 0x333
    #: Any joint limit passed; the solution itself is valid.
    LIMITS = 0xCCC


_ARM_TEXT = {
    Status.TOO_FAR: "is too far from the target for its rod",
    Status.TOO_NEAR: "is too near to the target for its rod",
    Status.BELOW_LIMIT: "is below its joint limit",
    Status.ABOVE_LIMIT: "is above its joint limit",
}
_ROBOT_TEXT = {
    Status.INVALID: "input is NaN, infinite, or an angle beyond 8192 rad",
    Status.SINGULAR: "at a singularity",
    Status.NO_ASSEMBLY: "the rods cannot meet at these angles",
    Status.BAD_GEOMETRY: "geometry is not usable",
}


def arm_bits(bits: Status, arm: int) -> int:
    """The bits of one arm (0, 1, 2) at their place in the mask."""
    return int(bits) << (4 * arm)


def explain(mask: int) -> str:
    """A mask in words, such as ``arm 2 is above its joint limit``; ``ok`` for 0."""
    parts = [
        f"arm {arm + 1} {text}"
        for arm in range(ARMS)
        for bit, text in _ARM_TEXT.items()
        if int(mask) & arm_bits(bit, arm)
    ]
    parts += [text for bit, text in _ROBOT_TEXT.items() if int(mask) & int(bit)]
    return "; ".join(parts) or "ok"


def summary(masks: NDArray[np.uint16], most: int = 3) -> str:
    """The commonest reasons in a batch of masks, with their counts; empty if all is well."""
    values, counts = np.unique(np.asarray(masks), return_counts=True)
    tally = Counter({int(v): int(c) for v, c in zip(values, counts, strict=True) if v})
    parts = [f"{number} robots: {explain(mask)}" for mask, number in tally.most_common(most)]
    if len(tally) > most:
        parts.append(f"and {len(tally) - most} more reasons")
    return ". ".join(parts)
