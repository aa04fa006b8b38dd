"""One elastic rod, shot from the base: the reduced Cosserat equations, eight rods at a time.

A Cosserat rod that is isotropic and carries no torsion needs no frame along it. The internal force
n is constant, m.t = 0 throughout, and what the tutorial integrates with 18 states is exactly

    t' = m x t / EI,    m' = n x f,    p' = f + n / GA,    f = t (1 + c n.t),   c = 1/EA - 1/GA.

Two changes of variable make it cheaper still. In a frame whose third axis lies along n, the third
component of m is constant and n x f has two components. With s in steps of h and w = h m / EI, no
product with h is left:

    t' = w x t,    w' = G g (-ty, tx, 0),    g = 1 + e tz,    G = +-|n| h^2 / EI,    e = +-|n| c.

Rods lie in records of eight lanes, one row of eight numbers for each quantity, so that the
straight-line body of the loop over lanes becomes one SIMD instruction for each operation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: A numpy record, as a kernel sees it; numba knows the types of its fields.
Record = Any

#: Fused multiply-add and free order of sums, no more: full fast-math would drop the checks for NaN.
KERNEL: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc"},
    "error_model": "numpy",
}

#: For what is called from one place only. Numba compiles each function by itself together with all
#: that it calls; what is inlined is compiled once less.
INLINED: dict[str, Any] = {"inline": "always"}

RODS, LANES = 6, 8
#: Rows of the unknowns y of a rod: force n [N], moment at the base [N m] (its z component is zero)
#: and length [m].
NX, NY, NZ, MX, MY, LENGTH = range(6)

#: Eight rods, a row of lanes for each number. Rods 6 and 7 do not exist and are fed with harmless
#: values, so that every loop over lanes is one SIMD instruction.
RODS_RECORD = np.dtype(
    [
        # What goes in,
        ("y", np.float64, (6, LANES)),
        ("inv_EI", np.float64, LANES),
        ("c", np.float64, LANES),  # 1/EA - 1/GA
        ("inv_GA", np.float64, LANES),
        # what comes out,
        ("p", np.float64, (3, LANES)),  # tip relative to the hole in the base [m]
        ("t", np.float64, (3, LANES)),  # unit tangent of the centreline at the tip
        ("m", np.float64, (3, LANES)),  # moment at the tip [N m]
        ("u_min", np.float64, LANES),  # least n.t on the way [N]: there the rod is bent most
        # and the state on the way, in the frame along n: t, w, the integral of f, and constants.
        ("tn", np.float64, (3, LANES)),
        ("wn", np.float64, (3, LANES)),
        ("sn", np.float64, (3, LANES)),
        ("axis", np.float64, (3, LANES)),
        ("norm", np.float64, LANES),  # n along the axis
        ("G", np.float64, LANES),
        ("e", np.float64, LANES),
    ]
)

# The 8th-order formula of the Dormand-Prince pair DOP853 (Hairer, Norsett, Wanner: Solving Ordinary
# Differential Equations I, 2nd ed., section II.10). Stage i takes Ai_j of slope j; B are the
# weights.
A2_1 = 0.05260015195876773
A3_1, A3_2 = 0.0197250569845379, 0.0591751709536137
A4_1, A4_3 = 0.02958758547680685, 0.08876275643042054
A5_1, A5_3, A5_4 = 0.2413651341592667, -0.8845494793282861, 0.924834003261792
A6_1, A6_4, A6_5 = 0.037037037037037035, 0.17082860872947386, 0.12546768756682242
A7_1, A7_4, A7_5 = 0.037109375, 0.17025221101954405, 0.06021653898045596
A7_6 = -0.017578125
A8_1, A8_4, A8_5 = 0.03709200011850479, 0.17038392571223998, 0.10726203044637328
A8_6, A8_7 = -0.015319437748624402, 0.008273789163814023
A9_1, A9_4, A9_5 = 0.6241109587160757, -3.3608926294469414, -0.868219346841726
A9_6, A9_7, A9_8 = 27.59209969944671, 20.154067550477894, -43.48988418106996
A10_1, A10_4, A10_5 = 0.47766253643826434, -2.4881146199716677, -0.590290826836843
A10_6, A10_7, A10_8 = 21.230051448181193, 15.279233632882423, -33.28821096898486
A10_9 = -0.020331201708508627
A11_1, A11_4, A11_5 = -0.9371424300859873, 5.186372428844064, 1.0914373489967295
A11_6, A11_7, A11_8 = -8.149787010746927, -18.52006565999696, 22.739487099350505
A11_9, A11_10 = 2.4936055526796523, -3.0467644718982196
A12_1, A12_4, A12_5 = 2.273310147516538, -10.53449546673725, -2.0008720582248625
A12_6, A12_7, A12_8 = -17.9589318631188, 27.94888452941996, -2.8589982771350235
A12_9, A12_10, A12_11 = -8.87285693353063, 12.360567175794303, 0.6433927460157636
B1, B6, B7 = 0.054293734116568765, 4.450312892752409, 1.8915178993145003
B8, B9, B10 = -5.801203960010585, 0.3111643669578199, -0.1521609496625161
B11, B12 = 0.20136540080403034, 0.04471061572777259

State = tuple[float, float, float, float, float]
Vector = tuple[float, float, float]


@njit(inline="always")
def _rate(y: State, wz: float, G: float, e: float) -> State:
    """Slope of (tx, ty, tz, wx, wy) by one step."""
    tx, ty, tz, wx, wy = y
    Gg = G + (G * e) * tz
    return (wy * tz - wz * ty, wz * tx - wx * tz, wx * ty - wy * tx, -Gg * ty, Gg * tx)


@njit(inline="always")
def _add(y: State, a: float, k: State) -> State:
    """Return y + a k."""
    return (y[0] + a * k[0], y[1] + a * k[1], y[2] + a * k[2], y[3] + a * k[3], y[4] + a * k[4])


@njit(forceinline=True, fastmath=KERNEL["fastmath"])
def _sum(y: State, *terms: tuple[float, State]) -> State:
    """Return y + the sum of a k."""
    for a, k in terms:
        y = _add(y, a, k)
    return y


@njit(inline="always")
def _gain(s: Vector, b: float, y: State, e: float) -> Vector:
    """Return s + b f, the part of the position that comes from f."""
    bg = b + (b * e) * y[2]
    return (s[0] + bg * y[0], s[1] + bg * y[1], s[2] + bg * y[2])


@njit(inline="always")
def _to_base(x: float, y: float, z: float, a: Vector, k: float) -> Vector:
    """Turn a vector from the frame along n into the base frame, k = 1 / (1 + az)."""
    shared = z - (a[0] * x + a[1] * y) * k
    return x + a[0] * shared, y + a[1] * shared, a[2] * z - a[0] * x - a[1] * y


@njit(**KERNEL)
def shoot(rods: Record, steps: int) -> None:
    """Integrate eight rods (RODS_RECORD) from the base to the tip.

    Args:
        rods: What goes in is read, what comes out is written.
        steps: Steps of the 8th-order formula, the same for all eight.
    """
    y, tn, wn, sn, axis = rods.y, rods.tn, rods.wn, rods.sn, rods.axis
    per_step = 1.0 / steps
    for i in range(LANES):
        nx, ny, nz = y[NX, i], y[NY, i], y[NZ, i]
        h = y[LENGTH, i] * per_step
        norm = math.sqrt(nx * nx + ny * ny + nz * nz)
        # The third axis a = +-n/|n| is chosen with az >= 0, so that 1 + az is never near zero.
        signed = math.copysign(norm, nz)
        scale = 1.0 / signed if norm > 1e-150 else 0.0
        ax, ay = nx * scale, ny * scale
        az = nz * scale if norm > 1e-150 else 1.0
        k = 1.0 / (1.0 + az)
        to_w = h * rods.inv_EI[i]
        mx, my = y[MX, i] * to_w, y[MY, i] * to_w
        shared = (ax * mx + ay * my) * k
        tn[0, i], tn[1, i], tn[2, i] = -ax, -ay, az
        wn[0, i], wn[1, i], wn[2, i] = mx - ax * shared, my - ay * shared, ax * mx + ay * my
        sn[0, i], sn[1, i], sn[2, i] = 0.0, 0.0, 0.0
        axis[0, i], axis[1, i], axis[2, i] = ax, ay, az
        rods.norm[i] = signed
        rods.G[i] = signed * to_w * h
        rods.e[i] = signed * rods.c[i]
        rods.u_min[i] = nz

    for _ in range(steps):
        _step(rods)

    p, t, m = rods.p, rods.t, rods.m
    for i in range(LANES):
        a = (axis[0, i], axis[1, i], axis[2, i])
        k = 1.0 / (1.0 + a[2])
        h = y[LENGTH, i] * per_step
        from_w = 1.0 / (h * rods.inv_EI[i])
        axial = y[LENGTH, i] * rods.inv_GA[i]
        px, py, pz = _to_base(sn[0, i] * h, sn[1, i] * h, sn[2, i] * h, a, k)
        p[0, i] = px + axial * y[NX, i]
        p[1, i] = py + axial * y[NY, i]
        p[2, i] = pz + axial * y[NZ, i]
        t[0, i], t[1, i], t[2, i] = _to_base(tn[0, i], tn[1, i], tn[2, i], a, k)
        m[0, i], m[1, i], m[2, i] = _to_base(
            wn[0, i] * from_w, wn[1, i] * from_w, wn[2, i] * from_w, a, k
        )


@njit(**KERNEL)
def _step(rods: Record) -> None:
    """Advance eight rods by one step of the 8th-order formula."""
    tn, wn, sn = rods.tn, rods.wn, rods.sn
    for i in range(LANES):
        wz, G, e, norm = wn[2, i], rods.G[i], rods.e[i], rods.norm[i]
        y = (tn[0, i], tn[1, i], tn[2, i], wn[0, i], wn[1, i])
        s = (sn[0, i], sn[1, i], sn[2, i])
        k1 = _rate(y, wz, G, e)
        s, end = _gain(s, B1, y, e), _add(y, B1, k1)
        k2 = _rate(_add(y, A2_1, k1), wz, G, e)
        k3 = _rate(_sum(y, (A3_1, k1), (A3_2, k2)), wz, G, e)
        k4 = _rate(_sum(y, (A4_1, k1), (A4_3, k3)), wz, G, e)
        k5 = _rate(_sum(y, (A5_1, k1), (A5_3, k3), (A5_4, k4)), wz, G, e)
        u = _sum(y, (A6_1, k1), (A6_4, k4), (A6_5, k5))
        k6 = _rate(u, wz, G, e)
        lowest = min(rods.u_min[i], norm * u[2])
        s, end = _gain(s, B6, u, e), _add(end, B6, k6)
        u = _sum(y, (A7_1, k1), (A7_4, k4), (A7_5, k5), (A7_6, k6))
        k7 = _rate(u, wz, G, e)
        s, end = _gain(s, B7, u, e), _add(end, B7, k7)
        u = _sum(y, (A8_1, k1), (A8_4, k4), (A8_5, k5), (A8_6, k6), (A8_7, k7))
        k8 = _rate(u, wz, G, e)
        s, end = _gain(s, B8, u, e), _add(end, B8, k8)
        u = _sum(y, (A9_1, k1), (A9_4, k4), (A9_5, k5), (A9_6, k6), (A9_7, k7), (A9_8, k8))
        k9 = _rate(u, wz, G, e)
        s, end = _gain(s, B9, u, e), _add(end, B9, k9)
        u = _sum(
            y, (A10_1, k1), (A10_4, k4), (A10_5, k5), (A10_6, k6), (A10_7, k7), (A10_8, k8),
            (A10_9, k9),
        )  # fmt: skip
        k10 = _rate(u, wz, G, e)
        lowest = min(lowest, norm * u[2])
        s, end = _gain(s, B10, u, e), _add(end, B10, k10)
        u = _sum(
            y, (A11_1, k1), (A11_4, k4), (A11_5, k5), (A11_6, k6), (A11_7, k7), (A11_8, k8),
            (A11_9, k9), (A11_10, k10),
        )  # fmt: skip
        k11 = _rate(u, wz, G, e)
        s, end = _gain(s, B11, u, e), _add(end, B11, k11)
        u = _sum(
            y, (A12_1, k1), (A12_4, k4), (A12_5, k5), (A12_6, k6), (A12_7, k7), (A12_8, k8),
            (A12_9, k9), (A12_10, k10), (A12_11, k11),
        )  # fmt: skip
        k12 = _rate(u, wz, G, e)
        s, end = _gain(s, B12, u, e), _add(end, B12, k12)
        rods.u_min[i] = min(lowest, norm * end[2])
        tn[0, i], tn[1, i], tn[2, i], wn[0, i], wn[1, i] = end
        sn[0, i], sn[1, i], sn[2, i] = s
