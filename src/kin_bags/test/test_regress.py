"""Regression by replay, over DDS and without it."""

import shutil
import signal

import pytest
import yaml
from bag_scenes import ADDER_QUESTIONS, QUESTIONS, Adder, start, wait_for_line
from kin_interfaces.srv import CheckReady
from rclpy.duration import Duration
from std_msgs.msg import String

from kin_bags.ask import read_exchanges, record_exchanges
from kin_bags.command import main
from kin_bags.compare import Tolerances
from kin_bags.core import CoreTarget
from kin_bags.reader import open_bag
from kin_bags.regress import regress
from kin_bags.writer import BagWriter
from kin_monitor.node import StackMonitor
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node
TOLERANCES = {
    "/stack_monitor/check_ready/_response": {
        "fields": {"status.solve_time": "ignore", "status.residual": "ignore"}
    }
}


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
    answered = ros.listen(String, "/out", 100)
    ros.node.create_subscription(
        String, "/in", lambda m: echo.publish(String(data=m.data + gain[0])), 100
    )
    path = tmp_path / "b"
    process = start("record", "/in", "/out", "-o", path)
    source = ros.node.create_publisher(String, "/in", 100)
    wait_for_line(process, "recording /in")
    wait_until(lambda: source.get_subscription_count() >= 2, 60.0, "both listeners")
    wait_until(lambda: echo.get_subscription_count() >= 2, 60.0, "the recorder, and this test")
    for number in range(10):
        source.publish(String(data=str(number)))
        wait_until(lambda n=number: len(answered) == n + 1, 60.0, "the answer")
    for publisher in (source, echo):
        assert publisher.wait_for_all_acked(Duration(seconds=60))
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    ros.node.destroy_publisher(source)
    tolerances = tmp_path / "t.yaml"
    tolerances.write_text("/out: {}\n")
    assert main(["regress", str(path), str(tolerances)]) == 0
    gain[0] = "y"
    assert main(["regress", str(path), str(tolerances)]) == 1


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
