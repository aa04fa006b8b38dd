"""What the kernel text may use: constants, polynomials and operations, here as plain Python.

The text of the other modules of this package is a restricted Python: straight-line arithmetic with
``+ - * /`` and the operations below on floats, conditions and records of floats (``NamedTuple``);
no branches, no integers, and loops only of a fixed length. Each operation is rounded in the same
way by IEEE 754 hardware, so all renderings of the text give the same bits, as long as no compiler
fuses a multiplication and an addition. The text also runs as it stands, on Python floats, which is
how it is easiest to debug.
"""

from __future__ import annotations

import math

__all__ = [
    "CONSTANTS",
    "POLYNOMIALS",
    "SINGLE",
    "both",
    "either",
    "fabs",
    "poly",
    "rint",
    "select",
    "sqrt",
]

#: Numbers that differ between the precisions: name -> (float64, float32).
#: pi/2 = PIO2_1 + PIO2_2 + PIO2_3, the first two short enough that k * PIO2_i is exact
#: for |k| < 2^13 (Cody and Waite).
CONSTANTS: dict[str, tuple[float, float]] = {
    "TWO_OVER_PI": (2.0 / math.pi, 2.0 / math.pi),
    "PIO2_1": (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.920p+0")),
    "PIO2_2": (float.fromhex("0x1.0b4611a6p-34"), float.fromhex("0x1.fb4p-12")),
    "PIO2_3": (float.fromhex("0x1.3198a2e037073p-69"), float.fromhex("0x1.4442d18p-24")),
    "TAN_PI_8": (math.sqrt(2.0) - 1.0, math.sqrt(2.0) - 1.0),
    "HALF_PI": (math.pi / 2.0, math.pi / 2.0),
    "QUARTER_PI": (math.pi / 4.0, math.pi / 4.0),
    "MAX_ANGLE": (8192.0, 8192.0),
}

#: Minimax polynomials (Remez, relative error 2^-58 / 2^-28 or better), lowest power first:
#: sin r = r + r u SIN(u), cos r = 1 - u/2 + u^2 COS(u) with u = r^2, |r| <= pi/4;
#: atan t = t + t u ATAN(u) with u = t^2, |t| <= tan(pi/8).
POLYNOMIALS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "SIN": (
        (
            -0.16666666666666632,
            0.008333333333322413,
            -0.00019841269829807924,
            2.7557313691952215e-06,
            -2.505075811994035e-08,
            1.5896795893785417e-10,
        ),
        (-0.1666665493675398, 0.008332177689207342, -0.0001951723498860661),
    ),
    "COS": (
        (
            0.0416666666666666,
            -0.0013888888888874125,
            2.480158728948282e-05,
            -2.7557314352496e-07,
            2.087572329327395e-09,
            -1.1359648753816349e-11,
        ),
        (0.04166664685488563, -0.0013887366921845916, 2.443838065724811e-05),
    ),
    "ATAN": (
        (
            -0.333333333333332,
            0.19999999999954007,
            -0.14285714280240314,
            0.11111110785703805,
            -0.09090897823368566,
            0.07692061395013734,
            -0.0666311753541818,
            0.05847987549306512,
            -0.050397465726881106,
            0.03807574429244452,
            -0.017919393008239193,
        ),
        (
            -0.3333331548983263,
            0.19998488394189431,
            -0.1424382746371188,
            0.1059583383637176,
            -0.0608300433743173,
        ),
    ),
}

#: A block under ``if SINGLE:`` is rendered for float32 only.
SINGLE = False

TWO_OVER_PI, PIO2_1, PIO2_2, PIO2_3, TAN_PI_8, HALF_PI, QUARTER_PI, MAX_ANGLE = (
    pair[0] for pair in CONSTANTS.values()
)
SIN, COS, ATAN = (pair[0] for pair in POLYNOMIALS.values())


def sqrt(x: float) -> float:
    """Square root, correctly rounded; NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def rint(x: float) -> float:
    """Nearest integer, ties to even."""
    return float(round(x)) if math.isfinite(x) else x


def fabs(x: float) -> float:
    """Absolute value."""
    return abs(x)


def select(condition: bool, yes: float, no: float) -> float:
    """One of two values; both are computed."""
    return yes if condition else no


def both(p: bool, q: bool) -> bool:
    """Logical and, without a branch."""
    return p and q


def either(p: bool, q: bool) -> bool:
    """Logical or, without a branch."""
    return p or q


def poly(u: float, coefficients: tuple[float, ...]) -> float:
    """Polynomial with the lowest power first, by Horner's rule."""
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * u + c
    return value
