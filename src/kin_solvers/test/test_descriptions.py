"""Robot descriptions that come on a topic: bad ones are refused in few words."""

import time

import pytest
from kin_interfaces.srv import SolveAllIK
from rcl_interfaces.msg import Log
from std_msgs.msg import String

from kin_ros.qos import LATCHED
from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def test_bad_descriptions_in_a_row_are_a_line_in_the_log_and_change_nothing(ros):
    ros.add(KinSolversNode)
    logs = ros.listen(Log, "/rosout", 100)
    bad = ros.publisher(String, "/robot_description", LATCHED)

    def refused():
        return [log.msg for log in logs if "robot description refused" in log.msg]

    request = SolveAllIK.Request(arm="puma560", timeout=30.0)
    pose = request.target.pose
    pose.position.x, pose.orientation.w = 0.4, 1.0

    def answered():
        return ros.call(SolveAllIK, "/kin_solvers/solve_all_ik", request, timeout=60.0).status.code

    assert answered() == 0
    begin = time.monotonic()
    for number in range(40):
        bad.publish(String(data=f"<robot name='r{number}'/>"))
        time.sleep(0.05)
    wait_until(refused, 20.0, "a line in the log")
    assert answered() == 0
    # Forty of them: a line for each second that was begun, no more.
    assert 1 <= len(refused()) <= time.monotonic() - begin + 1.0
    assert "has no <link>" in refused()[0]
