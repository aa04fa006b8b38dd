import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from kin_interfaces.srv import InjectFault, SetJointLimits
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller import ArmError, Fault, ScheduleError, Trajectory, conversions
from ft_controller.trajectory_goals import Seen, Tolerances

JOINTS = ("a", "b", "c")
DESIRED = np.array([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]])


def point(seconds, **fields):
    made = JointTrajectoryPoint(**fields)
    made.time_from_start.sec = int(seconds)
    made.time_from_start.nanosec = round(1e9 * (seconds - int(seconds)))
    return made


def test_values_are_put_in_the_order_of_the_joints():
    others = [3, np.nan, 1, 2]  # of another robot, or a gripper
    values = conversions.joint_values(JOINTS, ["c", "x", "a", "b"], "position", others)
    assert values.tolist() == [1.0, 2.0, 3.0]
    for names, given, word in (
        (["a", "b"], [1.0, 2.0], "'c' is missing"),
        (["a", "b", "c"], [1.0], "1 values for 3 names"),
        (["a", "b", "c"], [1.0, np.nan, 2.0], "finite"),
    ):
        with pytest.raises(Exception, match=word):
            conversions.joint_values(JOINTS, names, "position", given)


def test_the_age_of_a_stamp():
    stamp = Time(sec=100, nanosec=500_000_000)
    assert conversions.age_of(stamp, 100.75, 0.05, True) == pytest.approx(0.25)
    assert conversions.age_of(stamp, 100.48, 0.05, True) == 0.0
    with pytest.raises(ArmError, match="in the future"):
        conversions.age_of(stamp, 100.0, 0.05, False)
    assert conversions.age_of(Time(), 100.0, 0.05, False) == 0.0
    with pytest.raises(ArmError, match="zero"):
        conversions.age_of(Time(), 100.0, 0.05, True)


def test_points_are_put_in_the_order_of_the_joints():
    message = JointTrajectory(
        joint_names=["c", "a"],
        points=[
            point(0.5, positions=[3.0, 1.0]),
            point(2.25, positions=[4.0, 2.0], velocities=[0.0, 0.0], accelerations=[0.3, 0.1]),
        ],
    )
    made = conversions.waypoints_of(message, JOINTS)
    assert made.times.tolist() == [0.5, 2.25] and made.named.tolist() == [True, False, True]
    assert made.positions.tolist() == [[1.0, 0.0, 3.0], [2.0, 0.0, 4.0]]
    assert np.isnan(made.velocities[0]).all() and made.velocities[1].tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(made.accelerations[0]).all()
    assert made.accelerations[1].tolist() == [0.1, 0.0, 0.3]
    with pytest.raises(ArmError, match="joint_names: b is missing; allow_partial_joints_goal"):
        conversions.waypoints_of(message, JOINTS, partial=False)


@pytest.mark.parametrize(
    "names, points, sentence",
    [
        (["x"], [], "joint_names"),
        ([], [], "at least one"),
        (["a", "a"], [], "twice"),
        (["a"], [], "points: there must be at least one"),
        (["a"], [point(1.0, positions=[1.0, 2.0])], "positions: point 0 has 2 values"),
        (["a"], [point(1.0, velocities=[1.0])], "positions: point 0 has 0 values"),
        (["a"], [point(1.0, positions=[np.nan])], "positions: point 0, a: must be finite"),
        (["a"], [point(1.0, positions=[1.0], velocities=[np.nan])], "velocities: point 0, a"),
        (["a"], [point(1.0, positions=[1.0], effort=[1.0])], "effort: point 0"),
        (["a"], [point(1.0, positions=[1.0]), point(1.0, positions=[2.0])], "must rise"),
    ],
)
def test_senseless_trajectories_are_refused_by_field(names, points, sentence):
    with pytest.raises(ArmError, match=sentence):
        conversions.waypoints_of(JointTrajectory(joint_names=names, points=points), JOINTS)


def test_a_trajectory_comes_back_as_it_went():
    rng = np.random.default_rng(1)
    p, v, a = rng.uniform(-1, 1, (3, 3, 3))
    v[-1] = 0.0
    there = Trajectory.through([0.0, 0.5, 2.25], p, v, a)
    message = conversions.trajectory_message(there, JOINTS)
    back = conversions.waypoints_of(message, JOINTS).route(DESIRED, 0.0, 1.0).trajectory
    for t in np.linspace(0.0, 2.25, 19):
        assert back.sample(t) == pytest.approx(there.sample(t), abs=1e-6)


def test_tolerances_of_a_goal_stand_beside_the_usual_ones():
    usual = Tolerances(np.full((2, 3), 0.1), np.full((2, 3), 0.2), 0.5)
    made = conversions.tolerances_of(FollowJointTrajectory.Goal(), JOINTS, usual)
    assert (made.path == usual.path).all() and (made.goal == usual.goal).all()
    assert made.goal_time == 0.5
    goal = FollowJointTrajectory.Goal(
        path_tolerance=[JointTolerance(name="b", position=0.3, velocity=-1.0, acceleration=9.0)],
        goal_tolerance=[JointTolerance(name="c", position=-1.0)],
    )
    goal.goal_time_tolerance.sec = -1
    made = conversions.tolerances_of(goal, JOINTS, usual)
    assert made.path.tolist() == [[0.1, 0.3, 0.1], [0.1, 0.0, 0.1]]
    assert made.goal.tolist() == [[0.2, 0.2, 0.0], [0.2, 0.2, 0.2]]
    assert made.goal_time == 0.0
    goal.goal_tolerance = [JointTolerance(name="knee")]
    with pytest.raises(ArmError, match=r"goal_tolerance.name: .*knee"):
        conversions.tolerances_of(goal, JOINTS, usual)


def test_feedback_before_the_start_has_a_negative_time():
    seen = Seen(-0.25, DESIRED, np.ones(3), np.zeros(3))
    made = conversions.feedback_of(seen, JOINTS, Time(sec=7))
    assert made.header.stamp.sec == 7 and made.joint_names == list(JOINTS)
    time = made.desired.time_from_start
    assert (time.sec, time.nanosec) == (-1, 750_000_000)
    assert made.error.positions.tolist() == [0.0, 1.0, 2.0]
    assert made.error.velocities.tolist() == [0.1, 0.2, 0.3] and not len(made.error.accelerations)


def test_a_fault_or_a_schedule():
    request = InjectFault.Request(processors=[2], kind=" nan ", start=1.0, duration=2.0, seed=4)
    assert conversions.faults_of(request) == [Fault((2,), "nan", 1.0, 3.0, 0, 0.0, 4)]
    schedule = InjectFault.Request(schedule="- {processor: 1, start: 0.5}")
    assert conversions.faults_of(schedule) == [Fault((1,), "wrong_element", 0.5)]
    schedule.kind = "nan"
    with pytest.raises(ScheduleError, match="either"):
        conversions.faults_of(schedule)


def test_limits_by_name():
    request = SetJointLimits.Request(joints=["c", "a"], lower=[-1.0, -2.0], upper=[1.0, 2.0])
    where, lower, upper = conversions.limits_of(request, JOINTS)
    assert (where, lower.tolist(), upper.tolist()) == ([2, 0], [-1.0, -2.0], [1.0, 2.0])
    for change, word in (
        ({"joints": []}, "at least one"),
        ({"joints": ["c", "y"]}, "joints"),
        ({"upper": [1.0]}, "upper"),
        ({"upper": [-1.0, 2.0]}, "c: -1 is not below -1"),
        ({"lower": [np.nan, 0.0]}, "lower"),
    ):
        bad = SetJointLimits.Request(joints=["c", "a"], lower=[-1.0, -2.0], upper=[1.0, 2.0])
        for name, value in change.items():
            setattr(bad, name, value)
        with pytest.raises(Exception, match=word):
            conversions.limits_of(bad, JOINTS)
