"""Errors: each carries what a person needs to act, and one status code."""

import math

import pytest

from kin_core import errors
from kin_core.errors import InvalidInput, KinError, StatusCode

KINDS = [getattr(errors, name) for name in errors.__all__ if name not in ("KinError", "StatusCode")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_root_and_a_code_of_its_own(kind):
    assert issubclass(kind, KinError)
    assert [other for other in KINDS if other.code == kind.code] == [kind]
    assert kind.code not in (StatusCode.SUCCESS, StatusCode.INTERNAL_ERROR)


def test_what_an_error_carries():
    error = errors.NotConverged("too few steps", residual=0.5, iterations=7)
    assert (str(error), error.residual, error.iterations) == ("too few steps", 0.5, 7)
    assert math.isnan(KinError("x").residual)
    assert KinError("x").code == StatusCode.INTERNAL_ERROR


def test_a_refusal_names_its_field():
    error = InvalidInput("target.x", "must be finite")
    assert str(error) == "target.x: must be finite"
    assert (error.field, error.problem) == ("target.x", "must be finite")
    assert str(InvalidInput("", "must be finite")) == "must be finite"
