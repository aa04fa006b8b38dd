"""tf: what the buffer says is what the transforms say, at times between them too; bounded."""

import threading
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TransformStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from rosgraph_msgs.msg import Clock
from scipy.spatial.transform import Rotation, Slerp
from tf2_msgs.msg import TFMessage

from kin_core.errors import InvalidInput
from kin_ros.frames import Broadcaster, FrameBuffer, FrameError, Frames, fill_transform
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_ros.robot_state import make_transform
from kin_testing.fixtures import wait_until

SECOND = 1_000_000_000


def stamped(parent, child, numbers=(0, 0, 0, 0, 0, 0, 1), when=0.0):
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    message.header.stamp = Time(sec=int(when), nanosec=round((when % 1) * 1e9))
    fill_transform(message, map(float, numbers))
    return message


def random_numbers(rng):
    return np.concatenate([rng.uniform(-3, 3, 3), Rotation.random(random_state=rng).as_quat()])


def matrix(numbers):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_quat(numbers[3:]).as_matrix(), numbers[:3]
    return T


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_any_two_frames_of_a_tree(seed, count):
    """Against products of the whole chains to the root."""
    rng = np.random.default_rng(seed)
    buffer = FrameBuffer()
    to_root = {"f0": np.eye(4)}
    for k in range(1, count):
        parent, numbers = f"f{rng.integers(k)}", random_numbers(rng)
        buffer.put(stamped(parent, f"f{k}", numbers, 1.0), static=bool(rng.integers(2)))
        to_root[f"f{k}"] = to_root[parent] @ matrix(numbers)
    for target in to_root:
        for source in to_root:
            expected = np.linalg.inv(to_root[target]) @ to_root[source]
            np.testing.assert_allclose(buffer.lookup(target, source), expected, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_between_two_samples(seed, share):
    """A line, and the shorter of the two turns: scipy's."""
    rng = np.random.default_rng(seed)
    a, b = random_numbers(rng), random_numbers(rng)
    if rng.integers(2):
        b[3:] *= -1  # the same rotation
    buffer = FrameBuffer()
    buffer.put(stamped("base", "tool", a, 5.0))
    buffer.put(stamped("base", "tool", b, 7.0))
    when = round((5.0 + 2.0 * share) * 1e9)
    share = (when / 1e9 - 5.0) / 2.0
    T = buffer.lookup("base", "tool", when)
    np.testing.assert_allclose(T[:3, 3], (1 - share) * a[:3] + share * b[:3], atol=1e-9)
    turn = Slerp([0, 1], Rotation.from_quat([a[3:], b[3:]]))(min(max(share, 0.0), 1.0))
    assert (Rotation.from_matrix(T[:3, :3]).inv() * turn).magnitude() < 1e-7


def test_the_latest_is_the_last_time_that_all_of_the_way_is_known():
    buffer = FrameBuffer()
    for when in (1.0, 2.0, 3.0):
        buffer.put(stamped("base", "arm", (when, 0, 0, 0, 0, 0, 1), when))
    for when in (1.0, 2.5):
        buffer.put(stamped("arm", "tool", (0, when, 0, 0, 0, 0, 1), when))
    assert buffer.lookup("base", "tool")[:2, 3] == pytest.approx([2.5, 2.5])
    assert buffer.lookup("base", "arm")[0, 3] == 3.0


def test_samples_may_come_out_of_order():
    buffer = FrameBuffer()
    for when in (3.0, 1.0, 2.0, 2.0):
        buffer.put(stamped("base", "tool", (when**2, 0, 0, 0, 0, 0, 1), when))
    assert buffer.lookup("base", "tool", round(1.5 * SECOND))[0, 3] == pytest.approx(2.5)
    assert buffer.lookup("base", "tool", round(2.5 * SECOND))[0, 3] == pytest.approx(6.5)


@pytest.mark.parametrize(
    ("target", "source", "when", "sentence"),
    [
        ("base", "nowhere", 0, "'nowhere' is not known"),
        ("nowhere", "tool", 0, "'nowhere' is not known"),
        ("base", "island", 0, "'island' and 'base' are not connected"),
        ("base", "tool", 1, r"1\.000 s before the first"),
        ("base", "tool", 4, r"1\.000 s after the last"),
        ("base", "loop_a", 0, "form a loop"),
    ],
)
def test_what_is_not_known_is_said(target, source, when, sentence):
    buffer = FrameBuffer()
    for t in (2.0, 3.0):
        buffer.put(stamped("base", "tool", when=t))
    buffer.put(stamped("sea", "island"), static=True)
    buffer.put(stamped("loop_a", "loop_b"), static=True)
    buffer.put(stamped("loop_b", "loop_a"), static=True)
    with pytest.raises(FrameError, match=sentence):
        buffer.lookup(target, source, when * SECOND)


@pytest.mark.parametrize(
    "message",
    [
        stamped("", "a"),
        stamped("a", ""),
        stamped("a", "/a"),
        stamped("a", "b", (float("nan"), 0, 0, 0, 0, 0, 1)),
        stamped("a", "b", (0, 0, 0, 0, 0, 0, 0)),
        stamped("a", "b", (0, 0, 0, 0, 0, 0, 2)),
    ],
)
def test_what_is_no_transform_is_refused(message):
    buffer = FrameBuffer()
    with pytest.raises(InvalidInput):
        buffer.put(message)
    with pytest.raises(FrameError):
        buffer.lookup("a", "b")


def test_memory_is_bounded():
    buffer = FrameBuffer(seconds=5.0, most_frames=3, most_samples=100)
    for k in range(1000):
        buffer.put(stamped("base", "fast", (k, 0, 0, 0, 0, 0, 1), 10.0 + 0.001 * k))
    with pytest.raises(FrameError, match="before the first"):
        buffer.lookup("base", "fast", round(10.5 * SECOND))
    assert buffer.lookup("base", "fast")[0, 3] == 999
    for when in (20.0, 24.0, 26.0):
        buffer.put(stamped("base", "slow", when=when))
    with pytest.raises(FrameError, match="before the first"):
        buffer.lookup("base", "slow", round(20.5 * SECOND))
    buffer.put(stamped("base", "slow", (7, 0, 0, 0, 0, 0, 1), 1.0))  # long forgotten: dropped
    buffer.put(stamped("base", "third", when=1.0))
    with pytest.raises(InvalidInput, match="one frame more than 3"):
        buffer.put(stamped("base", "fourth", when=1.0))
    buffer.put(stamped("base", "third", when=2.0))


class Asked(KinNode[ParameterSet]):
    """Knows frames, and a place of its own."""

    def __init__(self, **arguments):
        super().__init__("asked", ParameterSet, **arguments)

    def configure(self):
        self.frames = Frames(self)


class Telling(KinNode[ParameterSet]):
    def __init__(self, **arguments):
        super().__init__("telling", ParameterSet, **arguments)

    def configure(self):
        self.broadcaster = Broadcaster(self)


def pose_in(frame, when=0.0):
    message = PoseStamped()
    message.header.frame_id = frame
    message.header.stamp = Time(sec=int(when))
    message.pose.position.x = 1.0
    message.pose.orientation.w = 1.0
    return message


@pytest.mark.node
def test_a_pose_in_any_frame(ros):
    """Fixed frames that were told before, moving ones as they come, over real DDS."""
    telling = ros.add(Telling)
    lifted = np.eye(4)
    lifted[2, 3] = 2.0
    telling.broadcaster.fix([make_transform("world", "base", lifted)])
    asked = ros.add(Asked)
    frames = asked.frames
    # Nobody has asked for another frame: nobody listens.
    assert ros.node.count_subscribers("/tf") == 0
    np.testing.assert_array_equal(frames.read_pose("p", pose_in(""), "base")[:3, 3], [1, 0, 0])
    np.testing.assert_array_equal(frames.read_pose("p", pose_in("base"), "base")[:3, 3], [1, 0, 0])
    assert ros.node.count_subscribers("/tf") == 0
    found = frames.read_pose("p", pose_in("world"), "base", wait=20.0)
    np.testing.assert_allclose(found[:3, 3], [1, 0, -2])
    telling.broadcaster.fix([make_transform("base", "table", lifted)])
    found = frames.read_pose("p", pose_in("table"), "world", wait=20.0)
    np.testing.assert_allclose(found[:3, 3], [1, 0, 4])

    wait_until(lambda: telling.broadcaster.heard)
    stop = threading.Event()

    def move():
        when = 100.0
        while not stop.wait(0.01):
            telling.broadcaster.send([stamped("table", "cup", (0, when, 0, 0, 0, 0, 1), when)])
            when += 0.5

    mover = threading.Thread(target=move)
    mover.start()
    try:
        found = frames.read_pose("p", pose_in("cup", 103.0), "table", wait=20.0)
    finally:
        stop.set()
        mover.join()
    np.testing.assert_allclose(found[:3, 3], [1, 103, 0])
    with pytest.raises(FrameError, match=r"^target\.header\.frame_id: the frame 'moon'"):
        frames.read_pose("target", pose_in("moon"), "base", wait=0.0)
    with pytest.raises(FrameError, match=r"^target\.header\.stamp: cup to base"):
        frames.read_pose("target", pose_in("cup", 1.0), "base", wait=0.0)


@pytest.mark.node
def test_a_clock_that_jumps_back_makes_it_forget_what_moves(ros):
    asked = ros.add(Asked, {"use_sim_time": True})
    clock = ros.node.create_publisher(Clock, "/clock", 10)

    def tick(seconds):
        clock.publish(Clock(clock=Time(sec=seconds)))

    def reached(seconds):
        tick(seconds)
        time.sleep(0.02)
        return asked.get_clock().now().nanoseconds == seconds * SECOND

    wait_until(lambda: reached(50))
    asked.frames.listen()
    wait_until(lambda: ros.node.count_subscribers("/tf") == 1)
    tf = ros.node.create_publisher(TFMessage, "/tf", 10)
    message = TFMessage(transforms=[stamped("base", "tool", when=50.0)])

    def known():
        try:
            asked.frames.transform("base", "tool")
        except FrameError:
            return False
        return True

    wait_until(lambda: tf.publish(message) or known())
    asked.frames.buffer.put(stamped("base", "bolt"), static=True)
    wait_until(lambda: reached(51))
    assert known()
    wait_until(lambda: reached(3))
    wait_until(lambda: not known())
    asked.frames.transform("base", "bolt")


@pytest.mark.node
def test_one_wrong_transform_does_not_hide_the_others(ros):
    asked = ros.add(Asked)
    asked.frames.listen()
    wait_until(lambda: ros.node.count_subscribers("/tf") == 1)
    tf = ros.node.create_publisher(TFMessage, "/tf", 10)
    bad = stamped("base", "bad", (float("inf"), 0, 0, 0, 0, 0, 1), 1.0)
    message = TFMessage(transforms=[bad, stamped("base", "good", when=1.0)])

    def known():
        tf.publish(message)
        try:
            return asked.frames.transform("base", "good") is not None
        except FrameError:
            return False

    wait_until(known)
    with pytest.raises(FrameError):
        asked.frames.transform("base", "bad")
