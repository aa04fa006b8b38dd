"""MoveIt's inverse and forward kinematics, against pinocchio and against all solutions."""

import math
import re
from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import JointConstraint, PositionIKRequest
from moveit_msgs.srv import GetCartesianPath, GetPositionFK, GetPositionIK
from std_msgs.msg import String

from kin_core.errors import Unreachable
from kin_core.rotations import exp_so3, transform
from kin_core.task import Task
from kin_core.urdf import load_urdf
from kin_ros.moveit import CartesianRequest, Code, FkRequest, IkRequest, Refused
from kin_ros.poses import to_pose
from kin_ros.qos import LATCHED
from kin_solvers import Settings, arm_from_urdf, solve_all_ik
from kin_solvers.doors import ArmDoors
from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import ros, wait_until  # noqa: F401 (a fixture)

JOINTS = tuple(f"j{k}" for k in range(6))


def random_robot(seed):
    """A description of an arm of six joints with a flange, and pinocchio's model of it."""
    rng = np.random.default_rng(seed)
    links = "".join(f'<link name="l{k}"/>' for k in range(7)) + '<link name="flange"/>'
    joints = []
    for k in range(6):
        axis = np.eye(3)[rng.integers(3)] if rng.uniform() < 0.5 else rng.normal(size=3)
        x, y, z = 0.5 * rng.uniform(-1.0, 1.0, 3)
        roll, pitch, yaw = rng.uniform(-math.pi, math.pi, 3)
        low, high = -rng.uniform(1.5, 3.0), rng.uniform(1.5, 3.0)
        joints.append(
            f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/>'
            f'<origin xyz="{x} {y} {z}" rpy="{roll} {pitch} {yaw}"/>'
            f'<axis xyz="{" ".join(map(str, axis / np.linalg.norm(axis)))}"/>'
            f'<limit lower="{low}" upper="{high}" effort="1" velocity="1"/></joint>'
        )
    joints.append(
        '<joint name="tool" type="fixed"><parent link="l6"/><child link="flange"/>'
        '<origin xyz="0.1 0 0.05" rpy="0.3 0 0"/></joint>'
    )
    text = f'<robot name="r{seed}">{links}{"".join(joints)}</robot>'
    return text, pinocchio.buildModelFromXML(text)


def pose_of(model, link, q):
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(link)].homogeneous


def doors_of(text):
    urdf = load_urdf(text)
    return ArmDoors(lambda: urdf, lambda: Settings(sigma=0.1)), urdf


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_solution_within_limits(seed):
    text, model = random_robot(seed)
    doors, urdf = doors_of(text)
    rng = np.random.default_rng(100 + seed)
    lower, upper = model.lowerPositionLimit, model.upperPositionLimit
    for _ in range(3):
        q = rng.uniform(lower, upper)
        target = pose_of(model, "flange", q)
        wanted = q + rng.normal(size=6) * 0.1
        seed_state = dict(zip(JOINTS, wanted.tolist(), strict=True))
        every = solve_all_ik(arm_from_urdf(urdf, target, tip="flange"), wanted)

        def ask(limits, target=target, seed_state=seed_state):
            request = IkRequest(("flange",), target[None], seed_state, limits)
            found = doors.ik(request, Task(60.0))
            return np.array([found[name] for name in JOINTS])

        found = ask({})
        np.testing.assert_allclose(pose_of(model, "flange", found), target, atol=1e-8)
        assert np.all((found >= lower - 1e-9) & (found <= upper + 1e-9))
        assert np.linalg.norm(found - wanted) <= np.linalg.norm(q - wanted) + 1e-7
        # A constraint that the nearest one does not keep: the nearest of those that do, or none.
        k = int(rng.integers(6))
        limits = {JOINTS[k]: (lower[k], found[k] - 0.05)}
        rest = [p for p in every.positions if p[k] <= found[k] - 0.05]
        if rest:
            np.testing.assert_allclose(ask(limits), rest[0], atol=1e-6)
        else:
            with pytest.raises(Unreachable):
                ask(limits)


def test_forward_kinematics_of_every_link():
    text, model = random_robot(9)
    doors, _ = doors_of(text)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, 6)
    names = ("l0", "l3", "flange")
    state = dict(zip(JOINTS, q.tolist(), strict=True))
    for link, pose in doors.fk(FkRequest(names, state), Task()).items():
        np.testing.assert_allclose(pose, pose_of(model, link, q), atol=1e-12)
    with pytest.raises(Refused, match="j5") as refused:
        doors.fk(FkRequest(names, dict.fromkeys(JOINTS[:5], 0.0)), Task())
    assert refused.value.moveit == Code.INVALID_ROBOT_STATE


def test_the_arm_is_kept_as_long_as_the_description_stays(monkeypatch):
    from kin_solvers import doors as module

    made = []
    monkeypatch.setattr(
        module, "arm_from_urdf", lambda *a, **k: made.append(k["tip"]) or arm_from_urdf(*a, **k)
    )
    current = [load_urdf(random_robot(1)[0])]
    doors = ArmDoors(lambda: current[0], lambda: Settings(sigma=0.1))
    far = transform(np.eye(3), np.array([9.0, 0.0, 0.0]))
    for urdfs in range(1, 3):
        for _ in range(2):
            with pytest.raises(Unreachable):
                doors.ik(IkRequest(("flange",), far[None], {}, {}), Task(60.0))
            assert len(made) == urdfs
        current[0] = load_urdf(random_robot(2)[0])


def ask_path(waypoints, start, **fields):
    """A request as the door reads it."""
    request = {
        "link": "flange", "waypoints": np.asarray(waypoints), "relative": False, "limits": {},
        "start": dict(zip(JOINTS, map(float, start), strict=True)), "max_step": 0.005,
        "jump_threshold": 0.0, "revolute_jump": 0.0, "prismatic_jump": 0.0,
        "velocity_scaling": 0.0, "acceleration_scaling": 0.0, "speed_limited_link": "",
        "max_speed": 0.0,
    }  # fmt: skip
    return CartesianRequest(**{**request, **fields})


def moved(pose, *offset):
    return transform(np.eye(3), np.array(offset)) @ pose


Q = np.array([0.4, -0.6, 0.5, 0.9, -0.3, 0.2])


def test_a_path_follows_its_line_and_keeps_its_limits():
    text, model = random_robot(3)
    doors, _ = doors_of(text)
    here = pose_of(model, "flange", Q)
    there = [moved(here, 0.02, 0.01, -0.02), moved(here, 0.03, -0.02, 0.0)]
    found = doors.path(ask_path(there, Q), Task(60.0))
    assert found.fraction == 1.0
    assert found.message == ""
    np.testing.assert_allclose(found.positions[0], Q, atol=1e-9)
    places = np.array([pose_of(model, "flange", q) for q in found.positions])
    np.testing.assert_allclose(places[-1], there[-1], atol=1e-8)
    steps = np.linalg.norm(np.diff(places[:, :3, 3], axis=0), axis=1)
    assert 0.002 < steps.max() <= 0.005 + 1e-9
    speeds = np.abs(np.diff(found.positions, axis=0)) / np.diff(found.times)[:, None]
    assert speeds.max() <= 1.0 + 1e-9  # the description says 1 rad/s
    slow = doors.path(ask_path(there, Q, max_speed=0.01), Task(60.0))
    assert np.all(steps / np.diff(slow.times) <= 0.01 + 1e-9)
    half = doors.path(ask_path(there, Q, velocity_scaling=0.1), Task(60.0))
    assert half.times[-1] > found.times[-1]
    # In the frame of the link at the start.
    inside = [np.linalg.inv(here) @ pose for pose in there]
    same = doors.path(ask_path(inside, Q, relative=True), Task(60.0))
    np.testing.assert_allclose(same.positions[-1], found.positions[-1], atol=1e-8)


def test_a_path_ends_at_a_limit_at_a_jump_or_at_once():
    text, model = random_robot(3)
    doors, _ = doors_of(text)
    here = pose_of(model, "flange", Q)
    there = [moved(here, 0.02, 0.01, -0.02), moved(here, 0.03, -0.02, 0.0)]
    found = doors.path(ask_path(there, Q), Task(60.0))
    k = int(np.abs(found.positions[-1] - Q).argmax())
    ends = sorted((Q[k], found.positions[len(found.positions) // 2, k]))
    pad = (Q[k] == ends[1]) * 0.01, (Q[k] == ends[0]) * 0.01
    limits = {JOINTS[k]: (ends[0] - pad[1], ends[1] + pad[0])}
    cut = doors.path(ask_path(there, Q, limits=limits), Task(60.0))
    assert 0.0 < cut.fraction < 1.0
    assert JOINTS[k] in cut.message
    assert np.all(cut.positions[:, k] <= limits[JOINTS[k]][1] + 1e-8)
    # Each waypoint counts the same, as MoveIt counts them.
    one = doors.path(ask_path(there[:1], Q), Task(60.0))
    steps = len(one.positions) - 1
    if len(cut.positions) <= steps:
        assert cut.fraction == pytest.approx(0.5 * (len(cut.positions) - 1) / steps)
    size = np.abs(np.diff(found.positions, axis=0))
    jump = doors.path(ask_path(there, Q, revolute_jump=0.999 * size.max()), Task(60.0))
    first = int((size > 0.999 * size.max()).any(axis=1).argmax())
    assert len(jump.positions) == first + 1
    assert "jump" in jump.message
    share = size.sum(axis=1) / size.sum(axis=1).mean()
    relative = doors.path(ask_path(there, Q, jump_threshold=0.999 * share.max()), Task(60.0))
    assert len(relative.positions) == int((share > 0.999 * share.max()).argmax()) + 1
    assert doors.path(ask_path(there, Q, jump_threshold=9.0), Task(60.0)).fraction == 1.0
    outside = {JOINTS[0]: (Q[0] + 0.1, Q[0] + 0.2)}
    assert doors.path(ask_path(there, Q, limits=outside), Task(60.0)).fraction == 0.0
    assert doors.path(ask_path(np.empty((0, 4, 4)), Q), Task(60.0)).fraction == 0.0
    with pytest.raises(Refused, match="j5") as refused:
        doors.path(replace(ask_path(there, Q), start=dict.fromkeys(JOINTS[:5], 0.0)), Task())
    assert refused.value.moveit == Code.INVALID_ROBOT_STATE


def test_a_revolute_joint_of_one_turn_does_not_turn_on_over_its_ends():
    """Limits of exactly +-pi are limits of a revolute joint, and none of a continuous one."""
    text, model = random_robot(3)
    ends = f'lower="{-math.pi!r}" upper="{math.pi!r}"'
    text = re.sub(r'lower="[^"]*" upper="[^"]*"', ends, text)
    q = Q.copy()
    q[0] = math.pi - 0.01
    here = pose_of(model, "flange", q)
    base = pose_of(model, "l0", q)
    axis = pose_of(model, "l1", q)[:3, :3] @ np.asarray(load_urdf(text).joints["j0"].axis)
    origin = pose_of(model, "l1", q)[:3, 3]
    turn = transform(exp_so3(0.05 * axis), np.zeros(3))
    spin = moved(turn @ moved(base, *-origin), *origin)
    there = [spin @ here]
    found = doors_of(text)[0].path(ask_path(there, q), Task(60.0))
    assert "j0" in found.message
    free = doors_of(text.replace('name="j0" type="revolute"', 'name="j0" type="continuous"'))[0]
    assert free.path(ask_path(there, q), Task(60.0)).fraction == 1.0


@pytest.mark.node
def test_the_doors_over_dds(ros):  # noqa: F811
    text, model = random_robot(3)
    ros.add(KinSolversNode)
    ros.publish(String, "/robot_description", String(data=text), LATCHED)
    q = np.array([0.4, -0.6, 0.5, 0.9, -0.3, 0.2])
    target = pose_of(model, "flange", q)

    def ik(**fields):
        asked = PositionIKRequest(ik_link_name="flange", **fields)
        asked.pose_stamped = PoseStamped(pose=to_pose(target[:3, 3], target[:3, :3]))
        asked.pose_stamped.header.frame_id = "l0"
        asked.robot_state.joint_state.name = list(JOINTS)
        asked.robot_state.joint_state.position = (q + 0.01).tolist()
        return GetPositionIK.Request(ik_request=asked)

    def ask(request):
        return ros.call(GetPositionIK, "/kin_solvers/compute_ik", request, timeout=90)

    def answered():
        answer = ask(ik())
        return answer if answer.error_code.val == Code.SUCCESS else None

    answer = wait_until(answered, 60.0, "the robot description")
    state = answer.solution.joint_state
    assert list(state.name) == list(JOINTS)
    np.testing.assert_allclose(state.position, q, atol=1e-7)
    assert ask(ik(avoid_collisions=True)).error_code.val == Code.COLLISION_CHECKING_UNAVAILABLE
    narrow = ik()
    narrow.ik_request.constraints.joint_constraints = [
        JointConstraint(joint_name="j0", position=q[0], tolerance_above=0.1, tolerance_below=0.1)
    ]
    np.testing.assert_allclose(ask(narrow).solution.joint_state.position, q, atol=1e-7)
    far = ik()
    far.ik_request.pose_stamped.pose.position.x = 50.0
    assert ask(far).error_code.val == Code.NO_IK_SOLUTION
    lost = ik()
    lost.ik_request.pose_stamped.header.frame_id = "nowhere"
    assert ask(lost).error_code.val == Code.FRAME_TRANSFORM_FAILURE
    request = GetPositionFK.Request(fk_link_names=["flange"])
    request.robot_state.joint_state = state
    poses = ros.call(GetPositionFK, "/kin_solvers/compute_fk", request, timeout=90)
    assert poses.error_code.val == Code.SUCCESS
    p = poses.pose_stamped[0].pose.position
    np.testing.assert_allclose([p.x, p.y, p.z], target[:3, 3], atol=1e-7)

    request = GetCartesianPath.Request(link_name="flange", max_step=0.002)
    request.header.frame_id = "l0"
    request.start_state.joint_state = state
    request.waypoints = [to_pose(moved(target, 0.01, 0.0, -0.01)[:3, 3], target[:3, :3])]

    def path():
        name = "/kin_solvers/compute_cartesian_path"
        return ros.call(GetCartesianPath, name, request, timeout=90)

    found = path()
    assert found.error_code.val == Code.SUCCESS, found.error_code.message
    assert found.fraction == 1.0
    trajectory = found.solution.joint_trajectory
    assert list(trajectory.joint_names) == list(JOINTS)
    end = pose_of(model, "flange", np.array(trajectory.points[-1].positions))
    np.testing.assert_allclose(end[:3, 3], target[:3, 3] + [0.01, 0.0, -0.01], atol=1e-7)
    request.waypoints[0].position.x = 50.0
    request.max_step = 0.1
    far = path()
    assert far.error_code.val == Code.SUCCESS
    assert far.fraction < 0.1
    assert far.error_code.message
    request.avoid_collisions = True
    assert path().error_code.val == Code.COLLISION_CHECKING_UNAVAILABLE
