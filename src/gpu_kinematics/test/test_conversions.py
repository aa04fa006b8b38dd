"""Between messages and the library: what is read, what is refused, what is filled."""

import numpy as np
import pytest
from kin_interfaces.msg import DeltaBatch, DeltaGeometry
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from gpu_kinematics import DeltaInput, DeltaLimit, Limits, Status, conversions
from kin_core.errors import StatusCode
from kin_ros.arrays import from_field, to_field


def batch(data, layout=DeltaBatch.SOA, count=2):
    return DeltaBatch(count=count, layout=layout, data=to_field(np.asarray(data, float)))


def test_vectors_in_both_layouts():
    flat = np.arange(6.0)
    soa = conversions.read_batch(batch(flat), 10)
    assert (soa.vectors("data") == flat.reshape(3, 2)).all()
    aos = conversions.read_batch(batch(flat, DeltaBatch.AOS), 10)
    assert (aos.vectors("data") == flat.reshape(2, 3)).all()


@pytest.mark.parametrize(
    ("message", "error", "field"),
    [
        (batch(np.zeros(6), layout=7), DeltaInput, "layout"),
        (batch(np.zeros(6), count=11), DeltaLimit, "max_batch = 10"),
        (batch(np.zeros(5)), DeltaInput, "data"),
        (SolveDelta.Request(count=2, branch=16), DeltaInput, "branch"),
    ],
)
def test_batches_that_are_refused(message, error, field):
    with pytest.raises(error, match=field):
        conversions.read_batch(message, 10).vectors("data")


def test_branch_and_rates():
    request = SolveDelta.Request(count=1, branch=13, rate=to_field(np.ones(3)))
    read = conversions.read_batch(request, 10)
    assert read.elbows == 5 and read.platform == "up"
    rate, rate2 = read.rates()
    assert rate.shape == (3, 1) and rate2 is None


def test_geometry_of_a_message():
    assert conversions.read_geometry(DeltaGeometry(), 3) is None
    one = conversions.read_geometry(DeltaGeometry(radius=[1.0], upper=[4.0], lower=[7.0]), 3)
    assert one.count is None
    theta = [0.0, 2.0, 4.0, 0.1, 2.1, 4.1]
    each = conversions.read_geometry(
        DeltaGeometry(radius=[1.0, 2.0], upper=[4.0], lower=[7.0], theta=theta), 2
    )
    assert each.count == 2 and (each.theta[:, 1] == theta[3:]).all()
    for bad in (
        DeltaGeometry(theta=[1.0] * 3),
        DeltaGeometry(radius=[1.0, 2.0], upper=[4.0], lower=[7.0]),
        DeltaGeometry(radius=[1.0], upper=[4.0], lower=[7.0], theta=[1.0]),
    ):
        with pytest.raises(DeltaInput, match="geometry"):
            conversions.read_geometry(bad, 3)


def test_a_move_takes_the_nodes_limits_where_it_has_none():
    own = {"max_velocity": 1.0, "max_acceleration": 2.0, "max_jerk": 3.0}
    move = conversions.read_move(MakeTrajectory.Request(kind=1, max_jerk=9.0), own)
    assert move.kind == "pick_and_place"
    assert (move.max_velocity, move.max_acceleration, move.max_jerk) == (1.0, 2.0, 9.0)
    with pytest.raises(DeltaInput, match="kind"):
        conversions.read_move(MakeTrajectory.Request(kind=3), own)


def test_joint_limits_of_a_map():
    own = Limits(-1.0, 1.0)
    assert conversions.read_angle_limits(WorkspaceMap.Request(), own) is own
    other = conversions.read_angle_limits(WorkspaceMap.Request(angle_limits=[-0.5, 0.5]), own)
    assert (other.upper == 0.5).all()
    with pytest.raises(DeltaInput, match="angle_limits"):
        conversions.read_angle_limits(WorkspaceMap.Request(angle_limits=[1.0]), own)


@pytest.mark.parametrize(
    ("mask", "code"),
    [
        ([0, 0], StatusCode.SUCCESS),
        ([0, Status.TOO_FAR], StatusCode.SUCCESS),
        ([Status.INVALID, Status.TOO_FAR], StatusCode.UNREACHABLE),
        ([], StatusCode.SUCCESS),
    ],
)
def test_an_answer_fails_if_every_robot_does(mask, code):
    response, masks = SolveDelta.Response(), np.array(mask, np.uint16)
    conversions.fill_solution(response, np.zeros((3, len(mask))), masks, "cpu")
    assert response.status.code == code and response.failed == np.count_nonzero(masks)
    assert bool(response.status.message) == bool(masks.any())


def test_one_robot():
    header = Header(frame_id="other")
    point = conversions.point_message(header, "base", np.array([1.0, 2.0, 3.0]), 0)
    assert point.header.frame_id == "base" and point.point.z == 3.0
    with pytest.raises(DeltaInput, match="position"):
        conversions.point_message(header, "base", np.full(3, np.nan), int(Status.NO_ASSEMBLY))
    command = conversions.joint_command(header, np.array([0.1, 0.2, 0.3]), 0)
    assert list(command.position) == [0.1, 0.2, 0.3] and len(command.name) == 3
    with pytest.raises(DeltaInput, match="target"):
        conversions.joint_command(header, np.full(3, np.nan), int(Status.TOO_FAR))
    with pytest.raises(DeltaInput, match="three joint angles"):
        conversions.read_angles(JointState(position=[1.0]))


def test_batches_come_back_in_their_layout():
    values = np.arange(6.0).reshape(2, 3)
    message = conversions.batch_message(
        Header(), DeltaBatch.ANGLES, values, np.zeros(2, np.uint16), "aos"
    )
    assert message.layout == DeltaBatch.AOS and message.count == 2
    assert (from_field(message.data) == np.arange(6.0)).all()
