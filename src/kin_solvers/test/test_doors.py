"""MoveIt's inverse and forward kinematics, against pinocchio and against all solutions."""

import math

import numpy as np
import pinocchio
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import JointConstraint, PositionIKRequest
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from std_msgs.msg import String

from kin_core.errors import Unreachable
from kin_core.rotations import transform
from kin_core.task import Task
from kin_core.urdf import load_urdf
from kin_ros.moveit import Code, FkRequest, IkRequest, Refused
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
