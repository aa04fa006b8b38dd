"""Errors of the solver, each with the status code of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kin_core.errors import InvalidInput, KinError, LimitExceeded

__all__ = ["CuikError", "MechanismError", "RequestError", "SettingsError", "SizeError"]


class CuikError(KinError):
    """Root of all errors of this package."""


class MechanismError(CuikError, InvalidInput):
    """A mechanism that cannot be understood; ``field`` says where."""


class RequestError(CuikError, InvalidInput):
    """An argument of a question that cannot be understood; ``field`` says which."""


class SettingsError(CuikError, InvalidInput):
    """A setting of the solver out of its range; ``field`` says which."""


class SizeError(CuikError, LimitExceeded):
    """A mechanism larger than the solver takes on."""


@contextmanager
def own_errors(refusal: Callable[[str, str], CuikError]) -> Iterator[None]:
    """Turn the errors of the common checks into those of this package."""
    try:
        yield
    except CuikError:
        raise
    except InvalidInput as error:
        raise refusal(error.field, error.problem) from None
    except LimitExceeded as error:
        raise SizeError(str(error)) from None
