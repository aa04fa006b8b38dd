"""MoveIt's services: requests become numbers, answers carry its codes, over real DDS too."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Pose, PoseStamped
from hypothesis import given
from hypothesis import strategies as st
from moveit_msgs.msg import (
    JointConstraint,
    MoveItErrorCodes,
    OrientationConstraint,
    PositionIKRequest,
)
from moveit_msgs.srv import GetCartesianPath, GetPositionFK, GetPositionIK

from kin_core.errors import Cancelled, KinError, LimitExceeded, NotConverged, Unreachable
from kin_core.rotations import exp_so3, transform
from kin_ros.frames import Broadcaster, FrameError, Frames
from kin_ros.moveit import (
    CartesianPath,
    Code,
    Refused,
    Robot,
    code_of,
    read_cartesian_request,
    read_fk_request,
    read_ik_request,
    serve_kinematics,
)
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_ros.poses import to_pose
from kin_ros.robot_state import make_transform

ROBOT = Robot(
    base="robot1/base",
    joints=("q1", "q2"),
    links=("upper", "fore", "tool"),
    tip="tool",
    groups={"arm": "tool"},
    prefix="robot1/",
)


def known_frame(frame, stamp):
    """A tf with one other frame, one metre above the base."""
    if frame in ("", "robot1/base"):
        return np.eye(4)
    if frame == "table":
        return transform(np.eye(3), np.array([0.0, 0.0, 1.0]))
    raise FrameError("frame_id", f"the frame {frame!r} is not known to tf")


def pose(x=0.0, y=0.0, yaw=0.0):
    return to_pose(np.array([x, y, 0.0]), exp_so3(np.array([0.0, 0.0, yaw])))


def pose_stamped(frame="", **place):
    message = PoseStamped(pose=pose(**place))
    message.header.frame_id = frame
    return message


def request(link="tool", group="", frame="", seed=(0.1, 0.2), **place):
    asked = PositionIKRequest(ik_link_name=link, group_name=group)
    asked.pose_stamped = pose_stamped(frame, **place)
    asked.robot_state.joint_state.name = ["q1", "q2"]
    asked.robot_state.joint_state.position = list(seed)
    return asked


def test_the_codes_are_moveits():
    for code in Code:
        assert getattr(MoveItErrorCodes, code.name) == code.value


def test_a_request_becomes_numbers():
    asked = request(frame="table", x=1.0, yaw=0.3, seed=(0.5, -0.7))
    asked.constraints.joint_constraints = [
        JointConstraint(joint_name="q2", position=-0.5, tolerance_above=0.1, tolerance_below=0.4),
        JointConstraint(joint_name="q2", position=-0.6, tolerance_above=0.5, tolerance_below=0.1),
    ]
    read = read_ik_request(asked, ROBOT, known_frame)
    assert read.links == ("tool",)
    expected = transform(exp_so3(np.array([0.0, 0.0, 0.3])), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(read.targets, [expected], atol=1e-15)
    assert read.seed == {"q1": 0.5, "q2": -0.7}
    assert read.limits["q2"] == pytest.approx((-0.7, -0.4))
    np.testing.assert_array_equal(read.seed_for(("q2", "q3", "q1"), 9.0), [-0.7, 9.0, 0.5])
    low, high = read.narrowed(("q1", "q2"), np.array([-1.0, -0.6]), np.array([1.0, 2.0]))
    assert (low, high) == (pytest.approx([-1.0, -0.6]), pytest.approx([1.0, -0.4]))
    with pytest.raises(Unreachable, match="q2"):
        read.narrowed(("q1", "q2"), np.array([-1.0, 0.0]), np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("link", "group", "expected"),
    [
        ("fore", "", "fore"),
        ("robot1/fore", "", "fore"),
        ("", "arm", "tool"),
        ("", "upper", "upper"),
        ("", "", "tool"),
        ("upper", "any name of an SRDF", "upper"),
    ],
)
def test_the_link_that_is_meant(link, group, expected):
    assert read_ik_request(request(link, group), ROBOT, known_frame).links == (expected,)


def test_several_links_at_once():
    asked = PositionIKRequest(ik_link_names=["tool", "upper"])
    asked.pose_stamped_vector = [pose_stamped(x=1.0), pose_stamped("table", x=2.0)]
    read = read_ik_request(asked, ROBOT, known_frame)
    assert read.links == ("tool", "upper")
    np.testing.assert_allclose(read.targets[:, :3, 3], [[1, 0, 0], [2, 0, 1]])


def changed(change):
    asked = request()
    change(asked)
    return asked


def set_seed(names, positions):
    def change(asked):
        asked.robot_state.joint_state.name = names
        asked.robot_state.joint_state.position = positions

    return change


def constrain(**fields):
    def change(asked):
        asked.constraints.joint_constraints = [JointConstraint(**fields)]

    return change


def put(name, value):
    return lambda asked: setattr(asked, name, value)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (put("avoid_collisions", True), "COLLISION_CHECKING_UNAVAILABLE", "not checked"),
        (put("ik_link_name", "gripper"), "INVALID_LINK_NAME", "there are upper, fore, tool"),
        (lambda a: (put("ik_link_name", "")(a), put("group_name", "legs")(a)),
         "INVALID_GROUP_NAME", "'legs' is neither"),
        (put("pose_stamped_vector", [PoseStamped()] * 3), "INVALID_LINK_NAME", "each of the 3"),
        (lambda a: (put("pose_stamped_vector", [pose_stamped()] * 2)(a),
                    put("ik_link_names", ["tool", "tool"])(a)), "INVALID_LINK_NAME", "twice"),
        (set_seed(["q1"], [0.0, 1.0]), "INVALID_ROBOT_STATE", "one for each of the 1"),
        (set_seed(["q1"], [math.nan]), "INVALID_ROBOT_STATE", "finite"),
        (set_seed(["q1", "q1"], [0.0, 1.0]), "INVALID_ROBOT_STATE", "twice"),
        (constrain(joint_name="q7"), "INVALID_GOAL_CONSTRAINTS", "'q7' is no joint"),
        (constrain(joint_name="q1", tolerance_above=-1.0), "INVALID_GOAL_CONSTRAINTS", ">= 0"),
        (constrain(joint_name="q1", position=math.inf), "INVALID_GOAL_CONSTRAINTS", "finite"),
        (lambda a: setattr(a.constraints, "orientation_constraints", [OrientationConstraint()]),
         "INVALID_GOAL_CONSTRAINTS", "only joint constraints"),
        (put("pose_stamped", PoseStamped(pose=Pose())), "SUCCESS", ""),
        (lambda a: setattr(a.pose_stamped.pose.orientation, "w", 2.0),
         "INVALID_GOAL_CONSTRAINTS", "norm 1"),
        (lambda a: setattr(a.pose_stamped.pose.position, "x", math.nan),
         "INVALID_GOAL_CONSTRAINTS", "finite"),
        (lambda a: setattr(a.pose_stamped.header, "frame_id", "moon"),
         "FRAME_TRANSFORM_FAILURE", "'moon' is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_code_and_a_sentence(change, code, words):
    asked = changed(change)
    if code == "SUCCESS":
        read_ik_request(asked, ROBOT, known_frame)
        return
    with pytest.raises(KinError, match=words) as caught:
        read_ik_request(asked, ROBOT, known_frame)
    assert code_of(caught.value) is Code[code]


def test_the_plugin_checks_collisions_itself():
    asked = changed(put("avoid_collisions", True))
    read_ik_request(asked, ROBOT, known_frame, collisions_by_caller=True)


@given(st.binary(max_size=4), st.floats(), st.floats(), st.floats())
def test_a_joint_constraint_is_an_interval_or_refused(name, position, above, below):
    asked = request()
    title = name.decode("latin1") or "q1"
    constrain(
        joint_name=title, position=position, tolerance_above=above, tolerance_below=below
    )(asked)  # fmt: skip
    try:
        low, high = read_ik_request(asked, ROBOT, known_frame).limits["q1"]
    except Refused as error:
        assert error.moveit is Code.INVALID_GOAL_CONSTRAINTS
        good = title == "q1" and np.isfinite([position, above, below]).all()
        assert not good or min(above, below) < 0
    else:
        assert low <= position <= high


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotConverged("no"), Code.NO_IK_SOLUTION),
        (Unreachable("no"), Code.NO_IK_SOLUTION),
        (Cancelled("no"), Code.PREEMPTED),
        (LimitExceeded("no"), Code.FAILURE),
        (ZeroDivisionError(), Code.CRASH),
    ],
)
def test_what_a_library_raises_has_a_code(error, code):
    assert code_of(error) is code


def path_request(**fields):
    asked = GetCartesianPath.Request(
        link_name="tool", max_step=0.1, waypoints=[pose(x=1.0), pose(x=2.0)]
    )
    for name, value in fields.items():
        setattr(asked, name, value)
    return asked


def test_a_path_becomes_numbers():
    asked = path_request(jump_threshold=2.0, max_velocity_scaling_factor=0.5)
    asked.header.frame_id = "table"
    read = read_cartesian_request(asked, ROBOT, known_frame)
    np.testing.assert_allclose(read.waypoints[:, :3, 3], [[1, 0, 1], [2, 0, 1]])
    assert (read.relative, read.max_step, read.jump_threshold) == (False, 0.1, 2.0)
    asked.header.frame_id = "robot1/tool"
    read = read_cartesian_request(asked, ROBOT, known_frame)
    np.testing.assert_allclose(read.waypoints[:, :3, 3], [[1, 0, 0], [2, 0, 0]])
    assert read.relative
    assert (
        len(read_cartesian_request(path_request(waypoints=[]), ROBOT, known_frame).waypoints) == 0
    )
    for name, value in (("max_step", 0.0), ("max_step", math.nan), ("jump_threshold", -1.0)):
        with pytest.raises(Refused, match=name):
            read_cartesian_request(path_request(**{name: value}), ROBOT, known_frame)
    with pytest.raises(Refused) as caught:
        read_cartesian_request(path_request(avoid_collisions=True), ROBOT, known_frame)
    assert caught.value.moveit is Code.COLLISION_CHECKING_UNAVAILABLE


def test_forward_kinematics_without_links():
    with pytest.raises(Refused) as caught:
        read_fk_request(GetPositionFK.Request(), ROBOT)
    assert caught.value.moveit is Code.INVALID_LINK_NAME


# Over DDS: an arm of two unit links in a plane ---------------------------------------------------


def forward(q):
    """Upper link, fore link and tool of the arm."""
    first = transform(exp_so3(np.array([0.0, 0.0, q[0]])), np.zeros(3))
    elbow = transform(exp_so3(np.array([0.0, 0.0, q[1]])), np.array([1.0, 0.0, 0.0]))
    tool = transform(np.eye(3), np.array([1.0, 0.0, 0.0]))
    return {"upper": first, "fore": first @ elbow, "tool": first @ elbow @ tool}


class Planar(KinNode[ParameterSet]):
    def __init__(self, **arguments):
        super().__init__("planar", ParameterSet, **arguments)
        self.forever = False

    def configure(self):
        frames = Frames(self)
        self.broadcaster = Broadcaster(self)
        serve_kinematics(self, lambda: ROBOT, frames, ik=self._ik, fk=self._fk, path=self._path)

    def _ik(self, asked, task):
        while self.forever:
            task.check()
        x, y = asked.targets[0][:2, 3]
        c = (x * x + y * y) / 2.0 - 1.0
        if abs(c) > 1.0:
            raise Unreachable("too far")
        seed = asked.seed_for(("q1", "q2"))
        low, high = asked.narrowed(("q1", "q2"), np.full(2, -4.0), np.full(2, 4.0))
        found = []
        for q2 in (math.acos(c), -math.acos(c)):
            q = np.array([math.atan2(y, x) - math.atan2(math.sin(q2), 1 + math.cos(q2)), q2])
            if (low <= q).all() and (q <= high).all():
                found.append(q)
        if not found:
            raise Unreachable("not within limits")
        best = min(found, key=lambda q: np.abs(q - seed).max())
        return dict(zip(("q1", "q2"), best.tolist(), strict=True))

    def _fk(self, asked, task):
        q = [asked.positions.get("q1", 0.0), asked.positions.get("q2", 0.0)]
        return {link: T for link, T in forward(q).items() if link in asked.links}

    def _path(self, asked, task):
        q = asked.start_for(("q1", "q2"))
        return CartesianPath(("q1", "q2"), np.array([q, q]), np.array([0.0, 1.5]), 0.5, "a wall")


@pytest.fixture
def planar(ros):
    return ros.add(Planar)


@pytest.mark.node
def test_the_doors_answer(ros, planar):
    raised = transform(np.eye(3), np.array([0.0, 0.0, 5.0]))
    planar.broadcaster.fix([make_transform("robot1/base", "shelf", raised)])

    def ik(asked, service="compute_ik"):
        return ros.call(
            GetPositionIK, f"/planar/{service}", GetPositionIK.Request(ik_request=asked)
        )

    # The solution nearest to the seed, with the rest of the state; forward kinematics agree.
    for q in ((0.3, 0.9), (0.3, -0.9), (-2.0, 1.5)):
        tool = forward(q)["tool"]
        asked = request(seed=q, x=tool[0, 3], y=tool[1, 3])
        asked.robot_state.joint_state.name = ["q1", "q2", "gripper"]
        asked.robot_state.joint_state.position = [q[0] + 0.1, q[1] - 0.1, 0.02]
        answer = ik(asked)
        assert answer.error_code.val == Code.SUCCESS, answer.error_code.message
        state = answer.solution.joint_state
        assert list(state.name) == ["q1", "q2", "gripper"]
        assert list(state.position) == pytest.approx([*q, 0.02])
        assert state.header.stamp.sec > 0
        fk = GetPositionFK.Request(fk_link_names=["tool", "upper"], robot_state=answer.solution)
        poses = ros.call(GetPositionFK, "/planar/compute_fk", fk)
        assert poses.error_code.val == Code.SUCCESS
        place = poses.pose_stamped[0]
        assert place.header.frame_id == "robot1/base"
        assert (place.pose.position.x, place.pose.position.y) == pytest.approx(tuple(tool[:2, 3]))
        fk.header.frame_id = "shelf"
        place = ros.call(GetPositionFK, "/planar/compute_fk", fk).pose_stamped[0]
        assert place.header.frame_id == "shelf"
        assert place.pose.position.z == pytest.approx(-5.0)

    # Constraints on joints choose the other branch, or none.
    tool = forward((0.3, 0.9))["tool"]
    asked = request(seed=(0.3, 0.9), x=tool[0, 3], y=tool[1, 3])
    constrain(joint_name="q2", position=-1.0, tolerance_above=0.5, tolerance_below=0.5)(asked)
    assert ik(asked).solution.joint_state.position[1] == pytest.approx(-0.9)
    constrain(joint_name="q2", position=0.0, tolerance_above=0.1, tolerance_below=0.1)(asked)
    assert ik(asked).error_code.val == Code.NO_IK_SOLUTION

    # The codes of what goes wrong, with a sentence and the node's name.
    far = ik(request(x=3.0)).error_code
    assert (far.val, far.message, far.source) == (Code.NO_IK_SOLUTION, "too far", "/planar")
    collisions = changed(put("avoid_collisions", True))
    assert ik(collisions).error_code.val == Code.COLLISION_CHECKING_UNAVAILABLE
    collisions.pose_stamped.pose.position.x = 1.5
    assert ik(collisions, "plugin_ik").error_code.val == Code.SUCCESS
    assert ik(request(frame="moon")).error_code.val == Code.FRAME_TRANSFORM_FAILURE
    wrong = ik(request(link="x" * 2000)).error_code
    assert (wrong.val, "2000 characters" in wrong.message) == (Code.FAILURE, True)
    fk = GetPositionFK.Request(fk_link_names=["tool", "tail"])
    answer = ros.call(GetPositionFK, "/planar/compute_fk", fk)
    assert answer.error_code.val == Code.INVALID_LINK_NAME
    assert list(answer.fk_link_names) == ["tool"]
    assert len(answer.pose_stamped) == 1

    # The time that a request allows is honoured; nonsense is refused.
    planar.forever = True
    asked = request(x=1.0)
    asked.timeout.nanosec = 50_000_000
    assert ik(asked).error_code.val == Code.TIMED_OUT
    planar.forever = False
    asked.timeout.sec = -5
    assert ik(asked).error_code.val == Code.FAILURE

    # A path that is followed in part is a success with its fraction and the reason.
    asked = path_request()
    asked.start_state.joint_state.name = ["q2"]
    asked.start_state.joint_state.position = [0.7]
    answer = ros.call(GetCartesianPath, "/planar/compute_cartesian_path", asked)
    assert (answer.error_code.val, answer.fraction) == (Code.SUCCESS, 0.5)
    assert answer.error_code.message == "a wall"
    trajectory = answer.solution.joint_trajectory
    assert list(trajectory.joint_names) == ["q1", "q2"]
    assert list(trajectory.points[1].positions) == [0.0, 0.7]
    last = trajectory.points[1].time_from_start
    assert (last.sec, last.nanosec) == (1, 500_000_000)
    assert list(answer.start_state.joint_state.position) == [0.7]
