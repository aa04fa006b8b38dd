"""What tests of bags share: bags on disk, commands, and a node that adds."""

import array
import os
import subprocess
import sys

import numpy as np
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.msg import NodeState, StackState
from kin_interfaces.srv import CheckReady
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from kin_bags.record import to_bag_qos
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_ros.qos import LATCHED, SENSOR, STATE

STORAGES = ["mcap", "sqlite3"]


def joints(number):
    message = JointState(name=["a"], position=array.array("d", [number, np.nan]))
    message.header.stamp.sec = number
    return bytes(serialize_message(message))


def write(path, count=100, storage="mcap", **options):
    with BagWriter(path, storage=storage, **options) as writer:
        channel = writer.channel("/joints", "sensor_msgs/msg/JointState", (to_bag_qos(SENSOR),))
        other = writer.channel("/state", "kin_interfaces/msg/StackState", (to_bag_qos(LATCHED),))
        for number in range(count):
            writer.write(channel, 1_000_000_000 + number * 10_000_000, joints(number))
        state = StackState(nodes=[NodeState(name="/n", restarts=3)], message="x")
        writer.write(other, 1_500_000_001, bytes(serialize_message(state)))
    return path


QUESTIONS = [
    {"service": "/stack_monitor/check_ready", "type": "kin_interfaces/srv/CheckReady"},
    {
        "service": "/stack_monitor/check_ready",
        "type": "kin_interfaces/srv/CheckReady",
        "request": {"nodes": ["ghost"]},
    },
    {
        "service": "/stack_monitor/check_ready",
        "type": "kin_interfaces/srv/CheckReady",
        "request": {"wait": -1.0},
    },
]


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "kin_bags.command", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def wait_for_line(process, text):
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"{text!r} was not said")


class Adder(KinNode):
    """A service, an action and a topic that answer with sums; the gain can be changed."""

    def __init__(self, **arguments):
        super().__init__("adder", ParameterSet, **arguments)
        self.gain = 1.0
        self.asked = []

    def configure(self):
        self.out = self.publish_to(JointState, "sums", STATE)
        self.listen(JointState, "numbers", self._on_numbers, STATE)
        self.serve(CheckReady, "~/check", self._check)
        self.serve_action(
            SweepWorkspace, "~/sweep", self._sweep, lambda _: SweepWorkspace.Feedback()
        )

    def _on_numbers(self, message):
        if not message.position:
            raise InvalidInput("position", "is empty")
        total = self.gain * float(np.sum(message.position))
        self.out.publish(JointState(name=message.name, position=[total]))

    def _check(self, request, task):
        self.asked.append("check")
        if request.wait < 0.0:
            raise InvalidInput("wait", "must not be negative")
        return CheckReady.Response(ready=True, missing=[f"{self.gain * request.wait:g}"])

    def _sweep(self, goal, task):
        self.asked.append("sweep")
        if 0 in goal.counts:
            raise InvalidInput("counts", "must be positive")
        task.progress(0.5, "half")
        return SweepWorkspace.Result(
            total=int(np.prod(goal.counts)), volume=self.gain * goal.upper.x
        )


ADDER_QUESTIONS = [
    {"service": "/adder/check", "type": "kin_interfaces/srv/CheckReady", "request": {"wait": 2.0}},
    {"service": "/adder/check", "type": "kin_interfaces/srv/CheckReady", "request": {"wait": -1.0}},
    {
        "action": "/adder/sweep",
        "type": "kin_interfaces/action/SweepWorkspace",
        "request": {"counts": [2, 3, 4], "upper": {"x": 0.5}},
    },
    {
        "action": "/adder/sweep",
        "type": "kin_interfaces/action/SweepWorkspace",
        "request": {"counts": [0, 3, 4]},
    },
    {
        "topic": "/numbers",
        "type": "sensor_msgs/msg/JointState",
        "message": {"name": ["a"], "position": [1.0, 2.0, 3.5]},
        "outputs": {"/sums": "sensor_msgs/msg/JointState"},
    },
]
