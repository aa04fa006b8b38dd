"""Replaying: at the bag's times, as fast as possible, and in lock step."""

import signal
import subprocess
import sys
import time

import pytest
import yaml
from bag_scenes import ADDER_QUESTIONS, QUESTIONS, Adder, start, wait_for_line
from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from kin_bags.command import main
from kin_bags.reader import open_bag
from kin_bags.record import to_bag_qos
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def test_record_and_play_back(domain, tmp_path):
    ros = domain
    path = tmp_path / "b"
    publisher = ros.node.create_publisher(String, "/words", 200)  # for a reader that is behind
    process = start("record", "/words", "-o", path, "--storage", "sqlite3")
    wait_for_line(process, "recording /words")
    wait_until(lambda: publisher.get_subscription_count() > 0, 60.0, "the recorder")
    for number in range(200):
        publisher.publish(String(data=str(number)))
    wait_until(lambda: publisher.wait_for_all_acked(), 60.0, "delivery")
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    ros.node.destroy_publisher(publisher)
    heard = ros.listen(String, "/again", 1000)
    clock = ros.listen(Clock, "/clock", 1000)
    assert main(["replay", str(path), "--remap", "/words:=/again", "--rate", "0", "--clock"]) == 0
    wait_until(lambda: len(heard) >= 200, 60.0, "all messages")
    assert [message.data for message in heard] == [str(number) for number in range(200)]
    assert clock
    assert main(["replay", str(path), "--topics", "/nope"]) == 2


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
    wait_until(lambda: len(heard["/c"]) >= 10, 60.0, "the messages")
    assert [message.data for message in heard["/c"]] == [str(k) for k in range(10, 30, 2)]
    assert not heard["/a"]
    assert not heard["/b"]
    assert main(["replay", str(path), "--exclude", "/a", "--rate", "0"]) == 0
    wait_until(lambda: len(heard["/b"]) >= 20, 60.0, "the other messages")
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
    wait_until(lambda: len(heard) >= 500, 60.0, "all messages")
    assert [message.data for message in heard] == [str(number) for number in range(500)]
