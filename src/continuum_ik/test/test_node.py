"""The node over real DDS."""

import sys
import threading
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Pose, PoseStamped, Vector3, Wrench
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK
from numba.core.dispatcher import Dispatcher
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from continuum_ik import ContinuumSolver, make_pose
from continuum_ik.demo import demo_path
from continuum_ik.node import ContinuumNode
from kin_ros.qos import COMMAND, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def pose(x, y, z, w=1.0):
    message = Pose()
    message.position.x, message.position.y, message.position.z = x, y, z
    message.orientation.w = w
    return message


def stamped(x, y, z, w=1.0, frame=""):
    message = PoseStamped()
    message.pose = pose(x, y, z, w)
    message.header.frame_id = frame
    return message


def listen(ros, message, topic):
    seen = []
    ros.node.create_subscription(message, topic, seen.append, STATE)
    return seen


def diagnostics(ros):
    found = {}

    def keep(message):
        for status in message.status:
            if "continuum_ik" in status.name:
                found.update({v.key: v.value for v in status.values})
                found["message"] = status.message

    ros.node.create_subscription(DiagnosticArray, "/diagnostics", keep, 10)
    return found


def test_services(ros):
    ros.add(ContinuumNode)
    request = SolveContinuumIK.Request()
    request.poses = [pose(0.0, 0.02, 0.48), pose(0.0, 0.0, 0.5), pose(0.05, 0.0, 0.5)]
    request.tolerance = 1e-12
    request.analyse = True
    request.shape_points = 11
    answer = ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    lengths = np.array(answer.lengths).reshape(3, 6)
    golden = [0.482314669008, 0.487571084140, 0.484905823498] * 2
    np.testing.assert_allclose(lengths[0], golden, atol=1e-9)
    assert max(answer.residuals) <= 1e-12
    assert np.array(answer.shapes).reshape(3, 6, 11, 3)[0, 0, -1, 2] == pytest.approx(0.48)
    assert len(answer.jacobian) == len(answer.stiffness) == 3 * 36
    assert all(answer.stable)
    assert min(answer.fold_margin) > 0.0
    np.testing.assert_allclose(np.array(answer.forces).reshape(3, 6, 3).sum(axis=1), 0.0, atol=1e-6)

    back = SolveContinuumFK.Request()
    back.lengths = lengths.ravel().tolist()
    back.tolerance = 1e-12
    answer = ros.call(SolveContinuumFK, "/continuum_ik/solve_fk", back)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    for sent, found in zip(request.poses, answer.poses, strict=True):
        assert found.position.x == pytest.approx(sent.position.x, abs=1e-8)
        assert found.position.z == pytest.approx(sent.position.z, abs=1e-8)

    # A load changes the answer, and the rods carry it.
    request.analyse, request.shape_points = False, 0
    request.load_given, request.independent = True, True
    request.load.force.z = -4.0
    answer = ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    forces = np.array(answer.forces).reshape(3, 6, 3).sum(axis=1)
    np.testing.assert_allclose(forces, [[0, 0, -4.0]] * 3, atol=1e-5)
    assert np.abs(np.array(answer.lengths).reshape(3, 6) - lengths).max() > 1e-6


def test_services_refuse_with_a_sentence(ros):
    ros.add(ContinuumNode, {"batch_limit": 10, "shape_limit": 1000})
    good = pose(0.0, 0.02, 0.48)

    def ask(**fields):
        request = SolveContinuumIK.Request(**fields)
        return ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)

    cases = [
        (ask(), SolveStatus.INVALID_INPUT, "poses"),
        (ask(poses=[good] * 11), SolveStatus.LIMIT_EXCEEDED, "poses"),
        (ask(poses=[good], shape_points=1), SolveStatus.INVALID_INPUT, "shape_points"),
        (ask(poses=[good], shape_points=4_000_000_000), SolveStatus.LIMIT_EXCEEDED, "shape"),
        (ask(poses=[good], tolerance=-1.0), SolveStatus.INVALID_INPUT, "tolerance"),
        (ask(poses=[good], tolerance=float("nan")), SolveStatus.INVALID_INPUT, "tolerance"),
        (ask(poses=[good, pose(0.0, 0.0, -0.3)]), SolveStatus.UNREACHABLE, "poses[1]"),
        (ask(poses=[pose(0.0, 0.0, 0.4, 0.0)]), SolveStatus.INVALID_INPUT, "poses[0]"),
        (ask(poses=[pose(float("nan"), 0.0, 0.4)]), SolveStatus.INVALID_INPUT, "poses[0]"),
        (ask(poses=[pose(0.18, 0.0, 0.45)]), SolveStatus.UNREACHABLE, "not stable"),
        (ask(poses=[pose(0.3, 0.0, 0.48)], allow_unstable=True), SolveStatus.UNREACHABLE, "fold"),
    ]
    for answer, code, words in cases:
        assert answer.status.code == code, (words, answer.status)
        assert words in answer.status.message
    assert 0.5 < cases[-1][0].reached[0] < 1.0
    assert cases[-1][0].best[0].position.x == pytest.approx(0.237, abs=0.01)
    assert cases[-1][0].limiting_leg[0] >= 0

    answer = ask(poses=[good, pose(0.18, 0.0, 0.45)], allow_unstable=True)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    assert list(answer.stable) == [True, False]
    assert "poses[1]" in answer.status.message
    assert "not stable" in answer.status.message

    def back(**fields):
        request = SolveContinuumFK.Request(**fields)
        return ros.call(SolveContinuumFK, "/continuum_ik/solve_fk", request)

    for answer, code in (
        (back(), SolveStatus.INVALID_INPUT),
        (back(lengths=[0.4] * 7), SolveStatus.INVALID_INPUT),
        (back(lengths=[0.4] * 66), SolveStatus.LIMIT_EXCEEDED),
        (back(lengths=[float("inf")] * 6), SolveStatus.INVALID_INPUT),
        (back(lengths=[0.1, 1.1] * 3), SolveStatus.UNREACHABLE),
        (back(lengths=[0.4] * 6, guess_given=True), SolveStatus.INVALID_INPUT),
    ):
        assert answer.status.code == code, answer.status
        assert answer.status.message
    assert ask(poses=[good]).status.code == SolveStatus.SUCCESS


def test_targets_lengths_shapes_and_diagnostics(ros):
    ros.add(ContinuumNode, {"rates": True, "tolerance": 1e-12, "stale_after": 0.3})
    joints = listen(ros, JointState, "/joint_states")
    shapes = listen(ros, MarkerArray, "/rod_shapes")
    platform = listen(ros, PoseStamped, "/platform_pose")
    seen = diagnostics(ros)
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    time.sleep(0.5)
    assert not joints  # no target yet: nothing to hold
    target.publish(stamped(0.0, 0.02, 0.48))
    wait_until(lambda: joints, what="lengths")
    golden = [0.482314669008, 0.487571084140, 0.484905823498] * 2
    assert list(joints[0].name) == [f"leg_{i}" for i in range(6)]
    np.testing.assert_allclose(joints[0].position, golden, atol=1e-9)
    assert len(joints[0].velocity) == 6
    wait_until(lambda: platform, what="the platform")
    assert platform[0].pose.position.z == pytest.approx(0.48)
    markers = wait_until(lambda: shapes, what="shapes")[-1].markers
    assert sum(m.ns == "rods" for m in markers) == 6

    # Nonsense and stale targets: the last good lengths are held, at rest.
    target.publish(stamped(0.0, 0.0, -0.3))
    target.publish(stamped(float("nan"), 0.0, 0.4))
    target.publish(stamped(0.0, 0.0, 0.45, frame="elsewhere"))
    old = stamped(0.0, 0.0, 0.45)
    old.header.stamp = Time(sec=1)
    target.publish(old)
    time.sleep(0.7)
    count = len(joints)
    wait_until(lambda: len(joints) > count, what="held lengths")
    np.testing.assert_allclose(joints[-1].position, golden, atol=1e-9)
    np.testing.assert_array_equal(joints[-1].velocity, 0.0)

    # The rate between two stamped targets; of two that come at once only the newer one is taken.
    def rates():
        now = ros.node.get_clock().now().nanoseconds
        for k, z in enumerate((0.48, 0.481)):
            message = stamped(0.0, 0.02, z)
            stamp = now + k * 20_000_000
            message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
            target.publish(message)
            time.sleep(0.05)
        return [state.velocity for state in joints[count:] if max(state.velocity) > 0.0]

    np.testing.assert_allclose(wait_until(rates, what="rates")[0], 0.05, rtol=0.1)
    wait_until(lambda: "fold margin" in seen and "residual" in seen, what="diagnostics")
    assert float(seen["fold margin"]) > 0.0
    assert float(seen["residual"]) <= 1e-12


def figures(node):
    return {v.key: v.value for v in node.diagnostics.status().values}


def test_stamps_of_the_future_are_refused(ros):
    """Beyond a tolerance, by the node's clock: an hour ahead is a fault, a little is not."""
    node = ros.add(ContinuumNode, {"future_tolerance": 0.5})
    joints = listen(ros, JointState, "/joint_states")
    target = ros.publisher(PoseStamped, "/target", COMMAND)

    def send(z, ahead):
        message = stamped(0.0, 0.02, z)
        stamp = node.get_clock().now().nanoseconds + int(ahead * 1e9)
        message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
        target.publish(message)

    send(0.48, 0.2)
    wait_until(lambda: joints, what="the target that is a little early")
    held = list(joints[-1].position)
    for k, ahead in enumerate((3600.0, 2.0)):
        send(0.5, ahead)
        wait_until(
            lambda k=k: int(figures(node).get("targets refused total", 0)) == k + 1,
            what="the refusal",
        )
    assert list(joints[-1].position) == held
    assert "future" in str(node.diagnostics.status().message)


def test_a_leg_rate_limit_and_no_detours(ros):
    """A leap is refused and leaves no trace; the next near target is followed."""
    node = ros.add(ContinuumNode, {"leg_rate_limit": 0.2, "stale_after": 0.5})
    assert not node.parameters.detours
    joints = listen(ros, JointState, "/joint_states")
    stable = listen(ros, Bool, "/stable")
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    target.publish(stamped(0.0, 0.02, 0.48))
    wait_until(lambda: joints and stable, what="the first target, from nowhere")
    assert all(message.data for message in stable)
    held = list(joints[-1].position)
    target.publish(stamped(0.0, 0.02, 0.62))  # 140 mm in at most 500 ms of credit: 100 mm
    wait_until(lambda: int(figures(node).get("targets refused total", 0)) == 1, what="the refusal")
    assert "leg_rate_limit" in node.diagnostics.status().message
    assert list(joints[-1].position) == held
    np.testing.assert_allclose(node.snapshot().pose[:3], (0.0, 0.02, 0.48))
    time.sleep(0.3)
    target.publish(stamped(0.0, 0.02, 0.5))
    wait_until(lambda: joints[-1].position[0] > held[0] + 0.01, what="the near target")
    assert figures(node)["stable"] == "yes"


def test_stamps_are_compared_with_simulated_time(ros):
    """A clock that stands at 100 s: stamps of the wall clock are of the future."""
    node = ros.add(ContinuumNode, {"use_sim_time": True})
    clock = ros.publisher(Clock, "/clock", 10)
    joints = listen(ros, JointState, "/joint_states")
    target = ros.publisher(PoseStamped, "/target", COMMAND)

    def set_clock(seconds):
        wanted = int(seconds * 1e9)

        def reached():
            clock.publish(Clock(clock=Time(sec=wanted // 10**9, nanosec=wanted % 10**9)))
            return node.get_clock().now().nanoseconds == wanted

        wait_until(reached, what="the simulated time")

    def send(z, stamp):
        message = stamped(0.0, 0.02, z)
        message.header.stamp = Time(sec=int(stamp), nanosec=int(stamp % 1 * 1e9))
        target.publish(message)

    def total(key):
        return int(figures(node).get(f"{key} total", 0))

    set_clock(100.0)
    send(0.48, 100.0)
    wait_until(lambda: joints, what="a target of now")
    send(0.5, time.time())
    wait_until(lambda: total("targets refused") == 1, what="the refusal of the wall clock's time")
    send(0.5, 99.0)
    wait_until(lambda: total("targets stale") == 1, what="a stale target")
    np.testing.assert_allclose(node.snapshot().pose[:3], (0.0, 0.02, 0.48))
    set_clock(101.5)
    send(0.5, 101.4)
    wait_until(lambda: total("solved") == 2, what="a target of the new time")
    np.testing.assert_allclose(node.snapshot().pose[:3], (0.0, 0.02, 0.5))


@pytest.mark.parametrize("cuts", [1, 20])
def test_a_walk_ends_on_the_branch_of_one_step(ros, cuts):
    """Through the service: the same lengths, and the same refusal, however a path is cut."""
    ros.add(ContinuumNode, {"tolerance": 1e-12})

    def walk(end):
        start = np.array([0.0, 0.0, 0.4])
        poses = [
            pose(*(float(x) for x in start + k / cuts * (end - start))) for k in range(1, cuts + 1)
        ]
        request = SolveContinuumIK.Request(poses=poses)
        return ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)

    answer = walk(np.array([0.06, -0.04, 0.5]))
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    solver = ContinuumSolver(tolerance=1e-12, detours=False)
    expected = solver.solve(make_pose((0.06, -0.04, 0.5))).check().lengths
    np.testing.assert_allclose(answer.lengths[-6:], expected, rtol=0, atol=2e-9)
    answer = walk(np.array([0.2, 0.0, 0.5]))
    assert answer.codes[-1] == SolveStatus.UNREACHABLE
    assert not answer.stable[-1]


def kernels():
    """All compiled functions of the package, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "continuum_ik":
            for each in vars(module).values():
                if isinstance(each, Dispatcher):
                    found[f"{each.py_func.__module__}.{each.py_func.__name__}"] = each
    return found


def test_no_request_has_to_wait_for_a_compiler(ros):
    """Everything that a request or a target needs was compiled, or loaded, before."""
    ros.add(ContinuumNode)
    listen(ros, MarkerArray, "/rod_shapes")
    joints = listen(ros, JointState, "/joint_states")
    before = {name: len(kernel.signatures) for name, kernel in kernels().items()}
    assert before["continuum_ik.tracking.track"] > 0
    near, far = pose(0.0, 0.02, 0.48), pose(0.2, 0.0, 0.5)
    lengths = None
    for fields in (
        {"poses": [near]},
        {"poses": [near, far], "independent": True},
        {"poses": [near], "analyse": True, "shape_points": 5},
        {"poses": [near], "load_given": True, "load": Wrench(force=Vector3(z=-1.0))},
        {"poses": [near], "tolerance": 1e-12},
    ):
        request = SolveContinuumIK.Request(**fields)
        answer = ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)
        lengths = lengths or answer.lengths
    for fields in ({}, {"guess_given": True, "guess": near}, {"independent": True}):
        request = SolveContinuumFK.Request(lengths=lengths, **fields)
        answer = ros.call(SolveContinuumFK, "/continuum_ik/solve_fk", request)
        assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    target.publish(stamped(0.0, 0.02, 0.48))
    wait_until(lambda: joints, what="the target")
    after = {name: len(kernel.signatures) for name, kernel in kernels().items()}
    assert [name for name in after if after[name] != before[name]] == []


@pytest.mark.slow
def test_a_stream_at_1_khz_through_the_real_node(ros):
    """Nothing is lost beyond "last one wins".

    Each target carries its number in x (0.1 um apart). What the node answers are targets that were
    sent, in that order, none twice; the last one is always answered; every target that the node
    heard was solved or superseded; and it answers many of them.
    """
    process = ros.process("continuum_ik", "continuum_ik_node")
    seen = diagnostics(ros)
    answers = []
    ros.node.create_subscription(PoseStamped, "/platform_pose", answers.append, 1000)
    wait_until(lambda: seen.get("state") == "active", 180.0, "the node")
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    path = demo_path(10)
    path[:, 0] = 1e-7 * np.arange(1, len(path) + 1)
    messages = [stamped(*(float(x) for x in row[:3])) for row in path]
    due = time.monotonic()
    for message in messages:
        target.publish(message)
        due = max(due + 1e-3, time.monotonic())  # a sender that is late does not catch up
        while time.monotonic() < due:
            time.sleep(max(0.0, due - time.monotonic()))

    def number(message):
        return round(message.pose.position.x * 1e7)

    wait_until(lambda: answers and number(answers[-1]) == len(path), 20.0, "the last answer")
    answers = list(answers)  # more may come
    found = [number(message) for message in answers]
    moves = [k for k, before in zip(found, [0, *found], strict=False) if k != before]
    assert moves == sorted(set(moves))  # in order, and a held answer is the last one repeated
    for message, k in zip(answers, found, strict=True):
        np.testing.assert_allclose(
            [message.pose.position.x, message.pose.position.y, message.pose.position.z],
            path[k - 1, :3],
            rtol=0,
            atol=1e-12,
        )

    def counts():
        keys = ("targets total", "solved total", "targets superseded")
        return [int(float(seen.get(key, 0))) for key in keys]

    # Diagnostics come once a second; in the end every target is accounted for.
    wait_until(lambda: counts()[0] >= len(moves), 20.0, "counts")
    wait_until(lambda: counts()[0] == sum(counts()[1:]), 20.0, "counts")
    heard, solved, _ = counts()
    assert heard <= len(path)
    # How many of them is a question of the machine's speed; that it keeps up at all is not.
    assert solved > 0.1 * len(path)
    assert len(moves) > 0.1 * len(path)
    assert "targets refused total" not in seen
    assert process.is_running()


def test_benchmark_source_tracks_and_yields_to_targets(ros):
    ros.add(ContinuumNode, {"source": "benchmark", "source_rate": 200.0})
    platform = listen(ros, PoseStamped, "/platform_pose")
    wait_until(lambda: len(platform) > 250, 30.0, "the trajectory")
    y = np.array([m.pose.position.y for m in platform])
    z = np.array([m.pose.position.z for m in platform])
    np.testing.assert_allclose(z - y, 0.46, atol=1e-9)
    assert y.min() >= 0.02 - 1e-9
    assert y.max() > 0.1
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    stop = threading.Event()

    def keep_sending():
        while not stop.is_set():
            target.publish(stamped(0.01, 0.0, 0.5))
            time.sleep(0.05)

    thread = threading.Thread(target=keep_sending)
    thread.start()
    try:
        time.sleep(0.6)
        begin = len(platform)
        time.sleep(0.5)
        assert {round(m.pose.position.x, 9) for m in platform[begin:]} == {0.01}
    finally:
        stop.set()
        thread.join()
    begin = len(platform)
    wait_until(lambda: platform[-1].pose.position.x == 0.0, 10.0, "the source again")


def test_sweep_action_with_progress_and_cancel(ros):
    ros.add(ContinuumNode)
    goal = SweepWorkspace.Goal()
    goal.lower.x, goal.lower.y, goal.lower.z = -0.25, -0.25, 0.4
    goal.upper.x, goal.upper.y, goal.upper.z = 0.25, 0.25, 0.5
    goal.counts = [21, 21, 3]
    goal.orientation.w = 1.0
    goal.picture = True
    goal.timeout = 100.0
    seen = []
    result = ros.send_goal(
        SweepWorkspace, "/continuum_ik/sweep_workspace", goal, 120.0, on_feedback=seen.append
    )
    assert result.status.code == SolveStatus.SUCCESS, result.status.message
    assert result.total == 1323
    assert 0 < result.reachable < result.total
    assert sum(code == 0 for code in result.codes) == result.reachable
    assert bytes(result.picture).startswith(b"\x89PNG")
    assert seen
    assert all(0.0 <= f.fraction <= 1.0 for f in seen)

    goal.counts = [60, 60, 30]
    goal.picture = False
    handle = ros.start_goal(SweepWorkspace, "/continuum_ik/sweep_workspace", goal)
    time.sleep(0.3)
    handle.cancel_goal_async()
    future = handle.get_result_async()
    wait_until(future.done, 20.0, "the cancelled goal")
    assert future.result().result.status.code == SolveStatus.CANCELLED

    goal.counts = [0, 1, 1]
    result = ros.send_goal(SweepWorkspace, "/continuum_ik/sweep_workspace", goal)
    assert result.status.code == SolveStatus.INVALID_INPUT


def test_two_sweeps_at_once_and_a_node_deactivated_in_between(ros):
    node = ros.add(ContinuumNode)
    goal = SweepWorkspace.Goal()
    goal.lower.x, goal.lower.y, goal.lower.z = -0.1, -0.1, 0.4
    goal.upper.x, goal.upper.y, goal.upper.z = 0.1, 0.1, 0.5
    goal.orientation.w = 1.0
    goal.counts = [3, 3, 3]
    large = SweepWorkspace.Goal(
        lower=goal.lower, upper=goal.upper, orientation=goal.orientation, counts=[58, 58, 58]
    )
    first = ros.start_goal(SweepWorkspace, "/continuum_ik/sweep_workspace", large)
    second = ros.send_goal(SweepWorkspace, "/continuum_ik/sweep_workspace", goal)
    assert second.status.code == SolveStatus.SUCCESS, second.status.message
    # Two rods have buckled at x = -0.1, y = +-0.1, at all three heights: solutions, but not stable.
    assert second.reachable == 21
    buckled = np.flatnonzero(np.array(second.codes) != SolveStatus.SUCCESS)
    assert buckled.tolist() == [0, 6, 9, 15, 18, 24]
    joints = listen(ros, JointState, "/joint_states")
    target = ros.publisher(PoseStamped, "/target", COMMAND)
    target.publish(stamped(0.0, 0.02, 0.48))
    wait_until(lambda: joints, what="lengths beside a sweep")

    # Deactivated: the sweep is given up, targets are not followed, nothing is held.
    future = first.get_result_async()
    ros.run_on(node, lambda: node.trigger_deactivate() or True)
    wait_until(future.done, 20.0, "the sweep to end")
    assert future.result().result.status.code == SolveStatus.CANCELLED
    target.publish(stamped(0.0, 0.0, 0.5))
    time.sleep(0.3)
    count = len(joints)
    time.sleep(0.7)
    assert len(joints) == count
    ros.run_on(node, lambda: node.trigger_activate() or True)
    # Active again: the last lengths are held, then the next target is followed.
    wait_until(lambda: len(joints) > count, what="held lengths")
    assert joints[-1].position[0] == pytest.approx(0.482314669008, abs=1e-4)
    target.publish(stamped(0.0, 0.0, 0.4))
    wait_until(
        lambda: joints[-1].position[0] == pytest.approx(0.405282387766, abs=1e-4), what="the next"
    )


BAD = {
    "nan": (float("nan"), 0.0, 0.4, 0.0, 0.0, 0.0, 1.0),
    "infinite": (0.0, float("inf"), 0.4, 0.0, 0.0, 0.0, 1.0),
    "far away": (1e6, 0.0, 0.4, 0.0, 0.0, 0.0, 1.0),
    "in the base": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    "below it": (0.0, 0.0, -0.3, 0.0, 0.0, 0.0, 1.0),
    "zero quaternion": (0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0),
    "long quaternion": (0.0, 0.0, 0.4, 0.5, 0.0, 0.0, 1.0),
    "nan in the quaternion": (0.0, 0.0, 0.4, 0.0, float("nan"), 0.0, 1.0),
}


def test_one_bad_row_and_one_bad_target_among_good_ones(ros):
    """Through the service as one of three poses, and through the topic: only it is refused."""
    node = ros.add(ContinuumNode)
    joints = listen(ros, JointState, "/joint_states")
    target = ros.publisher(PoseStamped, "/target", COMMAND)

    def refused():
        figures = {v.key: v.value for v in node.diagnostics.status().values}
        return int(figures.get("targets refused total", 0))

    for k, (name, numbers) in enumerate(BAD.items()):
        bad = Pose()
        p, q = bad.position, bad.orientation
        p.x, p.y, p.z, q.x, q.y, q.z, q.w = numbers
        for independent in (False, True):
            request = SolveContinuumIK.Request(
                poses=[pose(0.0, 0.02, 0.48), bad, pose(0.0, 0.0, 0.5)], independent=independent
            )
            answer = ros.call(SolveContinuumIK, "/continuum_ik/solve_ik", request)
            good = [code == SolveStatus.SUCCESS for code in answer.codes]
            assert good == [True, False, True], name
            assert answer.status.code == answer.codes[1]
            assert "poses[1]" in answer.status.message
            lengths = np.array(answer.lengths).reshape(3, 6)
            assert np.isnan(lengths[1]).all()
            assert np.isfinite(lengths[[0, 2]]).all()
        z = 0.48 + 0.001 * k
        target.publish(stamped(0.0, 0.02, z))
        wait_until(lambda z=z: joints and joints[-1].position[0] > z, what="the good target")
        held = list(joints[-1].position)
        target.publish(PoseStamped(pose=bad))
        wait_until(lambda k=k: refused() == k + 1, what=f"{name} refused")
        assert list(joints[-1].position) == held


def test_bad_parameters_are_refused(ros):
    from kin_core.errors import InvalidInput

    with pytest.raises(InvalidInput, match="joint_names"):
        ros.add(ContinuumNode, {"joint_names": ["a", "a", "b", "c", "d", "e"]})
    with pytest.raises(AssertionError, match="active"):
        ros.add(ContinuumNode, {"robot": "rods: {radius: -1}"})
    node = ros.add(ContinuumNode, {"robot": "rods: {radius: 0.0008}"}, namespace="other")
    assert node.snapshot().robot.rods[0].radius == 0.0008
    assert make_pose((0, 0, 0.4)).size == 12
