"""Damped Newton steps at one pose."""

from __future__ import annotations

from numba import njit

from continuum_ik import layout as m
from continuum_ik.equations import (
    choose_steps,
    evaluate,
    factorise,
    leg_error,
    plan_steps,
    solve_linear,
)
from continuum_ik.path import scaled
from continuum_ik.rod import KERNEL, Array

#: Largest polishing step of a point of a path, in the scaled unknowns.
POLISH = 1e-6
#: The same where rounding errors allow no better.
BOTTOM = 1e-3
NEWTON_STEPS, HALVINGS = 8, 3


@njit(**KERNEL)
def correct(w: Array, furthest: float, polish: float) -> bool:
    """Solve for the present pose from the present unknowns by damped Newton steps.

    Args:
        w: The solver's array; on success Y is a certified point and DELTA its polishing step.
        furthest: Largest change of the scaled unknowns in all; beyond it the solution found would
            not be the one that was predicted.
        polish: Largest polishing step in the scaled unknowns.
    """
    for k in range(m.UNKNOWNS):
        w[m.TRIAL + k] = w[m.Y + k]
    w[m.STEPS] = float(plan_steps(w))
    now = evaluate(w)
    fresh = False
    for _ in range(NEWTON_STEPS):
        if not now < 1e12:
            return False
        if not fresh:
            for k in range(46):
                w[m.SAVED + k] = w[m.RESIDUAL + k]
            if not factorise(w, choose_steps(w, m.COARSE_X2)):
                return False
            for k in range(46):
                w[m.RESIDUAL + k] = w[m.SAVED + k]
        solve_linear(w)
        if (
            now <= w[m.ACCEPT]
            and leg_error(w) <= w[m.LEG_TOLERANCE]
            and scaled(w, m.DELTA) <= polish
        ):
            return True
        # Halve the step until the residual falls.
        part = 1.0
        previous = now
        for k in range(m.UNKNOWNS):
            w[m.SAVED_STEP + k] = w[m.DELTA + k]
            w[m.Y + k] -= w[m.DELTA + k]
        w[m.STEPS] = float(plan_steps(w))
        now = evaluate(w)
        for _ in range(HALVINGS):
            if now < previous:
                break
            part *= 0.5
            for k in range(m.UNKNOWNS):
                w[m.Y + k] += part * w[m.SAVED_STEP + k]
            now = evaluate(w)
        if not now < previous:
            return _at_the_bottom(w, part, previous)
        for k in range(m.UNKNOWNS):
            w[m.DELTA + k] = w[m.Y + k] - w[m.TRIAL + k]
        if scaled(w, m.DELTA) > furthest:
            return False
        # While a step leaves less than a hundredth of the residual, the Jacobian is good enough.
        fresh = now < 1e-4 * previous
    solve_linear(w)
    return _good_enough(w, now)


@njit(**KERNEL)
def _at_the_bottom(w: Array, part: float, previous: float) -> bool:
    """Go back to the point before the last step, and say whether it is good enough."""
    for k in range(m.UNKNOWNS):
        w[m.Y + k] += part * w[m.SAVED_STEP + k]
        w[m.DELTA + k] = w[m.SAVED_STEP + k]
    if not _good_enough(w, previous):
        return False
    evaluate(w)
    return True


@njit(**KERNEL)
def _good_enough(w: Array, sum_squares: float) -> bool:
    """Whether a point that rounding errors keep from getting better will do.

    Rods under high tension carry them up by exp(L sqrt(n/EI)), and the residual with them; the
    unknowns are then as sharp as ever, so that a small step will do. Otherwise the rules that are
    not in force, of which one set is what was asked for, must be kept.
    """
    if scaled(w, m.DELTA) <= POLISH:
        return True
    accept = max(w[m.ACCEPT], w[m.OTHER_RULES + m.ACCEPT - m.RULES])
    legs = max(w[m.LEG_TOLERANCE], w[m.OTHER_RULES + m.LEG_TOLERANCE - m.RULES])
    return sum_squares <= accept and leg_error(w) <= legs and scaled(w, m.DELTA) <= BOTTOM
