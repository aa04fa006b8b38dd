"""Errors become statuses."""

import pytest
from control_msgs.action import FollowJointTrajectory
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import CheckReady
from moveit_msgs.msg import MoveItErrorCodes
from moveit_msgs.srv import GetPositionIK
from std_srvs.srv import Empty

from kin_core import errors
from kin_core.errors import InvalidInput
from kin_core.texts import LONGEST_SENTENCE
from kin_ros.status import fill_status, outcome_of


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


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (CheckReady.Response(), (True, "SUCCESS", "")),
        (CheckReady.Response(status=SolveStatus(code=2, message="far")),
         (False, "UNREACHABLE", "far")),
        (CheckReady.Response(status=SolveStatus(code=99)), (False, "code 99", "")),
        (GetPositionIK.Response(error_code=MoveItErrorCodes(val=1)), (True, "SUCCESS", "")),
        (GetPositionIK.Response(error_code=MoveItErrorCodes(val=-31, message="none")),
         (False, "NO_IK_SOLUTION", "none")),
        (GetPositionIK.Response(error_code=MoveItErrorCodes(val=-999)), (False, "code -999", "")),
        (FollowJointTrajectory.Result(), (True, "SUCCESSFUL", "")),
        (FollowJointTrajectory.Result(error_code=-2, error_string="knee"),
         (False, "INVALID_JOINTS", "knee")),
        (Empty.Response(), (True, "answered", "")),
    ],
)  # fmt: skip
def test_what_an_answer_says_of_itself(answer, expected):
    assert outcome_of(answer) == expected
