"""The node that shows robots to tf: descriptions, fixed and moving links, one root for all.

What the robot state publisher of ROS does for one robot in a process this does for several, so
that the demos of a whole stack cost one process. It listens to joint states and publishes /tf only
while somebody listens to that.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.urdf import load_urdf, read_origin
from kin_core.yamls import load_yaml
from kin_ros.frames import Broadcaster, to_nanoseconds
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.qos import LATCHED, SENSOR
from kin_ros.robot_state import Joints, LinkTransforms, make_transform

__all__ = ["RobotStateNode", "main"]

#: Time between two looks at who listens to tf [s].
_LOOK = 0.5
#: How long other topics of a robot may be silent before one of them alone is shown [s].
_SILENCE = 2.0
#: Messages of a topic that wait for those of the same moment from the others.
_KEPT = 16
#: Files of robots that say nothing to tf.
_WITHOUT_LINKS = (".yaml", ".yml", ".xml")
_KEYS = {"urdf", "description", "joint_states", "xyz", "rpy", "home", "rate"}


@dataclass(frozen=True, kw_only=True)
class RobotStateParameters(ParameterSet):
    """Parameters of the node."""

    robots_file: str = parameter(
        "", "YAML file of the robots; its folder holds their URDFs", read_only=True
    )
    robots: tuple[str, ...] = parameter(
        (),
        "robots of the file to show, URDF files, or the root frame; empty: as many as there are",
        read_only=True,
    )
    frame_prefix: str = parameter(
        "", "before the names of links in tf, such as robot1/", read_only=True
    )
    root_frame: str = parameter("world", "frame in which the robots stand", read_only=True)


class _Shown:
    """One robot that is shown, or a place without one.

    Attributes:
        description: Its URDF; empty for a place.
        topic: Where the description is published.
        recent: The last joints of each topic of joint states, by their stamps [ns].
        heard: When each topic last spoke, by the steady clock [s].
        links: Its links.
        fixed: Its place in the root frame, and the links that do not move.
        period: Least time between two of its transforms, by the steady clock [s].
        due: When the next one may be sent, by the steady clock [s].
    """

    def __init__(self, name: str, entry: Any, folder: Path, prefix: str, root: str) -> None:
        where = f"robots.{name}"
        if not isinstance(entry, dict):
            raise InvalidInput(where, "must be a mapping")
        unknown = sorted(set(map(str, entry)) - _KEYS)
        if unknown:
            raise InvalidInput(where, f"has the unknown key {unknown[0]!r}")
        self.description, base = "", name
        self.links: LinkTransforms | None = None
        home = entry.get("home", {})
        if not isinstance(home, dict):
            raise InvalidInput(f"{where}.home", "must be a mapping of joints to positions")
        if "urdf" in entry:
            file = folder / checks.title(f"{where}.urdf", entry["urdf"])
            urdf = load_urdf(file)
            self.description, base = file.read_text(), urdf.root
            self.links = LinkTransforms(urdf, prefix, home)
        self.topic = checks.title(
            f"{where}.description", entry.get("description", f"{name}/robot_description")
        )
        sources = entry.get("joint_states", [])
        sources = [sources] if isinstance(sources, str) else sources
        topics = [checks.title(f"{where}.joint_states", topic) for topic in sources]
        self.recent: dict[str, dict[int, Joints]] = {topic: {} for topic in topics}
        self.heard = dict.fromkeys(topics, -math.inf)
        place = read_origin({k: entry[k] for k in ("xyz", "rpy") if k in entry}, where)
        self.fixed = [make_transform(root, prefix + base, place)]
        if self.links is not None:
            self.fixed += self.links.fixed
        self.period = 1.0 / checks.within(f"{where}.rate", entry.get("rate", 20.0), 0.1, 1e3)
        self.due = -math.inf


class RobotStateNode(KinNode[RobotStateParameters]):
    """Publishes the descriptions and the transforms of some robots."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("robot_states", RobotStateParameters, **node_arguments)

    def configure(self) -> None:
        """Read the robots, make topics."""
        p = self.parameters
        file = Path(p.robots_file)
        content = load_yaml(file, name=str(file))
        robots = content.get("robots") if isinstance(content, dict) else None
        if not isinstance(robots, dict) or not robots:
            raise InvalidInput(str(file), "must hold a mapping 'robots'")
        shown = [
            _Shown(name, _entry(robots, name), file.parent, p.frame_prefix, p.root_frame)
            for name in p.robots or tuple(robots)
            if name != p.root_frame and Path(name).suffix not in _WITHOUT_LINKS
        ]
        self._fixed = [fixed for one in shown for fixed in one.fixed]
        self._robots = [(one, one.links) for one in shown if one.links is not None]
        self._broadcaster = Broadcaster(self)
        self._descriptions = [
            (self.publish_to(String, robot.topic, LATCHED), robot.description)
            for robot, _ in self._robots
        ]
        self._subscriptions: list[Any] = []
        self.every(_LOOK, self._look, steady=True)

    def activate(self) -> None:
        """Say what does not change: descriptions and fixed links."""
        for publisher, description in self._descriptions:
            publisher.publish(String(data=description))
        self._broadcaster.fix(self._fixed)

    def deactivate(self) -> None:
        """Listen to nobody."""
        self._listen(False)

    def _look(self) -> None:
        """Listen to joint states while somebody listens to tf; show robots that stand still."""
        heard = self._broadcaster.heard
        self._listen(heard)
        if heard:
            now = self.get_clock().now().to_msg()
            for robot, links in self._robots:
                if not any(robot.recent.values()):
                    self._broadcaster.send(links.messages(now))

    def _listen(self, wanted: bool) -> None:
        if wanted == bool(self._subscriptions):
            return
        for subscription in self._subscriptions:
            self.destroy_subscription(subscription)
        for robot, links in self._robots:  # what was heard before may no longer be true
            for recent in robot.recent.values():
                recent.clear()
            links.forget()
        self._subscriptions = [
            self.listen(JointState, topic, partial(self._take, robot, links, topic), SENSOR)
            for robot, links in self._robots
            for topic in robot.recent
            if wanted
        ]

    def _take(self, robot: _Shown, links: LinkTransforms, topic: str, message: JointState) -> None:
        """Remember joints, and publish their robot unless it was just now.

        If several topics tell of one robot, messages of the same stamp belong together.
        """
        joints = links.read(message)
        if not len(joints[0]):
            return
        steady, stamp = time.monotonic(), message.header.stamp
        if not (stamp.sec or stamp.nanosec):
            stamp = self.get_clock().now().to_msg()
        key, recent = to_nanoseconds(stamp), robot.recent[topic]
        robot.heard[topic] = steady
        recent[key] = joints
        if len(recent) > _KEPT:
            del recent[next(iter(recent))]
        if steady < robot.due:
            return
        spoken = [robot.recent[t] for t, when in robot.heard.items() if steady - when <= _SILENCE]
        if all(key in one for one in spoken):
            for one in spoken:
                places, values = one[key]
                links.positions[places] = values
            robot.due = steady + robot.period
            self._broadcaster.send(links.messages(stamp))


def _entry(robots: dict[str, Any], name: str) -> Any:
    """What the file says of a robot; one that is named by the path of its URDF is its "file"."""
    if Path(name).suffix == ".urdf":
        return {**robots.get("file", {}), "urdf": str(Path(name).absolute())}
    return robots[checks.one_of("robots", name, robots)]


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(RobotStateNode, args)
