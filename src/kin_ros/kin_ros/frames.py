"""tf: a bounded buffer of transforms between frames, a listener that fills it, and a broadcaster.

A transform "from source to target" takes coordinates in the source frame to the target frame. Times
are those of the headers [ns], so that simulated time needs nothing of its own; when the clock jumps
back, what was heard is forgotten.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TransformStamped
from numpy.typing import NDArray
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from tf2_msgs.msg import TFMessage

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import inverse_transform, quaternion_to_matrix, transform
from kin_ros.poses import read_pose
from kin_ros.qos import LATCHED, profile

if TYPE_CHECKING:
    from kin_ros.node import KinNode

__all__ = ["Broadcaster", "FrameBuffer", "FrameError", "Frames", "fill_transform", "to_nanoseconds"]

Array = NDArray[np.float64]

#: Longest chain of frames between two that are related.
_DEEPEST = 1000
#: How long a transform may take to come once somebody has begun to listen [s].
_ARRIVAL = 1.0
#: Longest time between two looks while one waits for it [s].
_LOOK = 0.05

_TF = profile(100)
#: What each of many broadcasters said last.
_TF_STATIC = profile(100, latched=True)


class FrameError(InvalidInput):
    """Two frames whose relation at a time is not known."""


def to_nanoseconds(stamp: Any) -> int:
    """Return a stamp of a header as a number [ns]; 0 means the latest."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


class _Track:
    """One frame in its parent: samples in the order of their times."""

    __slots__ = ("parent", "samples", "static", "times")

    def __init__(self, parent: str, static: bool) -> None:
        self.parent = parent
        self.static = static
        self.times: list[int] = []
        self.samples: list[Array] = []


class FrameBuffer:
    """Transforms between frames over the last seconds; any thread may use it."""

    def __init__(
        self, *, seconds: float = 10.0, most_frames: int = 10_000, most_samples: int = 1000
    ) -> None:
        """Begin empty.

        Args:
            seconds: How far back a frame is remembered, from its newest sample [s].
            most_frames: Frames that are kept; further ones are refused.
            most_samples: Samples of one frame; the oldest go first.
        """
        self._span = round(seconds * 1e9)
        self._most_frames = most_frames
        self._most_samples = most_samples
        self._tracks: dict[str, _Track] = {}
        self._changed = threading.Condition()

    def clear(self) -> None:
        """Forget what moves; what is fixed stays."""
        with self._changed:
            self._tracks = {name: track for name, track in self._tracks.items() if track.static}

    def put(self, stamped: TransformStamped, *, static: bool = False) -> None:
        """Remember a transform.

        Raises:
            InvalidInput: It has no names, relates a frame to itself, is no transform, or is one
                frame too many.
        """
        parent = stamped.header.frame_id.removeprefix("/")
        child = stamped.child_frame_id.removeprefix("/")
        if not parent or not child or parent == child:
            raise InvalidInput("child_frame_id", f"relates {child!r} to {parent!r}")
        t, q = stamped.transform.translation, stamped.transform.rotation
        sample = np.empty(7)
        sample[:3] = checks.finite(f"{child}.translation", [t.x, t.y, t.z])
        sample[3:] = checks.quaternion(f"{child}.rotation", [q.x, q.y, q.z, q.w])
        now = 0 if static else to_nanoseconds(stamped.header.stamp)
        with self._changed:
            track = self._tracks.get(child)
            if track is None or (track.parent, track.static) != (parent, static):
                if track is None and len(self._tracks) >= self._most_frames:
                    raise InvalidInput(child, f"is one frame more than {self._most_frames}")
                track = self._tracks[child] = _Track(parent, static)
            self._insert(track, now, sample)
            self._changed.notify_all()

    def _insert(self, track: _Track, now: int, sample: Array) -> None:
        times, samples = track.times, track.samples
        if times and now < times[-1] - self._span:
            return  # older than what is remembered
        place = len(times) if not times or now > times[-1] else bisect_left(times, now)
        if place < len(times) and times[place] == now:
            samples[place] = sample
            return
        times.insert(place, now)
        samples.insert(place, sample)
        old = bisect_left(times, times[-1] - self._span)
        old = max(old, len(times) - self._most_samples)
        del times[:old], samples[:old]

    def lookup(self, target: str, source: str, stamp: int = 0) -> Array:
        """Return the transform from a source to a target frame, shape (4, 4) [m].

        Args:
            target: Frame in which coordinates are wanted.
            source: Frame in which coordinates are given.
            stamp: When [ns]; 0 for the latest time at which all of the way is known.

        Raises:
            FrameError: A frame is unknown, they are not connected, or not at that time.
        """
        target, source = target.removeprefix("/"), source.removeprefix("/")
        with self._changed:
            ups, downs = self._way(target, source)
            moving = [track for track in (*ups, *downs) if not track.static]
            if stamp == 0 and moving:
                stamp = min(track.times[-1] for track in moving)
            result = np.eye(4)
            for track in downs:
                result = result @ inverse_transform(self._sample(track, stamp, target, source))
            for track in reversed(ups):
                result = result @ self._sample(track, stamp, target, source)
        return result

    def wait(self, timeout: float) -> None:
        """Wait for something new, for so long at most [s]."""
        with self._changed:
            self._changed.wait(timeout)

    def _way(self, target: str, source: str) -> tuple[list[_Track], list[_Track]]:
        """The tracks from the source up to a common ancestor, and from the target up to it."""
        up, frames = self._ancestors(source)
        down, others = self._ancestors(target)
        known = {frame: k for k, frame in enumerate(frames)}
        for k, frame in enumerate(others):
            if frame in known:
                # From the target upwards each step is to be undone, the last one first.
                return up[: known[frame]], down[:k]
        for name, chain in ((source, up), (target, down)):
            if not chain and name not in {track.parent for track in self._tracks.values()}:
                raise FrameError("frame_id", f"the frame {checks.shown(name)} is not known to tf")
        raise FrameError(
            "frame_id", f"{checks.shown(source)} and {checks.shown(target)} are not connected in tf"
        )

    def _ancestors(self, frame: str) -> tuple[list[_Track], list[str]]:
        tracks: list[_Track] = []
        frames = [frame]
        while (track := self._tracks.get(frame)) is not None:
            tracks.append(track)
            frame = track.parent
            if frame in frames or len(frames) > _DEEPEST:
                raise FrameError("frame_id", f"the frames of tf form a loop at {frame!r}")
            frames.append(frame)
        return tracks, frames

    def _sample(self, track: _Track, stamp: int, target: str, source: str) -> Array:
        """Return one frame in its parent at a time, between two samples by interpolation."""
        if track.static:
            return _matrix(track.samples[-1])
        place = bisect_left(track.times, stamp)
        if place < len(track.times) and track.times[place] == stamp:
            return _matrix(track.samples[place])
        if place in (0, len(track.times)):
            gap = (stamp - track.times[0 if place == 0 else -1]) / 1e9
            words = f"{-gap:.3f} s before the first" if gap < 0 else f"{gap:.3f} s after the last"
            raise FrameError(
                "stamp", f"{source} to {target} is asked for {words} transform that tf has of it"
            )
        before, after = track.samples[place - 1], track.samples[place]
        first = track.times[place - 1]
        return _matrix(_between(before, after, (stamp - first) / (track.times[place] - first)))


def _matrix(sample: Array) -> Array:
    return np.asarray(transform(quaternion_to_matrix(sample[3:]), sample[:3]))


def _between(a: Array, b: Array, share: float) -> Array:
    """Return the pose at a share of the way from one to another: a line, and the shorter turn."""
    result = (1.0 - share) * a + share * b
    cosine = float(a[3:] @ b[3:])
    end = b[3:] if cosine >= 0.0 else -b[3:]
    angle = np.arccos(min(abs(cosine), 1.0))
    if angle > 1e-6:
        turn = np.sin((1.0 - share) * angle) * a[3:] + np.sin(share * angle) * end
    else:  # the chord is the arc
        turn = (1.0 - share) * a[3:] + share * end
    result[3:] = turn / np.linalg.norm(turn)
    return result


class Frames:
    """The transforms that tf knows, for the requests of a node.

    Nobody listens to tf before the first question about another frame than the node's own: a node
    that is never asked pays nothing for what the robots around it say.
    """

    def __init__(self, node: KinNode[Any], buffer: FrameBuffer | None = None) -> None:
        """Make it in ``configure``; it goes with the other resources of the node."""
        self._node = node
        self.buffer = buffer or FrameBuffer()
        self._listening = False
        self._starting = threading.Lock()
        self._jumps: Any = None

    def listen(self) -> None:
        """Begin to listen; any thread."""
        with self._starting:
            if self._listening:
                return
            self._listening = True
        executor = self._node.executor
        if executor is None:
            self._subscribe()
        else:
            executor.create_task(self._subscribe)

    def transform(self, target: str, source: str, stamp: int = 0, *, wait: float = 0.0) -> Array:
        """Return the transform from a source to a target frame, shape (4, 4) [m].

        Args:
            target: Frame in which coordinates are wanted.
            source: Frame in which coordinates are given; empty for the same.
            stamp: When [ns]; 0 for the latest.
            wait: How long it may take to come [s]; 0 on the executor, which would wait for itself.

        Raises:
            FrameError: tf does not know it.
        """
        if source.removeprefix("/") in ("", target.removeprefix("/")):
            return np.eye(4)
        self.listen()
        deadline = time.monotonic() + wait
        while True:
            try:
                return self.buffer.lookup(target, source, stamp)
            except FrameError:
                left = deadline - time.monotonic()
                if left <= 0.0:
                    raise
                self.buffer.wait(min(left, _LOOK))

    def read_pose(
        self, field: str, stamped: PoseStamped, base: str, *, wait: float = _ARRIVAL
    ) -> Array:
        """Return a pose that is given in any frame as a transform in the base frame, shape (4, 4).

        Args:
            field: Where it stands in the request, for errors.
            stamped: The pose; no frame at all means the base, a stamp of zero the latest.
            base: The frame in which it is wanted.
            wait: As for ``transform``.
        """
        pose = read_pose(f"{field}.pose", stamped.pose)
        frame, stamp = stamped.header.frame_id, to_nanoseconds(stamped.header.stamp)
        try:
            return self.transform(base, frame, stamp, wait=wait) @ pose
        except FrameError as error:
            raise FrameError(f"{field}.header.{error.field}", error.problem) from None

    def _subscribe(self) -> None:
        self._node.listen(TFMessage, "/tf", lambda message: self._take(message, False), _TF)
        self._node.listen(
            TFMessage, "/tf_static", lambda message: self._take(message, True), _TF_STATIC
        )
        threshold = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1))
        clock = self._node.get_clock()
        self._jumps = clock.create_jump_callback(
            threshold, post_callback=lambda _: self.buffer.clear()
        )
        self._node.on_release(self._jumps.unregister)

    def _take(self, message: TFMessage, static: bool) -> None:
        refused: InvalidInput | None = None
        for stamped in message.transforms:
            try:
                self.buffer.put(stamped, static=static)
            except InvalidInput as error:
                refused = error  # the others count
        if refused is not None:
            raise refused


def fill_transform(stamped: TransformStamped, numbers: Iterable[float]) -> None:
    """Write a translation [m] and a quaternion (x, y, z, w), seven numbers, into a message."""
    t, q = stamped.transform.translation, stamped.transform.rotation
    t.x, t.y, t.z, q.x, q.y, q.z, q.w = numbers


class Broadcaster:
    """Tells tf where frames are: what moves on /tf, what does not on /tf_static, for late ones too.

    What is fixed is one message with all of it, as much as was ever said: a listener that comes
    late gets only the last message.
    """

    def __init__(self, node: KinNode[Any]) -> None:
        """Make it in ``configure``."""
        self._moving = node.publish_to(TFMessage, "/tf", _TF)
        self._fixed = node.publish_to(TFMessage, "/tf_static", LATCHED)
        self._said: dict[str, TransformStamped] = {}

    @property
    def heard(self) -> bool:
        """Whether anybody listens to what moves."""
        return bool(self._moving.get_subscription_count() > 0)

    def send(self, transforms: list[TransformStamped]) -> None:
        """Publish frames that move."""
        if transforms:
            self._moving.publish(TFMessage(transforms=transforms))

    def fix(self, transforms: Iterable[TransformStamped]) -> None:
        """Publish frames that do not; the node must be active."""
        self._said.update((stamped.child_frame_id, stamped) for stamped in transforms)
        self._fixed.publish(TFMessage(transforms=list(self._said.values())))
