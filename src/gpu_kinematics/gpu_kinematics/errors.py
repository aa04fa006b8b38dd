"""Errors of this package, under one root."""

from __future__ import annotations

from kin_core.errors import InvalidInput, KinError, LimitExceeded, StatusCode

__all__ = ["BackendError", "DeltaError", "DeltaInput", "DeltaLimit"]


class DeltaError(KinError):
    """Root of the errors of gpu_kinematics."""


class DeltaInput(DeltaError, InvalidInput):
    """Input that cannot be computed with: the message names the argument."""


class DeltaLimit(DeltaError, LimitExceeded):
    """A batch, grid or trajectory beyond its budget."""


class BackendError(DeltaError):
    """The backend that was asked for cannot be used on this machine."""

    code = StatusCode.INVALID_INPUT
