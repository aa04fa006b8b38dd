"""The standard doors of the stack, asked by a client that knows standard messages alone.

A door counts as answered if what comes through it is right: links are where their chain puts them,
inverse kinematics lead back to the pose that was asked for. One that is not there does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import MoveItErrorCodes
from moveit_msgs.srv import GetCartesianPath, GetPositionFK, GetPositionIK
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from benchmarks.harness import Bench
from kin_core.errors import KinError
from kin_core.urdf import load_urdf
from kin_ros.client import Client
from kin_ros.frames import FrameBuffer
from kin_ros.poses import read_pose
from kin_ros.qos import LATCHED, SENSOR, STATE
from kin_testing.running_stack import RunningStack

__all__ = ["count_doors", "ik_question", "tf_share"]

#: Topics of descriptions, and of joint states, which every demo robot has.
DESCRIPTIONS = (
    "/robot_description",
    "/ft_controller/robot_description",
    "/hier_ik/robot_description",
)
STATES = ("/joint_states", "/hier_ik/joint_states", "/continuum_ik/joint_states")


@dataclass(frozen=True)
class Arm:
    """A robot whose kinematics a node answers for.

    Attributes:
        node: The node.
        link: The link to ask about.
        positions: A posture within its limits, by the names of joints [rad or m].
    """

    node: str
    link: str
    positions: dict[str, float]


ARMS = (
    Arm(
        "/kin_solvers",
        "demo_arm_tool",
        {
            "demo_pan": 0.3,
            "demo_lift": 0.4,
            "demo_elbow": 0.9,
            "demo_roll": 0.2,
            "demo_bend": 0.6,
            "demo_turn": -0.4,
        },
    ),
    Arm("/hier_ik", "P15", {}),
)


def forward(client: Client, arm: Arm, positions: dict[str, float]) -> PoseStamped:
    """Where forward kinematics put the link."""
    request = GetPositionFK.Request(fk_link_names=[arm.link])
    request.robot_state.joint_state = JointState(
        name=list(positions), position=list(positions.values())
    )
    answer = client.call(f"{arm.node}/compute_fk", GetPositionFK, request, wait=5.0, timeout=60.0)
    if answer.error_code.val != MoveItErrorCodes.SUCCESS:
        raise KinError(answer.error_code.message)
    return answer.pose_stamped[0]


def ik_question(client: Client, arm: Arm = ARMS[0]) -> GetPositionIK.Request:
    """The pose of a known posture, with a seed beside it."""
    request = GetPositionIK.Request()
    asked = request.ik_request
    asked.ik_link_name = arm.link
    asked.pose_stamped = forward(client, arm, arm.positions)
    asked.robot_state.joint_state = JointState(
        name=list(arm.positions), position=[q + 0.05 for q in arm.positions.values()]
    )
    return request


def _inverse(client: Client, arm: Arm) -> bool:
    """Whether inverse kinematics lead back to the pose, and near the seed."""
    request = ik_question(client, arm)
    request.ik_request.pose_stamped.pose.position.x += 1e-3
    answer = client.call(f"{arm.node}/compute_ik", GetPositionIK, request, wait=5.0, timeout=60.0)
    if answer.error_code.val != MoveItErrorCodes.SUCCESS:
        return False
    state = answer.solution.joint_state
    found = dict(zip(state.name, state.position, strict=True))
    back = read_pose("back", forward(client, arm, found).pose)
    wanted = read_pose("wanted", request.ik_request.pose_stamped.pose)
    near = all(abs(found[name] - q) < 0.2 for name, q in arm.positions.items())
    return near and bool(np.abs(back - wanted).max() < 1e-5)


def _path(client: Client, arm: Arm) -> bool:
    """Whether a centimetre of a straight line is followed to its end."""
    start = forward(client, arm, arm.positions)
    request = GetCartesianPath.Request(link_name=arm.link, header=start.header, max_step=0.002)
    request.start_state.joint_state = JointState(
        name=list(arm.positions), position=list(arm.positions.values())
    )
    start.pose.position.z -= 0.01
    request.waypoints = [start.pose]
    answer = client.call(
        f"{arm.node}/compute_cartesian_path", GetCartesianPath, request, wait=5.0, timeout=60.0
    )
    if answer.error_code.val != MoveItErrorCodes.SUCCESS or answer.fraction < 1.0:
        return False
    trajectory = answer.solution.joint_trajectory
    last = dict(zip(trajectory.joint_names, trajectory.points[-1].positions, strict=True))
    back = read_pose("back", forward(client, arm, {**arm.positions, **last}).pose)
    return bool(np.abs(back - read_pose("wanted", start.pose)).max() < 1e-5)


def _heard(client: Client, kind: Any, topic: str, qos: Any, enough: int = 1) -> list[Any]:
    """Messages of a topic; none if nobody publishes it."""
    heard: list[Any] = []
    subscription = client.node.create_subscription(kind, topic, heard.append, qos)
    client.spin_until(lambda: len(heard) >= enough, 10.0)
    client.node.destroy_subscription(subscription)
    return heard


def _in_tf(client: Client, topic: str) -> bool:
    """Whether every link of a described robot has its way to the root."""
    texts = _heard(client, String, topic, LATCHED)
    if not texts:
        return False
    urdf = load_urdf(texts[-1].data)
    buffer = FrameBuffer()
    heard: list[tuple[TFMessage, bool]] = []
    subscriptions = [
        client.node.create_subscription(
            TFMessage, name, lambda m, static=static: heard.append((m, static)), qos
        )
        for name, static, qos in (("/tf_static", True, LATCHED), ("/tf", False, STATE))
    ]

    def known() -> bool:
        while heard:
            message, static = heard.pop()
            for stamped in message.transforms:
                buffer.put(stamped, static=static)
        try:
            return all(buffer.lookup("world", link) is not None for link in urdf.links)
        except KinError:
            return False

    found = client.spin_until(known, 10.0)
    for subscription in subscriptions:
        client.node.destroy_subscription(subscription)
    return found


def _doors(client: Client) -> Iterator[tuple[str, Callable[[], bool]]]:
    for topic in DESCRIPTIONS:
        yield f"{topic}, its links in tf", lambda topic=topic: _in_tf(client, topic)
    for topic in STATES:
        yield topic, lambda topic=topic: bool(_heard(client, JointState, topic, SENSOR))
    for arm in ARMS:
        for name, right in (
            ("compute_fk", lambda c, arm: bool(forward(c, arm, arm.positions))),
            ("compute_ik", _inverse),
            ("compute_cartesian_path", _path),
        ):
            yield f"{arm.node}/{name}", lambda right=right, arm=arm: right(client, arm)


def count_doors(bench: Bench, stack: RunningStack) -> None:
    """How many of the doors give right answers."""
    rows = []
    for name, right in _doors(stack.client):
        try:
            rows.append((name, "right" if right() else "wrong"))
        except KinError as error:
            rows.append((name, str(error)[:80]))
    bench.table("standard doors", ("door", "answer"), rows)
    answered = sum(answer == "right" for _, answer in rows)
    bench.result("doors_answered", answered, "", f"of {len(rows)} standard doors")


def tf_share(bench: Bench, stack: RunningStack) -> None:
    """What it costs to show all demo robots to one listener of tf."""
    heard = [0]

    def count(message: TFMessage) -> None:
        heard[0] += len(message.transforms)

    node = stack.client.node
    subscription = node.create_subscription(TFMessage, "/tf", count, STATE)
    stack.client.spin_until(lambda: heard[0] > 0, 30.0)
    stack.client.spin_until(lambda: False, 2.0)
    process = psutil.Process(stack.pid("/robot_states"))
    seconds = 3.0 if bench.quick else 20.0
    before, start, frames = sum(process.cpu_times()[:2]), time.monotonic(), heard[0]
    stack.client.spin_until(lambda: False, seconds)
    elapsed = time.monotonic() - start
    share = (sum(process.cpu_times()[:2]) - before) / elapsed
    rate = (heard[0] - frames) / elapsed
    node.destroy_subscription(subscription)
    bench.result("tf_core_share", share, "", f"of one core, for {rate:.0f} transforms a second")
