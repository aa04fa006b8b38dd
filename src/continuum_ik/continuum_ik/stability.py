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

from continuum_ik.equations import (
    choose_steps,
    eliminate,
    fine_differences,
    fine_increment,
    fine_jacobian,
    invert6,
    solve_linear,
    tangents,
    unit,
)
from continuum_ik.layout import PLATFORM, STEPS_MAX
from continuum_ik.path import LEVER, lengths_by_pose, load
from continuum_ik.rod import KERNEL, LANES, LENGTH, MX, MY, NZ, RODS, Array, Record, shoot

#: Places along a rod at which conjugate points are looked for.
PLACES = 32
#: What is known of a point, clearly not, clearly, or close to the border.
UNSTABLE, STABLE, CLOSE_UNSTABLE, CLOSE_STABLE = 0, 1, 2, 3
#: Change of dL/dpose up to which it cannot have become singular, and beyond which the point that it
#: is compared with is renewed.
REGULAR, RENEW = 0.9, 0.2
#: Part of the stiffness at home, in the softest direction, below which the border is close.
CLOSE = 0.01
#: How much of the way to the border may be gone unasked; the least that the stiffness is taken to
#: change with the scaled unknowns; and how far to go where the platform is not stable.
CAUTION, SLOWEST, FAR = 0.4, 1.0, 1.0


@njit(**KERNEL)
def is_stable(state: int) -> bool:
    """Whether a state is one of the stable ones."""
    return state in (STABLE, CLOSE_STABLE)


@njit(**KERNEL)
def _linearise_finely(w: Record) -> bool:
    """Make Jacobian, factors and tangents with fine differences; False at a singular point."""
    steps = min(STEPS_MAX, choose_steps(w, w.rules[w.fine].step_x2) + 8)
    shoot(w.rods, steps)
    fine_jacobian(w, steps)
    if not eliminate(w):
        return False
    tangents(w)
    return True


@njit(**KERNEL)
def linear_model(w: Record, entry: Record, by_pose: Array, by_wrench: Array) -> bool:
    """Linearise the lengths at an entry to high accuracy, (6, 6) each; False if it is singular."""
    load(w, entry)
    if not _linearise_finely(w):
        return False
    lengths_by_pose(w, by_pose)
    for j in range(6):
        w.residual[:] = 0.0
        w.residual[PLATFORM, j] = 1.0
        solve_linear(w)
        for i in range(RODS):
            by_wrench[i, j] = -w.delta[LENGTH, i]
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
def conjugate_points(w: Record, counts: Array) -> None:
    """Count, for each rod, the places where it could buckle between clamped ends.

    A conjugate point is a place s where some change of the forces and moments at the base leaves
    position and direction at s unchanged: the determinant of d(p, t)(s) / d(n, m0) changes its
    sign. Destroys what the rods were shot to.
    """
    a = np.empty((5, 5))
    lengths, t = w.rods.y[LENGTH], w.rods.t
    full = lengths.copy()
    sign = np.zeros(RODS)
    steps = min(STEPS_MAX, choose_steps(w, w.rules[w.fine].step_x2) + 4)
    counts[:] = 0
    for place in range(1, PLACES + 1):
        part = place / PLACES
        for i in range(LANES):
            lengths[i] = full[i] * part
        s = w.L * part
        force, moment = w.EI / (s * s), w.EI / s
        fewer = 1 + int(steps * part)  # steps as long as those of the whole rod
        shoot(w.rods, fewer)
        h = fine_increment(w)
        fine_differences(w, fewer, h * force, h * moment)
        for i in range(RODS):
            # Two directions across the tangent, carried along without a jump.
            tx, ty, tz = t[0, i], t[1, i], t[2, i]
            k = 1.0 / (1.0 + tz) if tz > -0.999 else 1e3
            for j in range(5):
                d = w.differences[j]
                scale = force if j < MX else moment
                for r in range(3):
                    a[r, j] = d[r, i] * scale / s
                ux, uy, uz = d[3, i], d[4, i], d[5, i]
                a[3, j] = ((1.0 - tx * tx * k) * ux - tx * ty * k * uy - tx * uz) * scale
                a[4, j] = (-tx * ty * k * ux + (1.0 - ty * ty * k) * uy - ty * uz) * scale
            now = 1.0 if _determinant5(a) > 0.0 else -1.0
            if sign[i] != 0.0 and now != sign[i]:
                counts[i] += 1
            sign[i] = now
    lengths[:] = full


@njit(**KERNEL)
def _stiffness(w: Record, K: Array) -> bool:
    """Fill K (6, 6) with the scaled stiffness, by the factors and tangents at hand.

    K = -(dL/dwrench)^-1 dL/dpose, symmetric part. By the arrowhead dL/dwrench is -U_L S^-1, where
    U_L are the lengths by the free unknowns and S is the Schur complement; so it needs no inverse.
    """
    L = w.L
    size = 0.0
    for r in range(6):
        for c in range(6):
            total = 0.0
            for i in range(RODS):
                total += w.schur[r, i] / w.U[LENGTH, i] * w.tangent[c, LENGTH, i]
            K[r, c] = total * (L if r < 3 else 1.0) * (L if c < 3 else 1.0) * L / w.EI
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
def _judge_platform(w: Record) -> int:
    """Say what the stiffness tells, rods taken to be sound.

    Sets stable_within, how far the unknowns may go before this has to be asked again, by how fast
    the softest direction grew softer.
    """
    K = np.empty((6, 6))
    w.stable_within = FAR
    if not _stiffness(w, K):
        return CLOSE_UNSTABLE
    now = _softest(K)
    if w.stiffness == 0.0:
        w.stiffness = max(now, 1e-6)  # home
    near = CLOSE * w.stiffness
    before, w.softest = w.softest, now
    moved, w.stable_moved = w.stable_moved, 0.0
    if now > 0.0:
        rate = max(abs(before - now) / max(moved, 1e-3), SLOWEST)
        w.stable_within = max(CAUTION * now / rate, 1e-3)
        return STABLE if now > near else CLOSE_STABLE
    return CLOSE_UNSTABLE if _definite(K, -near) else UNSTABLE


@njit(**KERNEL)
def _buckled(w: Record) -> bool:
    """Whether any rod is; destroys what the rods were shot to."""
    counts = np.zeros(RODS, dtype=np.int64)
    conjugate_points(w, counts)
    return counts.sum() > 0


@njit(**KERNEL)
def _watch_rods(w: Record, moved: float) -> tuple[bool, bool]:
    """Look at each rod's determinant; needs the Jacobian, and the rods shot.

    Lessens stable_within to some of the way to where a rod would buckle at the pace since the last
    look. Sets rod_determinants.

    Args:
        w: The solver.
        moved: How far the unknowns have gone since the last look, scaled; infinite if that is of
            no use.

    Returns:
        Whether all rods seem sound, and whether one may be about to buckle or have done so just
        now.
    """
    a = np.empty((5, 5))
    rods, caution = w.rods, w.caution
    sound, near = True, False
    for i in range(RODS):
        before, w.rod_determinants[i] = w.rod_determinants[i], 0.0
        # The second variation of the energy is at least |dt'|^2 EI - (EI k^2 - n.t) |dt|^2 along
        # the rod, k being the curvature, and dt is zero at both ends. By the energy integral
        # EI k^2 = m0^2/EI + 2 (n.t0 - n.t).
        e, u, y = rods.inv_EI[i], rods.u_min[i], rods.y
        most = e * (y[MX, i] ** 2 + y[MY, i] ** 2) + 2.0 * y[NZ, i] - 3.0 * u
        if most * e * y[LENGTH, i] ** 2 < math.pi**2:
            continue
        for r in range(5):
            for c in range(5):
                a[r, c] = w.jacobian[r, c, i] * (unit(w, c) / (w.L if r < 3 else 1.0))
        now = _determinant5(a)
        w.rod_determinants[i] = now
        sound = sound and now > 0.0
        pace = abs(now - before) / max(moved, 1e-3) if before != 0.0 else 0.0
        near = near or not moved < 1e300 or abs(now) < caution.near * pace
        part = caution.towards if abs(now) < abs(before) else 1.0
        within = max(part * abs(now) / max(pace, 1e-100), 1e-3)
        w.stable_within = min(w.stable_within, within if moved <= caution.local else caution.unseen)
    return sound, near


@njit(**KERNEL)
def _change(w: Record) -> float:
    """Return |P0 dL/dpose - 1|, turns by a lever; infinite if there is no P0.

    The norm is the largest sum of a row. Eigenvalues alone would not do: between two points where
    they are close to 1 the matrix may have been singular twice.
    """
    if w.stable_reference == 0:
        return math.inf
    lever = LEVER * w.L
    worst = 0.0
    for r in range(6):
        row = 0.0
        for c in range(6):
            total = -1.0 if r == c else 0.0
            for i in range(RODS):
                total += w.stable_inverse[r, i] * w.tangent[c, LENGTH, i]
            row += abs(total) * (lever if r >= 3 else 1.0) / (lever if c >= 3 else 1.0)
        worst = max(worst, row)
    return worst


@njit(**KERNEL)
def carry_stability(w: Record, connected: bool, moved: float) -> None:
    """Find out about the present point, by what is known of the last one.

    Factors and tangents must be at hand. Destroys what the rods were shot to.

    Args:
        w: The solver; ``stable`` is the answer.
        connected: Whether the last point lies on the same curve, without a singular J between.
        moved: How far the unknowns have gone since then, scaled.
    """
    moved += w.stable_moved
    w.stable_moved = moved
    change = _change(w) if connected else math.inf
    now = _judge_platform(w)
    sound, near = _watch_rods(w, moved if connected else math.inf)
    # Rods do not buckle before the platform gives way.
    carried = sound and change <= REGULAR and is_stable(w.stable)
    if is_stable(now) and not carried and _buckled(w):
        now = UNSTABLE
    if near and now <= STABLE:
        now += CLOSE_UNSTABLE
    w.stable = now
    if change > RENEW:
        _renew_reference(w)


@njit(**KERNEL)
def begin_stability(w: Record) -> None:
    """Begin at the present point, of which ``stable`` is known; factors and tangents at hand."""
    _judge_platform(w)
    _watch_rods(w, math.inf)
    _renew_reference(w)


@njit(**KERNEL)
def _renew_reference(w: Record) -> None:
    """Take the present dL/dpose as the one that later ones are compared with."""
    lengths_by_pose(w, w.length_by_pose)
    w.stable_reference = 1 if invert6(w.length_by_pose, w.stable_inverse) else 0


@njit(**KERNEL)
def settle_stability(w: Record) -> None:
    """Decide at the present point, if the border is close, with fine differences.

    The factors are then those of this point, if it has any (age says so). Destroys residual and
    what the rods were shot to; keeps delta.
    """
    if w.stable <= STABLE:
        return
    w.saved_step = w.delta
    sound = _linearise_finely(w)
    w.age = 0 if sound else -1
    w.stable = CLOSE_UNSTABLE
    K = np.empty((6, 6))
    if sound and _stiffness(w, K) and _definite(K, 0.0) and not _buckled(w):
        w.stable = CLOSE_STABLE
    w.delta = w.saved_step
