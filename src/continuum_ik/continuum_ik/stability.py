"""Whether an equilibrium is stable: a minimum of energy at fixed lengths, as a real platform needs.

It is, if no rod is buckled between its clamped ends (no conjugate point along it) and the stiffness
K of the platform is positive definite. Along a curve of solutions that changes only where the
lengths by the pose, dL/dpose, become singular: there the platform gives way. So the question is
answered in full once, and then carried along: while P0 dL/dpose stays near the identity, P0 being
the inverse at an earlier point, the answer stays the same. Close to the border it is asked again at
each answer, with fine differences.

A rod that lies in a plane buckles out of it without moving the platform. Then K is zero shortly
before and infinite there, and positive again beyond, and dL/dpose too comes back to where it was.
If two rods do so at once, as mirrored ones do, no determinant of the whole robot changes its sign.
So each rod is watched by itself: the determinant of its tip by its forces and moments, at fixed
length, is positive for a sound rod and changes its sign where the rod buckles. Rods that are bent
and pressed too little to buckle at all are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik import layout as m
from continuum_ik.equations import (
    choose_steps,
    eliminate,
    fine_differences,
    fine_increment,
    fine_jacobian,
    invert6,
    solve_linear,
    tangents,
)
from continuum_ik.path import LEVER, load
from continuum_ik.rod import (
    INV_EI,
    KERNEL,
    LENGTH,
    M_X,
    M_Y,
    N_Z,
    T_X,
    U_MIN,
    Array,
    shoot,
)

#: Places along a rod at which conjugate points are looked for.
PLACES = 32
#: What is known of a point, see layout.STABLE: clearly not, clearly, or close to the border.
UNSTABLE, STABLE, CLOSE_UNSTABLE, CLOSE_STABLE = 0.0, 1.0, 2.0, 3.0
#: Change of dL/dpose up to which it cannot have become singular, and beyond which the point that it
#: is compared with is renewed.
REGULAR, RENEW = 0.9, 0.2
#: Part of the stiffness at home, in the softest direction, below which the border is close.
CLOSE = 0.01
#: How much of the way to the border may be gone unasked; the least that the stiffness is taken to
#: change with the scaled unknowns; and how far to go where the platform is not stable.
CAUTION, SLOWEST, FAR = 0.4, 1.0, 1.0
#: Distance in the scaled unknowns from where a rod buckles within which the border is close; how
#: far two looks at a rod may lie apart to tell that distance, and how far to go if they lie
#: further apart; and how much of that distance may be gone unasked on the way there.
NEAR, LOCAL, UNSEEN, TOWARDS = 0.3, 2.5, 0.1, 0.6


@njit(**KERNEL)
def is_stable(state: float) -> bool:
    """Whether a state is one of the stable ones."""
    return state in (STABLE, CLOSE_STABLE)


@njit(**KERNEL)
def linear_model(w: Array, entry: int, lengths_by_pose: Array, lengths_by_wrench: Array) -> bool:
    """Linearise at an entry to high accuracy; False at a singular point."""
    load(w, entry)
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 8)
    shoot(w, m.Y, steps)
    fine_jacobian(w, steps)
    if not eliminate(w):
        return False
    tangents(w)
    for i in range(m.RODS):
        for j in range(6):
            lengths_by_pose[i, j] = w[m.TANGENT + j * m.COLUMN + 40 + i]
    for j in range(6):
        for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
            w[k] = 0.0
        w[m.PLATFORM_RESIDUAL + j] = 1.0
        solve_linear(w)
        for i in range(m.RODS):
            lengths_by_wrench[i, j] = -w[m.DELTA + 40 + i]
    return True


@njit(**KERNEL)
def _determinant5(a: Array) -> float:
    """Return the determinant of a 5x5 matrix; destroys it."""
    det = 1.0
    for k in range(5):
        p = k
        for r in range(k + 1, 5):
            if abs(a[r, k]) > abs(a[p, k]):
                p = r
        if a[p, k] == 0.0:
            return 0.0
        if p != k:
            det = -det
            for c in range(5):
                a[p, c], a[k, c] = a[k, c], a[p, c]
        det *= a[k, k]
        for r in range(k + 1, 5):
            f = a[r, k] / a[k, k]
            for c in range(k, 5):
                a[r, c] -= f * a[k, c]
    return det


@njit(**KERNEL)
def conjugate_points(w: Array, counts: Array) -> None:
    """Count, for each rod, the places where it could buckle between clamped ends.

    A conjugate point is a place s where some change of the forces and moments at the base leaves
    position and direction at s unchanged: the determinant of d(p, t)(s) / d(n, m0) changes its
    sign. Destroys block 0.
    """
    a = np.empty((5, 5))
    full = w[m.Y + 40 : m.Y + 48].copy()
    sign = np.zeros(m.RODS)
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 4)
    for i in range(m.RODS):
        counts[i] = 0
    EI = w[m.EI_TYPICAL]
    for place in range(1, PLACES + 1):
        part = place / PLACES
        for i in range(m.LANES):
            w[LENGTH + i] = full[i] * part
        s = w[m.LENGTH_TYPICAL] * part
        fewer = 1 + int(steps * part)  # steps as long as those of the whole rod
        shoot(w, m.Y, fewer)
        h = fine_increment(w)
        fine_differences(w, fewer, h * EI / (s * s), h * EI / s)
        for i in range(m.RODS):
            # Two directions across the tangent, carried along without a jump.
            tx, ty, tz = w[T_X + i], w[T_X + 8 + i], w[T_X + 16 + i]
            k = 1.0 / (1.0 + tz) if tz > -0.999 else 1e3
            for j in range(5):
                d = m.DIFFERENCES + 72 * j + i
                scale = EI / (s * s) if j < 3 else EI / s
                for r in range(3):
                    a[r, j] = w[d + 8 * r] * scale / s
                ux, uy, uz = w[d + 24], w[d + 32], w[d + 40]
                a[3, j] = ((1.0 - tx * tx * k) * ux - tx * ty * k * uy - tx * uz) * scale
                a[4, j] = (-tx * ty * k * ux + (1.0 - ty * ty * k) * uy - ty * uz) * scale
            det = _determinant5(a)
            now = 1.0 if det > 0.0 else -1.0
            if sign[i] != 0.0 and now != sign[i]:
                counts[i] += 1
            sign[i] = now
    for i in range(m.LANES):
        w[LENGTH + i] = full[i]


@njit(**KERNEL)
def _stiffness(w: Array, K: Array) -> bool:
    """Fill K (6, 6) with the scaled stiffness, by the factors and tangents at hand.

    K = -(dL/dwrench)^-1 dL/dpose, symmetric part. By the arrowhead dL/dwrench is -U_L S^-1, where
    U_L are the lengths by the free unknowns and S is the Schur complement; so it needs no inverse.
    """
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    size = 0.0
    for r in range(6):
        for c in range(6):
            total = 0.0
            for i in range(m.RODS):
                by_pose = w[m.TANGENT + c * m.COLUMN + 40 + i]
                total += w[m.SCHUR + 6 * r + i] / w[m.U + 40 + i] * by_pose
            K[r, c] = total * (L if r < 3 else 1.0) * (L if c < 3 else 1.0) * L / EI
            size += abs(K[r, c])
    for r in range(6):
        for c in range(r):
            mean = 0.5 * (K[r, c] + K[c, r])
            K[r, c], K[c, r] = mean, mean
    return size < 1e300


@njit(**KERNEL)
def _definite(K: Array, less: float) -> bool:
    """Whether K - less I is positive definite, by Cholesky's method."""
    C = np.empty((6, 6))
    for i in range(6):
        for j in range(i + 1):
            s = K[i, j] - (less if i == j else 0.0)
            for k in range(j):
                s -= C[i, k] * C[j, k]
            if i == j:
                if not s > 0.0:
                    return False
                C[i, i] = math.sqrt(s)
            else:
                C[i, j] = s / C[j, j]
    return True


@njit(**KERNEL)
def _softest(K: Array) -> float:
    """Return the smallest eigenvalue of K by bisection, to a twentieth; negative if it is."""
    high = math.inf
    for k in range(6):
        high = min(high, K[k, k])
    if not high > 0.0 or not _definite(K, 0.0):
        return -1.0
    low = high
    for _ in range(40):
        low *= 0.5
        if _definite(K, low):
            break
        high = low
    for _ in range(4):
        middle = 0.5 * (low + high)
        if _definite(K, middle):
            low = middle
        else:
            high = middle
    return low


@njit(**KERNEL)
def _judge_platform(w: Array) -> float:
    """Say what the stiffness tells, rods taken to be sound.

    Sets STABLE_WITHIN, how far the unknowns may go before this has to be asked again, by how fast
    the softest direction grew softer.
    """
    K = np.empty((6, 6))
    w[m.STABLE_WITHIN] = FAR
    if not _stiffness(w, K):
        return CLOSE_UNSTABLE
    now = _softest(K)
    if w[m.STIFFNESS] == 0.0:
        w[m.STIFFNESS] = max(now, 1e-6)  # home
    near = CLOSE * w[m.STIFFNESS]
    before, w[m.SOFTEST] = w[m.SOFTEST], now
    moved, w[m.STABLE_MOVED] = w[m.STABLE_MOVED], 0.0
    if now > 0.0:
        rate = max(abs(before - now) / max(moved, 1e-3), SLOWEST)
        w[m.STABLE_WITHIN] = max(CAUTION * now / rate, 1e-3)
        return STABLE if now > near else CLOSE_STABLE
    return CLOSE_UNSTABLE if _definite(K, -near) else UNSTABLE


@njit(**KERNEL)
def _buckled(w: Array) -> bool:
    """Whether any rod is; destroys what block 0 was shot to."""
    counts = np.zeros(m.RODS, dtype=np.int64)
    conjugate_points(w, counts)
    total = 0
    for i in range(m.RODS):
        total += counts[i]
    return total > 0


@njit(**KERNEL)
def _watch_rods(w: Array, moved: float) -> tuple[bool, bool]:
    """Look at each rod's determinant; needs the Jacobian, and block 0 shot.

    Lessens STABLE_WITHIN to some of the way to where a rod would buckle at the pace since the last
    look. Sets ROD_DETERMINANTS.

    Args:
        w: The solver's array.
        moved: How far the unknowns have gone since the last look, scaled; infinite if that is of
            no use.

    Returns:
        Whether all rods seem sound, and whether one may be about to buckle or have done so just
        now.
    """
    a = np.empty((5, 5))
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    sound, near = True, False
    for i in range(m.RODS):
        before, w[m.ROD_DETERMINANTS + i] = w[m.ROD_DETERMINANTS + i], 0.0
        # The second variation of the energy is at least |dt'|^2 EI - (EI k^2 - n.t) |dt|^2 along
        # the rod, k being the curvature, and dt is zero at both ends. By the energy integral
        # EI k^2 = m0^2/EI + 2 (n.t0 - n.t).
        e, u = w[INV_EI + i], w[U_MIN + i]
        most = e * (w[M_X + i] ** 2 + w[M_Y + i] ** 2) + 2.0 * w[N_Z + i] - 3.0 * u
        if most * e * w[LENGTH + i] ** 2 < math.pi**2:
            continue
        for r in range(5):
            for c in range(5):
                scale = (EI / (L * L) if c < 3 else EI / L) / (L if r < 3 else 1.0)
                a[r, c] = w[m.JACOBIAN + 48 * r + 8 * c + i] * scale
        now = _determinant5(a)
        w[m.ROD_DETERMINANTS + i] = now
        sound = sound and now > 0.0
        pace = abs(now - before) / max(moved, 1e-3) if before != 0.0 else 0.0
        near = near or not moved < 1e300 or abs(now) < NEAR * pace
        caution = TOWARDS if abs(now) < abs(before) else 1.0
        within = max(caution * abs(now) / max(pace, 1e-100), 1e-3)
        w[m.STABLE_WITHIN] = min(w[m.STABLE_WITHIN], within if moved <= LOCAL else UNSEEN)
    return sound, near


@njit(**KERNEL)
def _change(w: Array) -> float:
    """Return |P0 dL/dpose - 1|, turns by a lever; infinite if there is no P0.

    The norm is the largest sum of a row. Eigenvalues alone would not do: between two points where
    they are close to 1 the matrix may have been singular twice.
    """
    if w[m.STABLE_REFERENCE] == 0.0:
        return math.inf
    lever = LEVER * w[m.LENGTH_TYPICAL]
    worst = 0.0
    for r in range(6):
        row = 0.0
        for c in range(6):
            total = -1.0 if r == c else 0.0
            for i in range(m.RODS):
                by_pose = w[m.TANGENT + c * m.COLUMN + 40 + i]
                total += w[m.STABLE_INVERSE + 6 * r + i] * by_pose
            row += abs(total) * (lever if r >= 3 else 1.0) / (lever if c >= 3 else 1.0)
        worst = max(worst, row)
    return worst


@njit(**KERNEL)
def carry_stability(w: Array, connected: bool, moved: float) -> None:
    """Find out about the present point, by what is known of the last one.

    Factors and tangents must be at hand. Destroys what block 0 was shot to.

    Args:
        w: The solver's array; STABLE is the answer.
        connected: Whether the last point lies on the same curve, without a singular J between.
        moved: How far the unknowns have gone since then, scaled.
    """
    moved += w[m.STABLE_MOVED]
    w[m.STABLE_MOVED] = moved
    change = _change(w) if connected else math.inf
    now = _judge_platform(w)
    sound, near = _watch_rods(w, moved if connected else math.inf)
    # Rods do not buckle before the platform gives way.
    carried = sound and change <= REGULAR and is_stable(w[m.STABLE])
    if is_stable(now) and not carried and _buckled(w):
        now = UNSTABLE
    if near and now <= STABLE:
        now += CLOSE_UNSTABLE
    w[m.STABLE] = now
    if change > RENEW:
        _renew_reference(w)


@njit(**KERNEL)
def begin_stability(w: Array) -> None:
    """Begin at the present point, of which STABLE is known; factors and tangents at hand."""
    _judge_platform(w)
    _watch_rods(w, math.inf)
    _renew_reference(w)


@njit(**KERNEL)
def _renew_reference(w: Array) -> None:
    """Take the present dL/dpose as the one that later ones are compared with."""
    for i in range(m.RODS):
        for j in range(6):
            w[m.LENGTH_BY_POSE + 6 * i + j] = w[m.TANGENT + j * m.COLUMN + 40 + i]
    sound = invert6(w, m.LENGTH_BY_POSE, m.STABLE_INVERSE)
    w[m.STABLE_REFERENCE] = 1.0 if sound else 0.0


@njit(**KERNEL)
def settle_stability(w: Array) -> None:
    """Decide at the present point, if the border is close, with fine differences.

    The factors are then those of this point, if it has any (AGE says so). Destroys RESIDUAL and
    what block 0 was shot to; keeps DELTA.
    """
    if w[m.STABLE] <= STABLE:
        return
    for k in range(m.UNKNOWNS):
        w[m.SAVED_STEP + k] = w[m.DELTA + k]
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 8)
    shoot(w, m.Y, steps)
    fine_jacobian(w, steps)
    sound = eliminate(w)
    w[m.AGE] = 0.0 if sound else -1.0
    state = CLOSE_UNSTABLE
    if sound:
        tangents(w)
        K = np.empty((6, 6))
        if _stiffness(w, K) and _definite(K, 0.0) and not _buckled(w):
            state = CLOSE_STABLE
    w[m.STABLE] = state
    for k in range(m.UNKNOWNS):
        w[m.DELTA + k] = w[m.SAVED_STEP + k]
