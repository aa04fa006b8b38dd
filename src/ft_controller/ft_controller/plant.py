"""The simulated arm: it moves by its own parameters, not by those the controller believes in.

Equation (3), corrected: qddot = M^-1 (tau - N), integrated with the classical Runge-Kutta rule.
Joint limits are inelastic stops. A joint that locks takes the momentum that its bearing must take,
no more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ft_controller import dynamics
from ft_controller.errors import ArmError
from ft_controller.records import Array, Flags, Records
from ft_controller.serial_arm import SerialArm
from kin_core import checks

__all__ = ["Plant"]


_GRIP = 2.0  # brakes hold joints that are slower than this [rad/s or m/s]


class _Joints(NamedTuple):
    """The state that the integration changes and the limits it keeps, each of shape (n,)."""

    q: Array
    qdot: Array
    locked: Flags
    lower: Array
    upper: Array
    stopped: Flags


class Plant:
    """An arm that can be pushed, measured, limited and jammed.

    Attributes:
        q: True positions, shape (n,) [rad].
        qdot: True velocities, shape (n,) [rad/s].
        locked: Joints that are jammed, shape (n,).
        stopped: Joints that rest against a limit since the last step, shape (n,).
    """

    def __init__(
        self,
        arm: SerialArm,
        q: ArrayLike | None = None,
        qdot: ArrayLike | None = None,
        lower: ArrayLike = -math.pi,
        upper: ArrayLike = math.pi,
        position_noise: float = 0.0,
        velocity_noise: float = 0.0,
        seed: int = 0,
        substep: float = 2.5e-4,
    ) -> None:
        """Put the arm somewhere.

        Args:
            arm: The true parameters.
            q: Positions; default: zero [rad].
            qdot: Velocities; default: zero [rad/s].
            lower: Position limits, one or n [rad].
            upper: Position limits, one or n [rad].
            position_noise: Standard deviation of a measured position [rad].
            velocity_noise: Standard deviation of a measured velocity [rad/s].
            seed: Of the noise.
            substep: Longest step of the integration [s].
        """
        n = arm.n
        self.arm = arm
        self.q = np.zeros(n) if q is None else np.array(arm.vector("q", q))
        self.qdot = np.zeros(n) if qdot is None else np.array(arm.vector("qdot", qdot))
        self.locked: Flags = np.zeros(n, np.bool_)
        self.stopped: Flags = np.zeros(n, np.bool_)
        self.set_limits(lower, upper)
        self._noise = (
            checks.within("position_noise", position_noise, 0.0, 1.0),
            checks.within("velocity_noise", velocity_noise, 0.0, 100.0),
        )
        self._random = np.random.default_rng(seed)
        self._substep = checks.within("substep", substep, 1e-6, 0.1)

    def set_arm(self, arm: SerialArm) -> None:
        """Go on with other parameters, as those of an arm with a payload."""
        self.arm = arm

    def set_limits(self, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the joint limits; a joint that is outside is stopped, and may only come back."""
        n = self.arm.n
        low = np.broadcast_to(np.asarray(lower, np.float64), (n,)).copy()
        high = np.broadcast_to(np.asarray(upper, np.float64), (n,)).copy()
        if not (low <= high).all():
            i = int(np.argmin(low <= high))
            raise ArmError("lower", f"joint {i}: {low[i]:g} is not below upper {high[i]:g}")
        self.lower, self.upper = low, high

    def lock(self, joint: int, locked: bool = True) -> None:
        """Jam a joint where it is, or free it."""
        if not 0 <= joint < self.arm.n:
            raise ArmError("joint", f"there are {self.arm.n} joints, got {joint}")
        self.locked[joint] = locked
        if locked:
            _arrest(self.arm.links, self.q, self.qdot, self.locked)

    def step(self, tau: ArrayLike, dt: float, braking: ArrayLike | None = None) -> None:
        """Push with a torque for a time; the torque of a locked joint does nothing.

        Args:
            tau: Torques, shape (n,) [N m].
            dt: How long [s].
            braking: Damping of brakes that are on, shape (n,) [N m s/rad]; they work between the
                steps of any controller, so that a long step does not make them push. Slow joints
                of an arm that falls are gripped: damping alone would let it sink.
        """
        tau = self.arm.vector("tau", tau)
        if braking is not None and self.arm.falls and np.abs(self.qdot).max() < _GRIP:
            self.qdot[:] = 0.0
            return
        brakes = np.zeros(self.arm.n) if braking is None else self.arm.vector("braking", braking)
        self._move(tau, dt, brakes)

    def _move(self, tau: Array, dt: float, braking: Array) -> None:
        links = self.arm.links
        if braking.any():
            links = links.copy()
            links["friction"] += braking
            links.flags.writeable = False  # as those of arms are: one kernel for both
        steps = max(1, math.ceil(checks.within("dt", dt, 0.0, 10.0) / self._substep - 1e-9))
        joints = _Joints(self.q, self.qdot, self.locked, self.lower, self.upper, self.stopped)
        _integrate(links, joints, tau, dt / steps, steps)

    def measure(self) -> tuple[Array, Array]:
        """Positions and velocities as the sensors give them, each of shape (n,)."""
        if self._noise == (0.0, 0.0):
            return self.q.copy(), self.qdot.copy()
        return (
            self.q + self._noise[0] * self._random.standard_normal(self.arm.n),
            self.qdot + self._noise[1] * self._random.standard_normal(self.arm.n),
        )


@njit(cache=True, nogil=True)
def _arrest(links: Records, q: Array, qdot: Array, held: Flags) -> None:
    """Bring the held joints to rest by an impulse in their own bearings.

    Of all motions with the held joints at rest, the one nearest in kinetic energy: with M from the
    held and the free joints, M_ff v_f' = M_ff v_f + M_fh v_h.
    """
    n = q.size
    inertia, _ = dynamics.inertia_and_bias(links, q, np.zeros(n))
    momentum = inertia @ qdot
    bias = dynamics.inertia_and_bias(links, q, np.zeros(n))[1]
    # acceleration() solves M_ff x_f = (tau - bias)_f with x_h = 0: here for velocities.
    qdot[:] = dynamics.acceleration(links, q, np.zeros(n), momentum + bias, held)


@njit(cache=True, nogil=True)
def _integrate(links: Records, joints: _Joints, tau: Array, h: float, steps: int) -> None:
    """Steps of the classical Runge-Kutta rule for q'' = M^-1 (tau - N), with stops."""
    q, qdot, locked = joints.q, joints.qdot, joints.locked
    lower, upper, stopped = joints.lower, joints.upper, joints.stopped
    n = q.size
    held = np.empty(n, np.bool_)
    for _ in range(steps):
        # A joint at its stop that is pushed outwards stays there; the others share the load.
        held[:] = locked
        while True:
            a1 = dynamics.acceleration(links, q, qdot, tau, held)
            more = False
            for i in range(n):
                at_low = q[i] <= lower[i] and qdot[i] <= 0.0 and a1[i] < 0.0
                at_high = q[i] >= upper[i] and qdot[i] >= 0.0 and a1[i] > 0.0
                if (at_low or at_high) and not held[i]:
                    held[i] = True
                    more = True
            if not more:
                break
        v1 = qdot
        v2 = qdot + 0.5 * h * a1
        a2 = dynamics.acceleration(links, q + 0.5 * h * v1, v2, tau, held)
        v3 = qdot + 0.5 * h * a2
        a3 = dynamics.acceleration(links, q + 0.5 * h * v2, v3, tau, held)
        v4 = qdot + h * a3
        a4 = dynamics.acceleration(links, q + h * v3, v4, tau, held)
        q += h / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
        qdot += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        hit = False
        for i in range(n):
            stopped[i] = held[i] and not locked[i]
            if (q[i] < lower[i] and qdot[i] < 0.0) or (q[i] > upper[i] and qdot[i] > 0.0):
                held[i] = True
                stopped[i] = True
                hit = True
                # Back onto the stop, unless the limit itself was moved past the joint.
                low, high = lower[i], upper[i]
                if math.fabs(qdot[i]) * h * 2.0 >= max(low - q[i], q[i] - high):
                    q[i] = min(max(q[i], low), high)
        if hit:
            for i in range(n):
                held[i] = locked[i] or (stopped[i] and held[i])
            _arrest(links, q, qdot, held)
