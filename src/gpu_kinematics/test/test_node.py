"""The node over real DDS: services, topics, budgets, bad requests, concurrent clients, the demo."""

import threading

import numpy as np
import pytest

from kin_core.errors import StatusCode
from kin_ros.arrays import from_field, to_field

pytest.importorskip("kin_interfaces.srv", reason="the workspace is not built")

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped
from kin_interfaces.msg import DeltaBatch, DeltaGeometry
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, Geometry
from gpu_kinematics.node import GpuKinematicsNode
from kin_ros.qos import SENSOR, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node
SOLVE = "/gpu_kinematics/solve_delta"
ROBOT = Delta(PUBLISHED_GEOMETRY, backend="cpu")
CPU = {"backend": "cpu"}
SAMPLE = [4.42390040339488e-3, 2.607425472741751e-3, -54.118874381113061e-3]


def request(operation, data, layout=DeltaBatch.SOA, **changes):
    data = np.asarray(data, dtype=float)
    changes.setdefault("count", data.size // 3)
    return SolveDelta.Request(operation=operation, layout=layout, data=to_field(data), **changes)


@pytest.mark.parametrize("layout", [DeltaBatch.SOA, DeltaBatch.AOS])
def test_every_operation(ros, layout):
    ros.add(GpuKinematicsNode, CPU)
    name = "soa" if layout == DeltaBatch.SOA else "aos"
    angles = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 200))
    angles = angles if name == "soa" else np.ascontiguousarray(angles.T)
    ask = SolveDelta.Request
    forward = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, angles, layout))
    expected = ROBOT.fk(angles, layout=name).position
    assert forward.status.code == StatusCode.SUCCESS and forward.backend == "cpu"
    assert (from_field(forward.data) == expected.reshape(-1)).all()
    assert len(forward.mask) == 200 and forward.failed == 0
    inverse = ros.call(SolveDelta, SOLVE, request(ask.INVERSE, expected, layout))
    np.testing.assert_allclose(from_field(inverse.data), angles.reshape(-1), atol=1e-13)
    jacobian = ros.call(SolveDelta, SOLVE, request(ask.JACOBIAN, angles, layout))
    matrix = ROBOT.jacobian(angles, layout=name).jacobian
    assert (from_field(jacobian.jacobian) == matrix.reshape(-1)).all()
    assert len(jacobian.condition) == len(jacobian.det_parallel) == len(jacobian.det_serial) == 200
    rate = to_field(np.ones(600))
    motion = ros.call(SolveDelta, SOLVE, request(ask.FORWARD_MOTION, angles, layout, rate=rate))
    back = ros.call(
        SolveDelta,
        SOLVE,
        request(
            ask.INVERSE_MOTION,
            from_field(motion.data),
            layout,
            rate=motion.rate,
            rate2=motion.rate2,
        ),
    )
    np.testing.assert_allclose(from_field(back.rate), 1.0, atol=1e-9)
    np.testing.assert_allclose(from_field(back.rate2), 0.0, atol=1e-7)


def test_branches_precision_geometry_and_limits(ros):
    ros.add(GpuKinematicsNode, CPU)
    ask = SolveDelta.Request
    inward = ros.call(SolveDelta, SOLVE, request(ask.INVERSE, SAMPLE, branch=7))
    np.testing.assert_allclose(from_field(inward.data), [-3.018, -2.960, -2.902], atol=5e-4)
    up = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, [0.1, 0.2, 0.3], branch=8))
    assert from_field(up.data)[2] > 0
    single = ros.call(SolveDelta, SOLVE, request(ask.INVERSE, SAMPLE, single_precision=True))
    error = np.abs(from_field(single.data) - [0.1, 0.2, 0.3]).max()
    assert 1e-12 < error < 1e-6
    own = DeltaGeometry(radius=[0.01, 0.02], upper=[0.04], lower=[0.07, 0.08])
    each = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, [0.1] * 6, geometry=own))
    expected = Delta(Geometry([0.01, 0.02], 0.04, [0.07, 0.08]), backend="cpu")
    assert (from_field(each.data) == expected.fk(np.full((3, 2), 0.1)).position.reshape(-1)).all()
    limited = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, [1.45, 0.2, 0.3], apply_limits=True))
    assert limited.mask[0] == DeltaBatch.ARM_ABOVE_LIMIT and limited.failed == 1
    assert np.isfinite(from_field(limited.data)).all()


def test_bad_requests_name_the_field(ros):
    ros.add(GpuKinematicsNode, {**CPU, "max_batch": 1000})
    ask = SolveDelta.Request
    bad = DeltaGeometry(radius=[0.01], upper=[-0.04], lower=[0.07])
    cases = [
        (request(9, [0.1, 0.2, 0.3]), "operation"),
        (request(ask.FORWARD, [0.1, 0.2, 0.3], 7), "layout"),
        (request(ask.FORWARD, [0.1, 0.2]), "data"),
        (request(ask.FORWARD, [0.1] * 3, count=2), "data"),
        (request(ask.FORWARD, [0.1] * 3, branch=200), "branch"),
        (request(ask.FORWARD, [0.1] * 3, geometry=bad), "upper"),
        (request(ask.FORWARD, [0.1] * 3, geometry=DeltaGeometry(theta=[1.0] * 3)), "theta"),
        (request(ask.FORWARD_MOTION, [0.1] * 3, rate=to_field([1.0])), "rate"),
    ]
    for asked, field in cases:
        answer = ros.call(SolveDelta, SOLVE, asked)
        assert answer.status.code == StatusCode.INVALID_INPUT, field
        assert field in answer.status.message
    over = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, np.zeros(3003)))
    assert over.status.code == StatusCode.LIMIT_EXCEEDED and "max_batch" in over.status.message
    lie = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, [0.1] * 3, count=4_000_000_000))
    assert lie.status.code == StatusCode.LIMIT_EXCEEDED
    nan = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, [np.nan, 0.1, 0.2]))
    assert nan.status.code == StatusCode.UNREACHABLE and nan.mask[0] == DeltaBatch.INVALID
    empty = ros.call(SolveDelta, SOLVE, request(ask.FORWARD, []))
    assert empty.status.code == StatusCode.SUCCESS and empty.count == 0
    fine = ros.call(SolveDelta, SOLVE, request(ask.INVERSE, SAMPLE))
    np.testing.assert_allclose(from_field(fine.data), [0.1, 0.2, 0.3], atol=1e-13)


def test_unreachable_targets_are_explained(ros):
    ros.add(GpuKinematicsNode, CPU)
    asked = request(SolveDelta.Request.INVERSE, [[0.0, 0.0], [0.0, 0.0], [-0.06, -0.2]])
    some = ros.call(SolveDelta, SOLVE, asked)
    assert some.status.code == StatusCode.SUCCESS and some.failed == 1
    assert "arm 1 is too far" in some.status.message and list(some.mask) == [0, 0x111]
    none = ros.call(SolveDelta, SOLVE, request(SolveDelta.Request.INVERSE, [0.0, 0.0, -0.2]))
    assert none.status.code == StatusCode.UNREACHABLE


def test_concurrent_clients_get_their_own_answers(ros):
    ros.add(GpuKinematicsNode, CPU)
    batches = [np.random.default_rng(i).uniform(-0.6, 1.2, (3, 2000)) for i in range(12)]
    futures = [
        ros.call_async(SolveDelta, SOLVE, request(SolveDelta.Request.FORWARD, b)) for b in batches
    ]
    wait_until(lambda: all(f.done() for f in futures), 60.0, "answers")
    for future, batch in zip(futures, batches, strict=True):
        assert (from_field(future.result().data) == ROBOT.fk(batch).position.reshape(-1)).all()


def test_make_trajectory(ros):
    ros.add(GpuKinematicsNode, {**CPU, "max_samples": 10_000})
    name = "/gpu_kinematics/make_trajectory"
    start = np.array([[-0.015, 0.01], [0.0, 0.005], [-0.065, -0.06]])
    goal = np.array([[0.015, -0.01], [0.005, 0.0], [-0.06, -0.062]])
    asked = MakeTrajectory.Request(
        kind=MakeTrajectory.Request.PICK_AND_PLACE,
        count=2,
        start=to_field(start),
        goal=to_field(goal),
        height=0.01,
        overlap=0.5,
        samples=50,
    )
    found = ros.call(MakeTrajectory, name, asked)
    assert found.status.code == StatusCode.SUCCESS, found.status.message
    position = from_field(found.position).reshape(3, 50, 2)
    np.testing.assert_allclose(position[:, 0], start, atol=1e-14)
    np.testing.assert_allclose(position[:, -1], goal, atol=1e-14)
    angle = from_field(found.angle).reshape(3, 50, 2)
    np.testing.assert_allclose(ROBOT.fk(angle).position, position, atol=1e-13)
    asked.fit_joint_rates = True
    asked.max_velocity, asked.max_acceleration, asked.max_jerk = 50.0, 5e3, 5e6
    slowed = ros.call(MakeTrajectory, name, asked)
    assert max(slowed.time_scale) > 1.0 and max(slowed.peak_rate) <= 60.0 * 1.01
    asked.samples = 20_000
    assert ros.call(MakeTrajectory, name, asked).status.code == StatusCode.LIMIT_EXCEEDED
    asked.samples, asked.sample_period = 0, 1e-12
    assert ros.call(MakeTrajectory, name, asked).status.code == StatusCode.LIMIT_EXCEEDED
    asked.samples, asked.sample_period, asked.overlap = 10, 0.0, 3.0
    refused = ros.call(MakeTrajectory, name, asked)
    assert refused.status.code == StatusCode.INVALID_INPUT and "overlap" in refused.status.message
    asked.overlap, asked.goal = 0.5, to_field(goal + 1e300)
    assert ros.call(MakeTrajectory, name, asked).status.code == StatusCode.INVALID_INPUT
    asked.goal = to_field(goal * np.nan)
    assert ros.call(MakeTrajectory, name, asked).status.code == StatusCode.INVALID_INPUT
    asked.goal = to_field(goal + 0.5)
    out = ros.call(MakeTrajectory, name, asked)
    assert out.status.code == StatusCode.UNREACHABLE and out.failed == 2


def test_workspace_map(ros):
    ros.add(GpuKinematicsNode, {**CPU, "max_points": 100_000})
    name = "/gpu_kinematics/workspace_map"
    asked = WorkspaceMap.Request(
        lower=[-0.05, -0.05, -0.11], upper=[0.05, 0.05, -0.01], cells=[26, 26, 26]
    )
    asked.angle_limits = [-1.0471975511965976, 1.0471975511965976]
    found = ros.call(WorkspaceMap, name, asked, timeout=60)
    assert found.status.code == StatusCode.SUCCESS
    assert len(found.mask) == len(found.dexterity) == 26**3
    assert found.cube_side == pytest.approx(0.038, abs=0.006) and found.usable > 1000
    asked.cells = [200, 200, 200]
    assert ros.call(WorkspaceMap, name, asked).status.code == StatusCode.LIMIT_EXCEEDED
    asked.cells = [0, 1, 1]
    assert ros.call(WorkspaceMap, name, asked).status.code == StatusCode.INVALID_INPUT


def test_topics(ros):
    ros.add(GpuKinematicsNode, CPU)
    angles = np.random.default_rng(1).uniform(-0.6, 1.2, (100, 3))
    results = ros.listen(DeltaBatch, "delta/fk/result", STATE)
    batch = DeltaBatch(quantity=DeltaBatch.ANGLES, layout=DeltaBatch.AOS, count=100)
    batch.data = to_field(angles)
    ros.publish(DeltaBatch, "delta/fk/request", DeltaBatch(count=5), STATE)  # dropped: no data
    ros.publish(DeltaBatch, "delta/fk/request", batch, STATE)
    wait_until(lambda: results, 20.0, "a batch")
    assert results[0].count == 100 and results[0].layout == DeltaBatch.AOS
    expected = ROBOT.fk(angles, layout="aos").position
    assert (from_field(results[0].data) == expected.reshape(-1)).all()
    back = ros.listen(DeltaBatch, "delta/ik/result", STATE)
    results[0].status = to_field([], "uint16")
    ros.publish(DeltaBatch, "delta/ik/request", results[0], STATE)
    wait_until(lambda: back, 20.0, "a batch")
    np.testing.assert_allclose(from_field(back[0].data), angles.reshape(-1), atol=1e-13)
    assert not any(back[0].status)


class Gate:
    """Robots that compute only when they are let through."""

    def __init__(self, robots):
        self.robots, self.open, self.began = robots, threading.Event(), threading.Event()

    def fk(self, data, **settings):
        self.began.set()
        assert self.open.wait(60.0)
        return self.robots.fk(data, **settings)


def test_batches_never_hold_up_the_executor_and_the_oldest_give_way(ros):
    node = ros.add(GpuKinematicsNode, {**CPU, "batch_queue": 3})
    results = ros.listen(DeltaBatch, "delta/fk/result", STATE)
    commands = ros.listen(JointState, "delta/joint_command", STATE)
    gate = Gate(node.delta)
    batch = DeltaBatch(quantity=DeltaBatch.ANGLES, count=1, data=to_field([0.1, 0.2, 0.3]))

    def send(number):
        batch.header.frame_id = str(number)
        ros.publish(DeltaBatch, "delta/fk/request", batch, STATE)

    ros.run_on(node, lambda: setattr(node, "delta", gate))
    send(0)
    wait_until(gate.began.is_set, 20.0, "the first batch")
    ros.run_on(node, lambda: setattr(node, "delta", gate.robots))
    # The first batch computes; the executor still answers services and other topics.
    answer = ros.call(SolveDelta, SOLVE, request(SolveDelta.Request.INVERSE, SAMPLE))
    assert answer.status.code == StatusCode.SUCCESS
    target = PointStamped()
    target.point.x, target.point.y, target.point.z = SAMPLE

    def commanded():
        ros.publish(PointStamped, "delta/target", target, SENSOR)
        return commands

    wait_until(commanded, 20.0, "a command")
    reports = ros.listen(DiagnosticArray, "/diagnostics", 10)

    def dropped():
        values = [v for r in reports for s in r.status for v in s.values]
        return max((int(v.value) for v in values if v.key == "batches dropped total"), default=0)

    for number in range(1, 9):
        send(number)
    wait_until(lambda: dropped() == 5, 20.0, "batches to be dropped")
    assert not results
    gate.open.set()
    wait_until(lambda: len(results) == 4, 20.0, "the batches that were kept")
    assert [r.header.frame_id for r in results] == ["0", "6", "7", "8"]
    expected = ROBOT.fk(np.array([0.1, 0.2, 0.3])).position
    assert all((from_field(r.data) == expected).all() for r in results)


def test_single_robot_topics(ros):
    ros.add(GpuKinematicsNode, CPU)
    points = ros.listen(PointStamped, "delta/point", STATE)
    commands = ros.listen(JointState, "delta/joint_command", STATE)
    target = PointStamped()
    target.point.z = -1.0
    ros.publish(PointStamped, "delta/target", target, SENSOR)  # unreachable: no command
    target.point.x, target.point.y, target.point.z = SAMPLE
    state = JointState(position=[0.1, 0.2, 0.3])

    def answered():
        ros.publish(JointState, "delta/joint_states", state, SENSOR)
        ros.publish(PointStamped, "delta/target", target, SENSOR)
        return points and commands

    wait_until(answered, 20.0, "answers")
    np.testing.assert_allclose(
        [points[0].point.x, points[0].point.z], [SAMPLE[0], SAMPLE[2]], atol=1e-15
    )
    np.testing.assert_allclose(commands[0].position, [0.1, 0.2, 0.3], atol=1e-13)
    assert points[0].header.frame_id == "delta_base"


def test_fleet_demo_and_diagnostics(ros):
    ros.add(GpuKinematicsNode, {**CPU, "fleet": 50, "fleet_rate": 20.0})
    joints = ros.listen(JointState, "delta/fleet/joint_states", STATE)
    batches = ros.listen(DeltaBatch, "delta/fleet/batch", STATE)
    markers = ros.listen(MarkerArray, "delta/fleet/markers", STATE)
    reports = ros.listen(DiagnosticArray, "/diagnostics", 10)
    wait_until(lambda: len(joints) > 3 and len(batches) > 3 and markers, 30.0, "the demo")
    assert len(joints[0].position) == 150 and len(set(joints[0].name)) == 150
    assert not any(batches[0].status)
    assert joints[0].position != joints[3].position
    arms, rods, platforms = markers[0].markers
    assert len(arms.points) == len(rods.points) == 300 and len(platforms.points) == 50
    # A rod of the first robot has the length of a rod.
    a, b = rods.points[0], rods.points[1]
    length = np.linalg.norm([a.x - b.x, a.y - b.y, a.z - b.z])
    assert length == pytest.approx(0.068, abs=1e-12)

    def keys():
        return {
            v.key: v.value
            for r in reports
            for s in r.status
            if "gpu_kin" in s.name
            for v in s.values
        }

    wait_until(lambda: "robots_per_second" in keys(), 20.0, "diagnostics")
    assert keys()["backend"] == "cpu" and float(keys()["robots_per_second"]) > 0


def test_parameters_change_the_robot_and_bad_ones_are_refused(ros):
    from rclpy.parameter import Parameter

    node = ros.add(GpuKinematicsNode, CPU)
    done = ros.run_on(node, lambda: node.set_parameters([Parameter("lower", value=0.08)]))
    assert done[0].successful
    found = ros.call(SolveDelta, SOLVE, request(SolveDelta.Request.FORWARD, [0.1, 0.2, 0.3]))
    expected = Delta(Geometry(0.0105, 0.04, 0.08), backend="cpu").fk(np.array([0.1, 0.2, 0.3]))
    assert (from_field(found.data) == expected.position).all()
    for name, value in (
        ("lower", -1.0),
        ("theta", [0.0]),
        ("angle_lower", 3.0),
        ("backend", "cuda"),
    ):
        refused = ros.run_on(
            node, lambda n=name, v=value: node.set_parameters([Parameter(n, value=v)])
        )
        assert not refused[0].successful, name
    again = ros.call(SolveDelta, SOLVE, request(SolveDelta.Request.FORWARD, [0.1, 0.2, 0.3]))
    assert again.data == found.data
