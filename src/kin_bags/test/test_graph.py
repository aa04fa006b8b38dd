"""Bags and a running graph: record, play, regress over DDS and without it."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Time
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.msg import StackState
from kin_interfaces.srv import CheckReady
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_bags.ask import read_exchanges, record_exchanges
from kin_bags.command import main
from kin_bags.compare import Tolerances
from kin_bags.core import CoreTarget
from kin_bags.reader import Selection, open_bag
from kin_bags.record import to_bag_qos
from kin_bags.regress import regress
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_monitor.node import StackMonitor
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_ros.qos import LATCHED, SENSOR, STATE
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node

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
TOLERANCES = {
    "/stack_monitor/check_ready/_response": {
        "fields": {"status.solve_time": "ignore", "status.residual": "ignore"}
    }
}


@pytest.fixture
def domain(ros, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros.domain))
    return ros


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


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_record_a_running_graph(domain, tmp_path, ending):
    ros = domain
    path = tmp_path / "b"
    first = ros.node.create_publisher(String, "/first", LATCHED)
    first.publish(String(data="kept for late readers"))
    process = start("record", "-o", path)
    wait_for_line(process, "recording /first")
    later = ros.node.create_publisher(JointState, "/later", SENSOR)  # appears while it records
    wait_for_line(process, "recording /later")
    wait_until(lambda: later.get_subscription_count() > 0, 20.0, "the recorder")
    for number in range(20):
        message = JointState()
        message.header.stamp.sec = number
        later.publish(message)
        time.sleep(0.005)
    time.sleep(2.5 if ending == signal.SIGKILL else 0.3)  # a kill may take what is not flushed
    process.send_signal(ending)
    process.stderr.close()
    code = process.wait(30)
    assert code == (-signal.SIGKILL if ending == signal.SIGKILL else 0)
    with open_bag(path) as bag:
        records = list(bag.records())
        texts = [bag.types.decode(r.type, r.raw).data for r in records if r.topic == "/first"]
        assert texts == ["kept for late readers"]
        seconds = [
            bag.types.decode(r.type, r.raw).header.stamp.sec for r in records if r.topic == "/later"
        ]
        assert seconds == list(range(20))
        qos = {c.topic: c.ext.offered_qos_profiles[0] for c in bag.connections}
        assert qos["/later"].reliability.name == "BEST_EFFORT"
        assert qos["/first"].durability.name == "TRANSIENT_LOCAL"


def test_record_and_play_back(domain, tmp_path):
    ros = domain
    path = tmp_path / "b"
    publisher = ros.node.create_publisher(String, "/words", 200)  # for a reader that is behind
    process = start("record", "/words", "-o", path, "--storage", "sqlite3")
    wait_for_line(process, "recording /words")
    wait_until(lambda: publisher.get_subscription_count() > 0, 20.0, "the recorder")
    for number in range(200):
        publisher.publish(String(data=str(number)))
    wait_until(lambda: publisher.wait_for_all_acked(), 20.0, "delivery")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    ros.node.destroy_publisher(publisher)
    heard = ros.listen(String, "/again", 1000)
    clock = ros.listen(Clock, "/clock", 1000)
    assert main(["replay", str(path), "--remap", "/words:=/again", "--rate", "0", "--clock"]) == 0
    wait_until(lambda: len(heard) >= 200, 20.0, "all messages")
    assert [message.data for message in heard] == [str(number) for number in range(200)]
    assert clock
    assert main(["replay", str(path), "--topics", "/nope"]) == 2


def test_regress_a_running_node_and_without_dds(domain, tmp_path, capsys):
    ros = domain
    ros.add(StackMonitor)
    path, tolerances = tmp_path / "golden", tmp_path / "t.yaml"
    questions = tmp_path / "q.yaml"
    questions.write_text(yaml.safe_dump(QUESTIONS))
    tolerances.write_text(yaml.safe_dump(TOLERANCES))
    assert main(["ask", str(path), str(questions)]) == 0
    assert main(["regress", str(path), str(tolerances)]) == 0
    out = capsys.readouterr().out
    assert "3 messages and requests replayed" in out
    assert "verdict: as expected" in out
    # Stricter: the time that an answer took is never the same twice.
    tolerances.write_text("/stack_monitor/check_ready/_response: {}\n")
    assert main(["regress", str(path), str(tolerances), "--plot", str(tmp_path / "p.png")]) == 1
    out = capsys.readouterr().out
    assert "status.solve_time" in out
    assert "first difference" in out
    assert (tmp_path / "p.png").exists()


def test_accept_shows_what_changes_and_makes_it_the_baseline(domain, tmp_path, capsys):
    ros = domain
    ros.add(StackMonitor, {"expected": ["adder"]})
    path, tolerances = tmp_path / "golden", tmp_path / "t.yaml"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[:1]))
    tolerances.write_text(yaml.safe_dump(TOLERANCES))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    ros.add(Adder)
    wait_until(
        lambda: ros.call(CheckReady, "/stack_monitor/check_ready", CheckReady.Request()).ready
    )
    assert main(["regress", str(path), str(tolerances)]) == 1
    assert "ready: expected False, got True" in capsys.readouterr().out
    before = shutil.copytree(path, tmp_path / "before")
    assert main(["regress", str(path), str(tolerances), "--accept"]) == 0
    out = capsys.readouterr().out
    assert "ready: expected False, got True" in out
    assert "accepted" in out
    assert main(["regress", str(path), str(tolerances)]) == 0
    assert main(["regress", str(before), str(tolerances)]) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["before", "golden", "q.yaml", "t.yaml"]


def test_node_that_is_not_there(domain, tmp_path, capsys):
    ros = domain
    node = ros.add(StackMonitor)
    path, tolerances = tmp_path / "golden", tmp_path / "t.yaml"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[:1]))
    tolerances.write_text(yaml.safe_dump(TOLERANCES))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    ros.run_on(node, node.trigger_deactivate)
    assert main(["regress", str(path), str(tolerances)]) == 1
    assert "is not active" in capsys.readouterr().out


def test_topics_regress_in_lock_step(domain, tmp_path):
    """Outputs that a node publishes are compared message by message."""
    ros = domain
    echo = ros.node.create_publisher(String, "/out", 100)
    gain = ["x"]
    ros.node.create_subscription(
        String, "/in", lambda m: echo.publish(String(data=m.data + gain[0])), 100
    )
    path = tmp_path / "b"
    process = start("record", "/in", "/out", "-o", path)
    source = ros.node.create_publisher(String, "/in", 100)
    wait_for_line(process, "recording /in")
    wait_until(lambda: source.get_subscription_count() >= 2, 20.0, "both listeners")
    wait_until(lambda: echo.get_subscription_count() >= 1, 20.0, "the recorder")
    for number in range(10):
        source.publish(String(data=str(number)))
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    ros.node.destroy_publisher(source)
    tolerances = tmp_path / "t.yaml"
    tolerances.write_text("/out: {}\n")
    assert main(["regress", str(path), str(tolerances)]) == 0
    gain[0] = "y"
    assert main(["regress", str(path), str(tolerances)]) == 1


def test_core_replay_needs_no_running_node(tmp_path, capsys):
    """Messages go straight into a node class; only what needs no timer can be asked."""
    from kin_bags.core import CoreTarget, find_node_class

    target = CoreTarget([find_node_class("kin_monitor.node:StackMonitor")])
    try:
        (node,) = target.nodes
        assert set(node.services_held) == {"/stack_monitor/check_ready"}
        (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[2:]))
        from kin_bags.ask import read_exchanges

        (question,) = read_exchanges(yaml.safe_load((tmp_path / "q.yaml").read_text()), "q")
        from kin_interfaces.srv import CheckReady
        from rclpy.serialization import deserialize_message, serialize_message

        raw = target.ask(question.exchange, bytes(serialize_message(question.request)))
        answer = deserialize_message(raw, CheckReady.Response)
        assert answer.status.code == answer.status.INVALID_INPUT
        assert "wait" in answer.status.message
        node.timers_held[0]()
        ((topic, kind, _),) = target.collect({})
        assert (topic, kind) == ("/stack_state", "kin_interfaces/msg/StackState")
    finally:
        target.close()
    assert StackState is not None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["info", "/no/such/bag"], "no such bag"),
        (["regress", "/no/such/bag", "/no/such/file"], "/no/such/file"),
        (["repair", "/no/such/bag"], "no such bag"),
        (["ask", "/tmp/never-made", "/no/such/file"], "/no/such/file"),
    ],
)
def test_bad_input_is_exit_2(words, sentence, capsys):
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], ["nope"], ["replay"], ["replay", "b", "--rate", "-1"], ["replay", "b", "--remap", "x"]],
)
def test_usage_errors_are_exit_2(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


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
ADDER_TOLERANCES = {
    "/adder/check/_response": {"fields": {"status.solve_time": "ignore"}},
    "/adder/sweep/_result": {"absolute": 1e-9, "fields": {"status.solve_time": "ignore"}},
    "/sums": {"absolute": 1e-9, "fields": {"header.*": "ignore"}},
}


def test_services_actions_and_topics_regress_over_dds(domain, tmp_path, capsys):
    ros = domain
    node = ros.add(Adder)
    path, tolerances = tmp_path / "b", tmp_path / "t.yaml"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(ADDER_QUESTIONS))
    tolerances.write_text(yaml.safe_dump(ADDER_TOLERANCES))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    with open_bag(path) as bag:
        decoded = [(r.topic, bag.types.decode(r.type, r.raw)) for r in bag.records()]
    results = [message for topic, message in decoded if topic == "/adder/sweep/_result"]
    assert [r.status.code for r in results] == [0, 1]
    assert (results[0].total, results[0].volume) == (24, 0.5)
    assert [m.counts.tolist() for topic, m in decoded if topic == "/adder/sweep/_goal"] == [
        [2, 3, 4],
        [0, 3, 4],
    ]
    assert [m.position.tolist() for topic, m in decoded if topic == "/sums"] == [[6.5]]
    assert main(["regress", str(path), str(tolerances)]) == 0
    capsys.readouterr()
    node.gain = 1.0 + 1e-8  # ten times what is allowed
    assert main(["regress", str(path), str(tolerances)]) == 1
    out = capsys.readouterr().out
    assert "/adder/sweep/_result message 0, volume: expected 0.5" in out
    assert "/sums" in out
    # A replay asks too, and leaves out what is not wanted.
    node.asked.clear()
    assert main(["replay", str(path), "--rate", "0", "--exclude", "/adder/check"]) == 0
    assert node.asked == ["sweep", "sweep"]


def test_replay_in_lock_step_keeps_what_comes_back(domain, tmp_path, capsys):
    """What a running node publishes is not sent to it, but awaited and kept."""
    ros = domain
    node = ros.add(Adder)
    path, again = tmp_path / "b", tmp_path / "again"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(ADDER_QUESTIONS))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    node.gain = 3.0
    assert main(["replay", str(path), "--lock-step", "--clock", "-o", str(again)]) == 0
    assert "5 messages and requests were sent, 5 came back" in capsys.readouterr().err
    with open_bag(again) as bag:
        decoded = [(r.topic, bag.types.decode(r.type, r.raw)) for r in bag.records()]
    assert [m.position.tolist() for topic, m in decoded if topic == "/sums"] == [[19.5]]
    assert [m.volume for topic, m in decoded if topic == "/adder/sweep/_result"] == [1.5, 0.0]
    assert main(["replay", str(path), "-o", str(tmp_path / "no")]) == 2


def test_replay_straight_into_a_node_class(tmp_path, capsys):
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[2:]))
    core = ["--core", "kin_monitor.node:StackMonitor"]
    assert main(["ask", str(tmp_path / "b"), str(tmp_path / "q.yaml"), *core]) == 0
    assert main(["replay", str(tmp_path / "b"), "-o", str(tmp_path / "new"), *core]) == 0
    assert "1 messages and requests were sent, 1 came back" in capsys.readouterr().err
    with open_bag(tmp_path / "new") as bag:
        (record,) = bag.records()
        assert bag.types.decode(record.type, record.raw).status.code == 1


def test_services_actions_and_topics_regress_without_dds(tmp_path):
    questions = read_exchanges(ADDER_QUESTIONS, "q")
    target = CoreTarget([Adder])
    try:
        with BagWriter(tmp_path / "b") as writer:
            assert record_exchanges(writer, target, questions, ["/sums"]) == len(questions)
        tolerances = Tolerances(ADDER_TOLERANCES)
        with open_bag(tmp_path / "b") as bag:
            assert regress(bag, target, tolerances).good
            (node,) = target.nodes
            node.gain = 1.0 + 1e-8
            verdict = regress(bag, target, tolerances).verdict
            assert {d.topic for d in verdict.differences} == {"/adder/sweep/_result", "/sums"}
    finally:
        target.close()


def test_a_bag_is_replayed_into_a_node_of_another_name(domain, tmp_path):
    ros = domain
    ros.add(Adder, {}, "/one")
    questions = [
        {**entry, kind: f"/one{entry[kind]}"}
        for entry in ADDER_QUESTIONS[:4]
        for kind in ("service", "action")
        if kind in entry
    ]
    path, tolerances = tmp_path / "b", tmp_path / "t.yaml"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(questions))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    other = ros.add(Adder, {}, "/two")
    tolerances.write_text(
        yaml.safe_dump({f"/two{name}": rule for name, rule in ADDER_TOLERANCES.items()})
    )
    names = [f"/one/adder/{name}:=/two/adder/{name}" for name in ("check", "sweep")]
    assert main(["regress", str(path), str(tolerances), "--remap", *names]) == 0
    assert other.asked == ["check", "sweep", "sweep"]  # one is refused before it gets there
    other.gain = 2.0
    assert main(["regress", str(path), str(tolerances), "--remap", *names]) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "std_msgs/msg/String"},
        {"topic": "/a", "service": "/b", "type": "std_msgs/msg/String"},
        {"topic": "/a", "type": "std_msgs/msg/Nothing"},
        {"topic": "/a", "type": "std_msgs/msg/String", "request": {}},
        {"topic": "/a", "type": "std_msgs/msg/String", "outputs": ["/b"]},
        {"topic": "a", "type": "std_msgs/msg/String"},
        {"action": "/a", "type": "kin_interfaces/action/SweepWorkspace", "request": {"x": 1}},
    ],
)
def test_bad_questions(entry):
    with pytest.raises(InvalidInput, match=r"q\[0\]"):
        read_exchanges([entry], "q")


def test_lock_step_replay_tells_the_time(domain, tmp_path):
    """A node that goes by /clock sees the bag's time with each message, as often as one likes."""
    ros = domain

    def stamper(**options):
        node = Node("stamper", **options)
        out = node.create_publisher(Time, "/seen", 100)
        node.create_subscription(
            String, "/in", lambda _: out.publish(node.get_clock().now().to_msg()), 100
        )
        return node

    ros.add(stamper, {"use_sim_time": True})
    path = tmp_path / "b"
    with BagWriter(path) as writer:
        heard = writer.channel("/in", "std_msgs/msg/String", ())
        seen = writer.channel("/seen", "builtin_interfaces/msg/Time", ())
        for number in range(20):
            stamp = 5_000_000_000 + number * 100_000_000
            writer.write(heard, stamp, bytes(serialize_message(String(data="x"))))
            time_then = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
            writer.write(seen, stamp + 1, bytes(serialize_message(time_then)))
    (tmp_path / "t.yaml").write_text("/seen: {}\n")
    words = ["regress", str(path), str(tmp_path / "t.yaml")]
    assert main([*words, "--clock"]) == 0
    assert main([*words, "--clock"]) == 0  # the clock jumps back, and is followed
    assert main(words) == 1  # no time is told, and it stands where it was


def test_record_compressed_and_split(domain, tmp_path):
    ros = domain
    path = tmp_path / "b"
    publisher = ros.node.create_publisher(JointState, "/joints", 1000)
    process = start(
        *(
            "record",
            "/joints",
            "-o",
            path,
            "--compress",
            "--split-size",
            "0.02",
            "--storage",
            "mcap",
        )
    )
    wait_for_line(process, "recording /joints")
    wait_until(lambda: publisher.get_subscription_count() > 0, 20.0, "the recorder")
    random = np.random.default_rng(0)
    for number in range(300):
        message = JointState(position=random.random(100).tolist())
        message.header.stamp.sec = number
        publisher.publish(message)
    wait_until(lambda: publisher.wait_for_all_acked(), 20.0, "delivery")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    assert len(list(path.glob("*.mcap*"))) > 2
    with open_bag(path) as bag:
        seconds = [bag.types.decode(r.type, r.raw).header.stamp.sec for r in bag.records()]
    assert seconds == list(range(300))


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_replay_what_is_wanted_of_a_bag_of_another_writer(domain, tmp_path, storage):
    """As ``ros2 bag record --compression-mode file`` leaves it; topics, begin, end and speed."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    ros = domain
    path = tmp_path / "b"
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
    with writer:
        connections = [
            writer.add_connection(topic, "std_msgs/msg/String", typestore=TypeRegistry().store)
            for topic in ("/a", "/b")
        ]
        for number in range(40):
            raw = bytes(serialize_message(String(data=str(number))))
            writer.write(connections[number % 2], 10**9 + number * 10_000_000, raw)
    heard = {topic: ros.listen(String, topic, 1000) for topic in ("/a", "/b", "/c")}
    words = ["replay", str(path), "--topics", "/a", "--remap", "/a:=/c"]
    begin = time.monotonic()
    assert main([*words, "--start", "0.1", "--end", "0.3", "--rate", "2"]) == 0
    assert time.monotonic() - begin >= 0.09  # ten messages, 20 ms apart, at twice the speed
    wait_until(lambda: len(heard["/c"]) >= 10, 20.0, "the messages")
    assert [message.data for message in heard["/c"]] == [str(k) for k in range(10, 30, 2)]
    assert not heard["/a"]
    assert not heard["/b"]
    assert main(["replay", str(path), "--exclude", "/a", "--rate", "0"]) == 0
    wait_until(lambda: len(heard["/b"]) >= 20, 20.0, "the other messages")
    assert not heard["/a"]


LISTENER = """
import sys
import rclpy
from std_msgs.msg import String

rclpy.init()
node = rclpy.create_node("far")
heard = []
node.create_subscription(String, "/words", heard.append, 10000)
print("listening", flush=True)
while len(heard) < int(sys.argv[1]):
    rclpy.spin_once(node, timeout_sec=1.0)
print(*(message.data for message in heard), flush=True)
"""


def test_as_fast_as_possible_loses_nothing_on_the_way_to_another_process(domain, tmp_path):
    """More than the publisher remembers, to a listener that is acknowledged over the network."""
    path, count = tmp_path / "b", 6000
    qos = to_bag_qos(QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE))
    with BagWriter(path) as writer:
        channel = writer.channel("/words", "std_msgs/msg/String", (qos,))
        for number in range(count):
            writer.write(channel, number, bytes(serialize_message(String(data=str(number)))))
    far = subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(count)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert far.stdout.readline() == "listening\n"
        assert main(["replay", str(path), "--rate", "0"]) == 0
        heard = far.communicate(timeout=60)[0].split()
    finally:
        far.kill()
    assert heard == [str(number) for number in range(count)]


def test_as_fast_as_possible_overruns_nobody(domain, tmp_path):
    """The publisher of a topic that remembered two messages waits for a reliable listener."""
    path = tmp_path / "b"
    qos = to_bag_qos(QoSProfile(depth=2, reliability=ReliabilityPolicy.RELIABLE))
    with BagWriter(path) as writer:
        channel = writer.channel("/words", "std_msgs/msg/String", (qos,))
        for number in range(500):
            writer.write(channel, number, bytes(serialize_message(String(data=str(number)))))
    heard = domain.listen(String, "/words", 1000)
    assert main(["replay", str(path), "--rate", "0"]) == 0
    wait_until(lambda: len(heard) >= 500, 20.0, "all messages")
    assert [message.data for message in heard] == [str(number) for number in range(500)]


def test_names_of_services_select_and_rename(tmp_path):
    target = CoreTarget([Adder])
    try:
        with BagWriter(tmp_path / "b") as writer:
            record_exchanges(writer, target, read_exchanges(ADDER_QUESTIONS, "q"), ["/sums"])
    finally:
        target.close()
    with open_bag(tmp_path / "b") as bag:

        def topics(**options):
            return {record.topic for record in bag.records(Selection(**options))}

        assert topics(topics=frozenset({"/adder/sweep"})) == {
            "/adder/sweep/_goal",
            "/adder/sweep/_result",
        }
        assert topics(exclude=frozenset({"/adder/sweep", "/adder/check"})) == {"/numbers", "/sums"}
        assert "/x/_goal" in topics(remaps=(("/adder/sweep", "/x"),))
        with pytest.raises(InvalidInput, match="is not in"):
            topics(topics=frozenset({"/adder/swee"}))
