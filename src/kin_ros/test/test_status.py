"""Errors become statuses."""

import pytest
from kin_interfaces.msg import SolveStatus

from kin_core import errors
from kin_core.errors import InvalidInput
from kin_core.texts import LONGEST_SENTENCE
from kin_ros.status import fill_status


def status_of(error):
    status = SolveStatus()
    fill_status(status, error)
    return status


def test_codes_are_those_of_the_interface():
    for code in errors.StatusCode:
        assert getattr(SolveStatus, code.name) == code


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidInput("field", "is wrong"),
        errors.Unreachable("x"),
        errors.NotConverged("x", residual=1.0, iterations=3),
        errors.SolveTimeout("x"),
        errors.Cancelled("x"),
        errors.LimitExceeded("x"),
        ValueError("x"),
    ],
)
def test_each_error_has_a_status(error):
    status = status_of(error)
    assert status.code == getattr(error, "code", errors.StatusCode.INTERNAL_ERROR)
    assert "x" in status.message or status.message == "field: is wrong"


def test_a_status_never_echoes_a_long_text_whole():
    for error in (InvalidInput("name", "x" * 10**6), ValueError("x" * 10**6)):
        assert len(status_of(error).message) <= LONGEST_SENTENCE
