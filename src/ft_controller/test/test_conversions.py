import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from kin_interfaces.srv import InjectFault, SetJointLimits
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller import ArmError, Fault, ScheduleError, Trajectory, conversions

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


def test_joints_that_are_not_named_stay_and_the_way_begins_where_the_arm_is():
    message = JointTrajectory(joint_names=["b"], points=[point(2.0, positions=[5.0])])
    made = conversions.trajectory_of(message, JOINTS, DESIRED)
    assert made.duration == 2.0
    assert made.sample(0.0)[0].tolist() == [1.0, 2.0, 3.0]
    assert made.sample(2.0)[0] == pytest.approx([1.0, 5.0, 3.0])
    empty = conversions.trajectory_of(JointTrajectory(joint_names=["b"]), JOINTS, DESIRED)
    assert empty.sample(9.0)[0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "names, points, word",
    [
        (["x"], [], "joint_names"),
        ([], [], "at least one"),
        (["a", "a"], [], "twice"),
        (["a"], [point(1.0, positions=[1.0, 2.0])], "points.positions"),
        (["a"], [point(1.0, velocities=[1.0])], "points.positions"),
        (["a"], [point(1.0, positions=[1.0]), point(1.0, positions=[2.0])], "times"),
    ],
)
def test_senseless_trajectories_are_refused_by_field(names, points, word):
    with pytest.raises(ArmError, match=word):
        conversions.trajectory_of(
            JointTrajectory(joint_names=names, points=points), JOINTS, DESIRED
        )


def test_a_trajectory_comes_back_as_it_went():
    rng = np.random.default_rng(1)
    there = Trajectory.through([0.0, 0.5, 2.25], *rng.uniform(-1, 1, (3, 3, 3)))
    message = conversions.trajectory_message(there, JOINTS)
    back = conversions.trajectory_of(message, JOINTS, DESIRED)
    for t in np.linspace(0.0, 2.25, 19):
        assert back.sample(t) == pytest.approx(there.sample(t), abs=1e-6)


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
