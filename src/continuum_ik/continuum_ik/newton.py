"""Damped Newton steps at one pose."""

from __future__ import annotations

from numba import njit

from continuum_ik.equations import evaluate, factorise, leg_error, plan_steps, solve_linear
from continuum_ik.path import add, difference, scaled
from continuum_ik.rod import KERNEL, Record

#: Largest polishing step of a point of a path, in the scaled unknowns.
POLISH = 1e-6
#: The same where rounding errors allow no better.
BOTTOM = 1e-3
NEWTON_STEPS, HALVINGS = 8, 3


@njit(**KERNEL)
def correct(w: Record, furthest: float, polish: float) -> bool:
    """Solve for the present pose from the present unknowns by damped Newton steps.

    Args:
        w: The solver; on success the unknowns are a certified point and delta its polishing step.
        furthest: Largest change of the scaled unknowns in all; beyond it the solution found would
            not be the one that was predicted.
        polish: Largest polishing step in the scaled unknowns.
    """
    y, rules = w.rods.y, w.rules[w.fine]
    w.trial = y
    plan_steps(w)
    now = evaluate(w)
    fresh = False
    for _ in range(NEWTON_STEPS):
        if not now < 1e12:
            return False
        if not fresh:
            w.saved = w.residual
            if not factorise(w):
                return False
            w.residual = w.saved
        solve_linear(w)
        if (
            now <= rules.accept
            and leg_error(w) <= rules.leg_tolerance
            and scaled(w, w.delta) <= polish
        ):
            return True
        # Halve the step until the residual falls.
        part = 1.0
        previous = now
        w.saved_step = w.delta
        add(y, -1.0, w.delta)
        plan_steps(w)
        now = evaluate(w)
        for _ in range(HALVINGS):
            if now < previous:
                break
            part *= 0.5
            add(y, part, w.saved_step)
            now = evaluate(w)
        if not now < previous:
            # Back to the point before the step, which may be good enough.
            add(y, part, w.saved_step)
            w.delta = w.saved_step
            if not _good_enough(w, previous):
                return False
            evaluate(w)
            return True
        difference(y, w.trial, w.delta)
        if scaled(w, w.delta) > furthest:
            return False
        # While a step leaves less than a hundredth of the residual, the Jacobian is good enough.
        fresh = now < 1e-4 * previous
    solve_linear(w)
    return _good_enough(w, now)


@njit(**KERNEL)
def _good_enough(w: Record, sum_squares: float) -> bool:
    """Whether a point that rounding errors keep from getting better will do.

    Rods under high tension carry them up by exp(L sqrt(n/EI)), and the residual with them; the
    unknowns are then as sharp as ever, so that a small step will do. Otherwise what was asked for
    must be kept.
    """
    size, asked = scaled(w, w.delta), w.rules[0]
    if size <= POLISH:
        return True
    return sum_squares <= asked.accept and leg_error(w) <= asked.leg_tolerance and size <= BOTTOM
