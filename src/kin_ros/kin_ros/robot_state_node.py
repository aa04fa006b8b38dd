"""The node that shows robots to tf: descriptions, fixed and moving links, one root for all.

What the robot state publisher of ROS does for one robot in a process this does for several, so
that the demos of a whole stack cost one process. It listens to joint states and publishes /tf only
while somebody listens to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import rpy_to_matrix, transform
from kin_core.urdf import load_urdf
from kin_core.yamls import load_yaml
from kin_ros.frames import Broadcaster, to_nanoseconds
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.qos import LATCHED, SENSOR
from kin_ros.robot_state import LinkTransforms, make_transform

__all__ = ["RobotStateNode", "main"]

#: Time between two looks at who listens to tf [s].
_LOOK = 0.5
#: How long other topics of a robot may be silent before one of them alone is shown [ns].
_SILENCE = 2_000_000_000
_KEYS = {"urdf", "description", "joint_states", "xyz", "rpy", "home", "rate"}


@dataclass(frozen=True, kw_only=True)
class RobotStateParameters(ParameterSet):
    """Parameters of the node."""

    robots_file: str = parameter(
        "", "YAML file of the robots; its folder holds their URDFs", read_only=True
    )
    robots: tuple[str, ...] = parameter(
        (),
        "robots of the file to show, or the root frame; empty: as many as there are",
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
        stamps: When each topic of joint states last spoke [ns]; 0 for never.
        links: Its links.
        fixed: Its place in the root frame, and the links that do not move.
        period: Least time between two of its transforms [ns].
        due: When the next one may be sent, in the node's clock [ns].
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
        self.stamps = {checks.title(f"{where}.joint_states", topic): 0 for topic in sources}
        xyz = checks.shape(f"{where}.xyz", entry.get("xyz", (0.0, 0.0, 0.0)), (3,))
        rpy = checks.shape(f"{where}.rpy", entry.get("rpy", (0.0, 0.0, 0.0)), (3,))
        place = np.asarray(transform(rpy_to_matrix(rpy[0], rpy[1], rpy[2]), xyz))
        self.fixed = [make_transform(root, prefix + base, place)]
        if self.links is not None:
            self.fixed += self.links.fixed
        self.period = round(1e9 / checks.within(f"{where}.rate", entry.get("rate", 20.0), 0.1, 1e3))
        self.due = 0


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
            _Shown(name, robots[checks.one_of("robots", name, robots)], file.parent,
                   p.frame_prefix, p.root_frame)
            for name in p.robots or tuple(robots)
            if name != p.root_frame
        ]  # fmt: skip
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
                if not any(robot.stamps.values()):
                    self._broadcaster.send(links.messages(now))

    def _listen(self, wanted: bool) -> None:
        if wanted == bool(self._subscriptions):
            return
        for subscription in self._subscriptions:
            self.destroy_subscription(subscription)
        for robot, links in self._robots:  # what was heard before may no longer be true
            robot.stamps = dict.fromkeys(robot.stamps, 0)
            links.forget()
        self._subscriptions = [
            self.listen(JointState, topic, partial(self._take, robot, links, topic), SENSOR)
            for robot, links in self._robots
            for topic in robot.stamps
            if wanted
        ]

    def _take(self, robot: _Shown, links: LinkTransforms, topic: str, message: JointState) -> None:
        """Remember joints, and publish their robot unless it was just now.

        If several topics tell of one robot, their messages belong together by their stamps.
        """
        now = self.get_clock().now()
        ahead = robot.due - now.nanoseconds
        # A clock that has jumped back does not make it wait for the old time.
        if 0 < ahead <= robot.period or not links.take(message):
            return
        stamp = message.header.stamp
        if not (stamp.sec or stamp.nanosec):
            stamp = now.to_msg()
        robot.stamps[topic] = to_nanoseconds(stamp)
        newest = max(robot.stamps.values())
        if all(one == newest or newest - one > _SILENCE for one in robot.stamps.values()):
            robot.due = now.nanoseconds + robot.period
            self._broadcaster.send(links.messages(stamp))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(RobotStateNode, args)
