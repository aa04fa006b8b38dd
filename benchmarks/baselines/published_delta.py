"""The formulas of Zhakypov, Pehlivan, Kocagil and Ince, as printed, kept as the baseline.

They are the reference that speed is measured against, and they document where they fail:

- the printed IK radicand has "-4 R^2"; "+4 R^2" is right (``printed=True`` keeps the error);
- IK is 0/0 inside the workspace, where the denominator vanishes with the numerator, for instance at
  (0, 0, -61.26785454053373) mm, and loses digits all around it;
- FK divides by H2, which vanishes if r1 r2 + r2 r3 + r3 r1 = 0 with r = R + L_A cos a;
- F = E tan(theta) has no value at theta = +-90 deg; 2 (R + L_A cos a) sin(theta) has.

With numpy functions it works on arrays, with ``math`` on numbers: pass the module as ``xp``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["THETA", "published_fk", "published_ik"]

#: The authors' angle between arms, cut off after six digits: it explains their last printed digit.
THETA = 2.094395


def published_fk(
    angles: Any,
    radius: float,
    upper: float,
    lower: float,
    theta: tuple[float, float, float] = (0.0, THETA, 2 * THETA),
    xp: Any = np,
) -> tuple[Any, Any, Any]:
    """Forward kinematics by elimination: D, E, F, G, H1..H5, L, M, Q, the lower root for z.

    The text has joint angles positive upward; G carries the sign of this package's convention.
    """
    R, LA, LB = radius, upper, lower
    D, E, F, G = [], [], [], []
    for a, th in zip(angles, theta, strict=True):
        ca, sa = xp.cos(a), xp.sin(a)
        D.append(-LB * LB + LA * LA + R * R + 2 * R * LA * ca)
        E.append(2 * (R + LA * ca) * math.cos(th))
        F.append(2 * (R + LA * ca) * math.sin(th))
        G.append(-2 * LA * sa)
    (D1, D2, D3), (E1, E2, E3), (F1, F2, F3), (G1, G2, G3) = D, E, F, G
    H1 = E1 * G2 - E1 * G3 - E2 * G1 + E2 * G3 + E3 * G1 - E3 * G2
    H2 = -E1 * F2 + E1 * F3 + E2 * F1 - E2 * F3 - E3 * F1 + E3 * F2
    H3 = -E1 * D2 + E1 * D3 + E2 * D1 - E2 * D3 - E3 * D1 + E3 * D2
    H4 = F1 * D2 - F1 * D3 - F2 * D1 + F2 * D3 + F3 * D1 - F3 * D2
    H5 = -F1 * G2 + F1 * G3 + F2 * G1 - F2 * G3 - F3 * G1 + F3 * G2
    L = (H5 * H5 + H1 * H1) / (H2 * H2) + 1
    M = 2 * (H5 * H4 + H1 * H3) / (H2 * H2) - (H5 * E1 + H1 * F1) / H2 - G1
    Q = (H4 * H4 + H3 * H3) / (H2 * H2) - (H4 * E1 + H3 * F1) / H2 + D1
    z = (-M - xp.sqrt(M * M - 4 * L * Q)) / (2 * L)
    return z * H5 / H2 + H4 / H2, z * H1 / H2 + H3 / H2, z


def published_ik(
    position: Any,
    radius: float,
    upper: float,
    lower: float,
    theta: tuple[float, float, float] = (0.0, THETA, 2 * THETA),
    xp: Any = np,
    printed: bool = False,
) -> tuple[Any, Any, Any]:
    """Inverse kinematics by the half-angle tangent, alpha = -2 atan(T).

    Args:
        position: x, y, z.
        radius: R.
        upper: L_A.
        lower: L_B.
        theta: Directions of the arms [rad].
        xp: ``numpy`` or ``math``.
        printed: Keep the wrong sign of 4 R^2 of the printed formula.
    """
    x, y, z = position
    R, LA, LB = radius, upper, lower
    atan = xp.arctan if hasattr(xp, "arctan") else xp.atan
    S = (-x * x - y * y - z * z + LB * LB - LA * LA - R * R) / LA
    sign = -1 if printed else 1
    angles = []
    for th in theta:
        Qi = 2 * x * math.cos(th) + 2 * y * math.sin(th)
        root = xp.sqrt(
            4 * z * z
            + sign * 4 * R * R
            - S * S
            + Qi * Qi * (1 - R * R / (LA * LA))
            + Qi * (-2 * R * S / LA - 4 * R)
        )
        T = (2 * z + root) / (-2 * R - S - Qi * (R / LA - 1))
        angles.append(-2 * atan(T))
    return angles[0], angles[1], angles[2]
