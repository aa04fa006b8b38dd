"""One elastic rod, shot from the base: the reduced Cosserat equations, eight rods at a time.

A Cosserat rod that is isotropic and carries no torsion needs no frame along it. The internal force
n is constant, m.t = 0 throughout, and what the tutorial integrates with 18 states is exactly

    t' = m x t / EI,    m' = n x f,    p' = f + n / GA,    f = t (1 + c n.t),   c = 1/EA - 1/GA.

Two changes of variable make it cheaper still. In a frame whose third axis lies along n, the third
component of m is constant and n x f has two components. With s in steps of h and w = h m / EI, no
product with h is left:

    t' = w x t,    w' = G g (-ty, tx, 0),    g = 1 + e tz,    G = +-|n| h^2 / EI,    e = +-|n| c.

Rods lie in blocks of eight lanes, one row of eight numbers for each quantity (the rows below), so
that the straight-line body of the loop over lanes becomes one SIMD instruction for each operation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

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

LANES = 8
# Rows of a block: what goes in,
N_X, N_Y, N_Z = 0, 8, 16  #: internal force n [N], base frame
M_X, M_Y = 24, 32  #: moment at the base [N m]; its z component is zero
LENGTH = 40  #: [m]
INV_EI, SHEAR_C, INV_GA = 48, 56, 64  #: 1/EI, c = 1/EA - 1/GA, 1/GA
# what comes out,
P_X, P_Y, P_Z = 72, 80, 88  #: tip relative to the hole in the base [m]
T_X, T_Y, T_Z = 96, 104, 112  #: unit tangent of the centreline at the tip
ML_X, ML_Y, ML_Z = 120, 128, 136  #: moment at the tip [N m]
# and the state on the way, in the frame along n.
_TX, _TY, _TZ, _WX, _WY, _WZ = 144, 152, 160, 168, 176, 184
_SX, _SY, _SZ, _G, _E = 192, 200, 208, 216, 224
_AX, _AY, _AZ, _N = 232, 240, 248, 256
U_MIN = 264  #: smallest n.t seen on the way [N]; by the energy integral, where the rod is bent most
#: Numbers in a block.
BLOCK = 272

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


@njit(inline="always")
def _gain(
    s: tuple[float, float, float], b: float, y: State, e: float
) -> tuple[float, float, float]:
    """Return s + b f, the part of the position that comes from f."""
    bg = b + (b * e) * y[2]
    return (s[0] + bg * y[0], s[1] + bg * y[1], s[2] + bg * y[2])


@njit(**KERNEL)
def shoot(w: Array, at: int, steps: int) -> None:
    """Integrate the eight rods of the block at ``w[at]`` from the base to the tip.

    Args:
        w: Flat storage; the block's input rows are read, its output rows are written.
        at: Where the block begins.
        steps: Steps of the 8th-order formula, the same for all eight.
    """
    w = w[at : at + BLOCK]
    per_step = 1.0 / steps
    for i in range(LANES):
        nx, ny, nz = w[i + N_X], w[i + N_Y], w[i + N_Z]
        h = w[i + LENGTH] * per_step
        norm = math.sqrt(nx * nx + ny * ny + nz * nz)
        # The third axis a = +-n/|n| is chosen with az >= 0, so that 1 + az is never near zero.
        signed = math.copysign(norm, nz)
        scale = 1.0 / signed if norm > 1e-150 else 0.0
        ax, ay = nx * scale, ny * scale
        az = nz * scale if norm > 1e-150 else 1.0
        k = 1.0 / (1.0 + az)
        to_w = h * w[i + INV_EI]
        mx, my = w[i + M_X] * to_w, w[i + M_Y] * to_w
        shared = (ax * mx + ay * my) * k
        w[i + _TX], w[i + _TY], w[i + _TZ] = -ax, -ay, az
        w[i + _WX] = mx - ax * shared
        w[i + _WY] = my - ay * shared
        w[i + _WZ] = ax * mx + ay * my
        w[i + _SX], w[i + _SY], w[i + _SZ] = 0.0, 0.0, 0.0
        w[i + _G] = signed * to_w * h
        w[i + _E] = signed * w[i + SHEAR_C]
        w[i + _AX], w[i + _AY], w[i + _AZ] = ax, ay, az
        w[i + _N] = signed
        w[i + U_MIN] = nz

    for _ in range(steps):
        _step(w)

    for i in range(LANES):
        ax, ay, az = w[i + _AX], w[i + _AY], w[i + _AZ]
        k = 1.0 / (1.0 + az)
        h = w[i + LENGTH] * per_step
        from_w = 1.0 / (h * w[i + INV_EI])
        axial = w[i + LENGTH] * w[i + INV_GA]
        x, y, z = w[i + _SX] * h, w[i + _SY] * h, w[i + _SZ] * h
        shared = z - (ax * x + ay * y) * k
        w[i + P_X] = x + ax * shared + axial * w[i + N_X]
        w[i + P_Y] = y + ay * shared + axial * w[i + N_Y]
        w[i + P_Z] = az * z - ax * x - ay * y + axial * w[i + N_Z]
        x, y, z = w[i + _TX], w[i + _TY], w[i + _TZ]
        shared = z - (ax * x + ay * y) * k
        w[i + T_X] = x + ax * shared
        w[i + T_Y] = y + ay * shared
        w[i + T_Z] = az * z - ax * x - ay * y
        x, y, z = w[i + _WX] * from_w, w[i + _WY] * from_w, w[i + _WZ] * from_w
        shared = z - (ax * x + ay * y) * k
        w[i + ML_X] = x + ax * shared
        w[i + ML_Y] = y + ay * shared
        w[i + ML_Z] = az * z - ax * x - ay * y


@njit(**KERNEL)
def _step(w: Array) -> None:
    """Advance the eight rods of a block by one step of the 8th-order formula."""
    for i in range(LANES):
        wz, G, e = w[i + _WZ], w[i + _G], w[i + _E]
        y = (w[i + _TX], w[i + _TY], w[i + _TZ], w[i + _WX], w[i + _WY])
        s = (w[i + _SX], w[i + _SY], w[i + _SZ])
        k1 = _rate(y, wz, G, e)
        s = _gain(s, B1, y, e)
        end = _add(y, B1, k1)
        u = _add(y, A2_1, k1)
        k2 = _rate(u, wz, G, e)
        u = _add(y, A3_1, k1)
        u = _add(u, A3_2, k2)
        k3 = _rate(u, wz, G, e)
        u = _add(y, A4_1, k1)
        u = _add(u, A4_3, k3)
        k4 = _rate(u, wz, G, e)
        u = _add(y, A5_1, k1)
        u = _add(u, A5_3, k3)
        u = _add(u, A5_4, k4)
        k5 = _rate(u, wz, G, e)
        u = _add(y, A6_1, k1)
        u = _add(u, A6_4, k4)
        u = _add(u, A6_5, k5)
        k6 = _rate(u, wz, G, e)
        lowest = min(w[i + U_MIN], w[i + _N] * u[2])
        s = _gain(s, B6, u, e)
        end = _add(end, B6, k6)
        u = _add(y, A7_1, k1)
        u = _add(u, A7_4, k4)
        u = _add(u, A7_5, k5)
        u = _add(u, A7_6, k6)
        k7 = _rate(u, wz, G, e)
        s = _gain(s, B7, u, e)
        end = _add(end, B7, k7)
        u = _add(y, A8_1, k1)
        u = _add(u, A8_4, k4)
        u = _add(u, A8_5, k5)
        u = _add(u, A8_6, k6)
        u = _add(u, A8_7, k7)
        k8 = _rate(u, wz, G, e)
        s = _gain(s, B8, u, e)
        end = _add(end, B8, k8)
        u = _add(y, A9_1, k1)
        u = _add(u, A9_4, k4)
        u = _add(u, A9_5, k5)
        u = _add(u, A9_6, k6)
        u = _add(u, A9_7, k7)
        u = _add(u, A9_8, k8)
        k9 = _rate(u, wz, G, e)
        s = _gain(s, B9, u, e)
        end = _add(end, B9, k9)
        u = _add(y, A10_1, k1)
        u = _add(u, A10_4, k4)
        u = _add(u, A10_5, k5)
        u = _add(u, A10_6, k6)
        u = _add(u, A10_7, k7)
        u = _add(u, A10_8, k8)
        u = _add(u, A10_9, k9)
        k10 = _rate(u, wz, G, e)
        lowest = min(lowest, w[i + _N] * u[2])
        s = _gain(s, B10, u, e)
        end = _add(end, B10, k10)
        u = _add(y, A11_1, k1)
        u = _add(u, A11_4, k4)
        u = _add(u, A11_5, k5)
        u = _add(u, A11_6, k6)
        u = _add(u, A11_7, k7)
        u = _add(u, A11_8, k8)
        u = _add(u, A11_9, k9)
        u = _add(u, A11_10, k10)
        k11 = _rate(u, wz, G, e)
        s = _gain(s, B11, u, e)
        end = _add(end, B11, k11)
        u = _add(y, A12_1, k1)
        u = _add(u, A12_4, k4)
        u = _add(u, A12_5, k5)
        u = _add(u, A12_6, k6)
        u = _add(u, A12_7, k7)
        u = _add(u, A12_8, k8)
        u = _add(u, A12_9, k9)
        u = _add(u, A12_10, k10)
        u = _add(u, A12_11, k11)
        k12 = _rate(u, wz, G, e)
        s = _gain(s, B12, u, e)
        end = _add(end, B12, k12)
        w[i + U_MIN] = min(lowest, w[i + _N] * end[2])
        w[i + _TX], w[i + _TY], w[i + _TZ], w[i + _WX], w[i + _WY] = end
        w[i + _SX], w[i + _SY], w[i + _SZ] = s
