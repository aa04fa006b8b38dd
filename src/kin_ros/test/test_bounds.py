"""Bounds on texts of messages, found from the message classes alone."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, Vector3
from kin_interfaces.msg import HierGoal, HierProblem
from kin_interfaces.srv import CheckReady, LoadLinkage, SolveHierIK
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_core.checks import LONGEST_NAME
from kin_core.errors import LimitExceeded
from kin_core.yamls import LIMIT_BYTES
from kin_ros.bounds import check_texts

LONG = "x" * (LONGEST_NAME + 1)


def framed(text):
    message = PoseStamped()
    message.header.frame_id = text
    return message


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (framed, "header.frame_id"),
        (lambda text: JointState(name=["a", text]), "name"),
        (lambda text: CheckReady.Request(nodes=[text]), "nodes"),
        (lambda text: LoadLinkage.Request(preset=text), "preset"),
        (
            lambda text: SolveHierIK.Request(
                problem=HierProblem(goals=[HierGoal(), HierGoal(reference_link=text)])
            ),
            "problem.goals[1].reference_link",
        ),
    ],
)
def test_long_names_are_refused_at_any_depth(make, field):
    check_texts(make("x" * LONGEST_NAME))
    with pytest.raises(LimitExceeded) as refusal:
        check_texts(make(LONG))
    assert str(refusal.value) == (
        f"{field}: a text of {len(LONG)} characters; at most {LONGEST_NAME} are taken"
    )


def test_documents_may_be_long_but_not_endless():
    check_texts(LoadLinkage.Request(yaml=LONG, urdf=LONG, mjcf=LONG, closures=LONG))
    check_texts(String(data=LONG))
    with pytest.raises(LimitExceeded, match="yaml"):
        check_texts(LoadLinkage.Request(yaml="x" * (LIMIT_BYTES + 1)))


def test_what_has_no_text_or_is_only_shown_passes():
    check_texts(Vector3())
    check_texts(DiagnosticArray(status=[DiagnosticStatus(message=LONG)]))
