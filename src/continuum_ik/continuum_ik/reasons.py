"""Why a target was refused, and by which route it was reached, as numbers for kernels and words."""

from __future__ import annotations

# Codes of kin_core.errors.StatusCode that kernels return.
SUCCESS, INVALID_INPUT, UNREACHABLE, NOT_CONVERGED, CANCELLED = 0, 1, 2, 3, 5

# Reasons.
NONE = 0
NOT_FINITE = 1
NOT_A_ROTATION = 2
TOO_FAR = 3
BEHIND_BASE = 4
FOLD = 5
TOO_SHORT = 6
TOO_LONG = 7
FORCE_TOO_LARGE = 8
BENT_TOO_MUCH = 9
NO_START = 10
STOPPED = 11
STALLED = 12
ROUNDING = 13
NOT_STABLE = 14

# Routes.
ROUTE_TRACKED = 0  #: prediction and chord steps
ROUTE_STRAIGHT = 1  #: continuation from the last good pose
ROUTE_HOME = 2  #: continuation from home
ROUTE_AXIS = 3  #: continuation from home, along the axis first
ROUTE_NAMES = ("tracked", "straight", "from home", "from home along the axis")


def describe(reason: int, leg: int, reached: float) -> str:
    """Return the sentence for people."""
    way = f"; reached {100.0 * reached:.1f} % of the way" if reached < 1.0 else ""
    return {
        NONE: "",
        NOT_FINITE: "pose: must be finite",
        NOT_A_ROTATION: "pose: must be a quaternion of norm 1, or an orthonormal matrix",
        TOO_FAR: f"leg {leg} would have to be longer than its limit even if it were straight",
        BEHIND_BASE: f"hole {leg} of the platform would lie below the lowest height allowed",
        FOLD: f"the path ends at a fold, where rod {leg} changes most{way}",
        TOO_SHORT: f"leg {leg} would be shorter than its limit{way}",
        TOO_LONG: f"leg {leg} would be longer than its limit{way}",
        FORCE_TOO_LARGE: f"rod {leg} would carry more than its force limit{way}",
        BENT_TOO_MUCH: f"rod {leg} would be bent beyond its curvature limit{way}",
        NO_START: "there is no solution to start from",
        STOPPED: f"stopped by the caller{way}",
        STALLED: f"the steps along the path ran out{way}",
        NOT_STABLE: "the equilibrium at this pose is not stable, the platform would leave it: "
        f"a rod buckles on the way{way}",
        ROUNDING: f"rounding errors keep the residual above the tolerance: rod {leg} is so tense "
        "that its tip cannot be computed more closely",
    }.get(reason, "")
