"""Bags and a running graph: record, play, regress over DDS and without it."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml
from kin_interfaces.msg import StackState
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_common.qos import LATCHED, SENSOR
from kin_common.testing import wait_until
from kin_tools.bag import main
from kin_tools.bags.reader import open_bag
from kin_tools.monitor import StackMonitor

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
        [sys.executable, "-m", "kin_tools.bag", *map(str, words)],
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
    publisher = ros.node.create_publisher(String, "/words", 100)
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
    monitor = ros.add(StackMonitor, {"expected": ["ghost"]})
    path, tolerances = tmp_path / "golden", tmp_path / "t.yaml"
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[:1]))
    tolerances.write_text(yaml.safe_dump(TOLERANCES))
    assert main(["ask", str(path), str(tmp_path / "q.yaml")]) == 0
    monitor._watch.book.expected = ()
    time.sleep(1.0)
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
    from kin_tools.bags.core import CoreTarget, find_node_class

    target = CoreTarget([find_node_class("kin_tools.monitor:StackMonitor")])
    try:
        (node,) = target._nodes
        assert set(node.services_held) == {"/stack_monitor/check_ready"}
        (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[2:]))
        from kin_tools.bags.ask import read_exchanges

        (question,) = read_exchanges(yaml.safe_load((tmp_path / "q.yaml").read_text()), "q")
        from kin_interfaces.srv import CheckReady
        from rclpy.serialization import deserialize_message, serialize_message

        raw = target.ask(question.exchange, bytes(serialize_message(question.request)))
        answer = deserialize_message(raw, CheckReady.Response)
        assert answer.status.code == answer.status.INVALID_INPUT
        assert "wait" in answer.status.message
        node._look()
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
