"""Errors of this package: one root, each with one status code."""

from __future__ import annotations

from kin_core.errors import InvalidInput, KinError, NotConverged

__all__ = ["ContinuumError", "NoHome", "RobotError"]


class ContinuumError(KinError):
    """Root of this package's errors."""


class RobotError(ContinuumError, InvalidInput):
    """A robot description that cannot be used; names the field and, from a file, the place."""


class NoHome(ContinuumError, NotConverged):
    """No equilibrium was found at the robot's home pose, so there is nothing to start from."""
