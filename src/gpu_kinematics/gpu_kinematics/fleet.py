"""A fleet of delta robots on pick-and-place cycles, to look at and to load the stack with."""

from __future__ import annotations

import math

import numpy as np

from gpu_kinematics.call import HostArray
from gpu_kinematics.delta import Delta
from gpu_kinematics.errors import DeltaInput
from gpu_kinematics.trajectory import Fleet, Move, Trajectory

__all__ = ["DemoFleet"]


class DemoFleet:
    """Robots on a square grid, each on its own Adept cycle with its own phase.

    Attributes:
        count: Number of robots.
        origin: Bases of the robots [m], shape (3, N).
        joint_names: Names of all joints, robot after robot.
    """

    def __init__(self, delta: Delta, count: int, spacing: float, move: Move, seed: int = 1) -> None:
        """Plan cycles between random reachable points.

        Args:
            delta: One robot's kinematics; all robots are alike.
            count: Number of robots.
            spacing: Distance between bases [m].
            move: How to move.
            seed: Choice of the points.
        """
        if delta.geometry.count is not None:
            raise DeltaInput("geometry", "the demo needs one geometry for all")
        self.count, self.delta = count, delta
        rng = np.random.default_rng(seed)
        side = math.ceil(math.sqrt(count))
        self.origin = np.zeros((3, count))
        grid = np.arange(count)
        self.origin[0] = (grid % side - 0.5 * (side - 1)) * spacing
        self.origin[1] = (grid // side - 0.5 * (side - 1)) * spacing
        self.joint_names = [f"delta_{i}_joint_{j + 1}" for i in range(count) for j in range(3)]
        # Half of the reach sideways, at the height of level arms turned down by 0.5 rad.
        level = delta.fk(np.full(3, 0.5)).position[2]
        reach = 0.5 * float(delta.geometry.upper)
        ends = []
        for _ in range(2):
            turn = rng.uniform(0.0, 2.0 * np.pi, count)
            out = reach * np.sqrt(rng.uniform(0.1, 1.0, count))
            ends.append(np.stack([out * np.cos(turn), out * np.sin(turn), np.full(count, level)]))
        self.fleet = Fleet(delta, ends[0], ends[1], move, layout="soa")
        self.phase: HostArray = rng.uniform(0.0, 1.0, count) * self.fleet.duration

    def at(self, now: float) -> Trajectory:
        """The motion of all robots at a time [s]; arrays have the shape (3, 1, N)."""
        period = np.maximum(self.fleet.duration, 1e-9)
        clock = np.fmod(now, period) + self.phase
        return self.fleet.sample(clock[None, :])

    def skeleton(
        self, angle: HostArray, position: HostArray
    ) -> tuple[HostArray, HostArray, HostArray]:
        """Line ends of arms and rods, and platform points [m], each of shape (points, 3)."""
        geometry = self.delta.geometry
        R, La = float(geometry.radius), float(geometry.upper)
        arms, rods = [], []
        platform = self.origin + position
        for i in range(3):
            c, s = math.cos(geometry.theta[i]), math.sin(geometry.theta[i])
            r = R + La * np.cos(angle[i])
            elbow = self.origin + np.stack([r * c, r * s, -La * np.sin(angle[i])])
            base = self.origin + np.array([[R * c], [R * s], [0.0]])
            arms.append(np.stack([base.T, elbow.T], axis=1).reshape(-1, 3))
            rods.append(np.stack([elbow.T, platform.T], axis=1).reshape(-1, 3))
        return np.concatenate(arms), np.concatenate(rods), platform.T
