"""Reading bags: what is wanted of them, those of other writers, hidden topics, and cut-off ones."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest
import yaml
from action_msgs.msg import GoalStatus, GoalStatusArray
from bag_scenes import ADDER_QUESTIONS, STORAGES, Adder, joints, write
from kin_interfaces.action import SolveHier
from kin_interfaces.srv import CheckReady
from rclpy.duration import Duration
from rclpy.serialization import serialize_message
from rosbag2_files import write_bag
from sensor_msgs.msg import JointState
from service_msgs.msg import ServiceEventInfo

from kin_bags.ask import read_exchanges, record_exchanges
from kin_bags.command import main
from kin_bags.core import CoreTarget
from kin_bags.reader import Selection, open_bag
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_ros.messages import find_message
from kin_testing.fixtures import wait_until

HIDDEN = "/hier_ik/solve_to_convergence/_action/feedback"
FEEDBACK = "kin_interfaces/action/SolveHier_FeedbackMessage"
EVENT = "kin_interfaces/srv/CheckReady_Event"
STATUS = "action_msgs/msg/GoalStatusArray"
JOINTS = "sensor_msgs/msg/JointState"


def raw(message):
    return bytes(serialize_message(message))


def feedback(number):
    message = SolveHier.Impl.FeedbackMessage()
    message.goal_id.uuid[0] = number
    message.feedback.iteration = number
    return raw(message)


def event(number):
    message = CheckReady.Event(info=ServiceEventInfo(sequence_number=number))
    message.request = [CheckReady.Request(nodes=["a", "b"], wait=float(number))]
    return raw(message)


def recorded(path, storage):
    """What ``ros2 bag record -a --include-hidden-topics`` keeps of an action, and more."""
    registry = TypeRegistry()
    topics = [
        (HIDDEN, FEEDBACK, "unknown", ""),
        (HIDDEN.replace("feedback", "status"), STATUS, "ros2msg", registry.definition(STATUS)),
        ("/stack_monitor/check_ready/_service_event", EVENT, "unknown", ""),
        ("/strange", "nowhere/action/Walk_FeedbackMessage", "unknown", ""),
        ("/joint_states", JOINTS, "ros2msg", registry.definition(JOINTS)),
    ]  # fmt: skip
    messages = []
    for number in range(6):
        stamp = 10**18 + 1000 * number
        joints = JointState(name=["a"], position=[float(number)])
        status = GoalStatusArray(status_list=[GoalStatus(status=GoalStatus.STATUS_EXECUTING)])
        contents = (feedback(number), raw(status), event(number), b"\0\1\0\0\7", raw(joints))
        messages += [(k, stamp + k, content) for k, content in enumerate(contents)]
    return write_bag(path, storage, topics, messages)


@pytest.mark.parametrize("single", [False, True], ids=["folder", "file"])
@pytest.mark.parametrize("storage", STORAGES)
def test_hidden_topics_are_read_and_decoded(tmp_path, storage, single, capsys):
    path = recorded(tmp_path / "b", storage)
    if single:
        path = next(file for file in path.iterdir() if file.suffix != ".yaml")
    with open_bag(path) as bag:
        records = list(bag.records())
        assert len(records) == 30
        by_type = {kind: [r for r in records if r.type == kind] for kind in (FEEDBACK, EVENT)}
        decoded = [bag.types.decode(r.type, r.raw) for r in by_type[FEEDBACK]]
        assert [message.feedback.iteration for message in decoded] == list(range(6))
        assert [int(message.goal_id.uuid[0]) for message in decoded] == list(range(6))
        decoded = [bag.types.decode(r.type, r.raw) for r in by_type[EVENT]]
        assert [message.request[0].wait for message in decoded] == [float(n) for n in range(6)]
        strange = next(r for r in records if r.topic == "/strange")
        with pytest.raises(InvalidInput, match="neither the bag nor a package here defines"):
            bag.types.decode(strange.type, strange.raw)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"/hier_ik/solve_to_convergence/_action/feedback: 6 x {FEEDBACK}" in said
    assert "/strange: 6 x nowhere/action/Walk_FeedbackMessage" in said


@pytest.fixture
def bag_command(ros):
    """Starts the command in the domain of the test; what still runs is killed with it."""
    started = []

    def start(*words):
        environment = {**os.environ, "ROS_DOMAIN_ID": str(ros.domain)}
        command = [sys.executable, "-m", "kin_bags.command", *map(str, words)]
        started.append(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.mark.node
@pytest.mark.parametrize("storage", STORAGES)
def test_hidden_topics_are_played(ros, bag_command, tmp_path, storage):
    heard = ros.listen(find_message(FEEDBACK), HIDDEN)
    path = recorded(tmp_path / "b", storage)
    words = ("--rate", "0", "--wait", "20", "--topics", HIDDEN, "/strange")
    played = bag_command("replay", path, *words)
    _, said = played.communicate(timeout=120)
    wait_until(lambda: len(heard) == 6, 30.0, f"the feedback: {said}")
    assert [message.feedback.iteration for message in heard] == list(range(6))
    # What no package here defines cannot be played, and is named.
    assert played.returncode == 1
    assert "/strange cannot be played" in said


@pytest.mark.node
def test_hidden_topics_are_recorded_when_asked_for(ros, bag_command, tmp_path):
    recorder = bag_command("record", "--hidden", "-o", tmp_path / "again")
    publisher = ros.publisher(find_message(FEEDBACK), HIDDEN)
    assert any(f"recording {HIDDEN} ({FEEDBACK})" in line for line in recorder.stderr)
    for number in range(6):
        publisher.publish(feedback(number))
    assert publisher.wait_for_all_acked(Duration(seconds=60))
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=60)
    with open_bag(tmp_path / "again") as again:
        decoded = [again.types.decode(r.type, r.raw) for r in again.records() if r.topic == HIDDEN]
        assert [message.feedback.iteration for message in decoded] == list(range(6))
        (connection,) = (c for c in again.connections if c.topic == HIDDEN)
        assert connection.digest == TypeRegistry().digest(FEEDBACK)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_recording_that_is_cut_off_anywhere_is_read_or_refused_in_a_sentence(
    tmp_path, storage, capsys
):
    whole = recorded(tmp_path / "b", storage)
    draw = random.Random(7)
    for trial in range(16):
        path = tmp_path / f"cut{trial}"
        shutil.copytree(whole, path)
        if trial % 4 == 0:
            (path / "metadata.yaml").unlink()  # the recorder was killed, too
        (file,) = (file for file in path.iterdir() if file.suffix != ".yaml")
        content = file.read_bytes()
        file.write_bytes(content[: draw.randrange(len(content))])
        assert main(["info", str(path)]) in (0, 2)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        try:
            with open_bag(path) as bag:
                records = list(bag.records())
        except InvalidInput as error:
            assert str(path) in str(error)
        else:
            assert len(records) <= 30


def test_selection(tmp_path):
    path = write(tmp_path / "b")
    with open_bag(path) as bag:

        def topics(**options):
            return [record.topic for record in bag.records(Selection(**options))]

        assert topics(topics=frozenset({"/state"})) == ["/state"]
        assert set(topics(exclude=frozenset({"/state"}))) == {"/joints"}
        assert set(topics(remaps=(("/joints", "/robot/joints"),))) == {"/robot/joints", "/state"}
        assert len(topics(start=0.5, end=0.6)) == 11
        assert topics(start=100.0) == []
        with pytest.raises(InvalidInput, match="topics: /joints, /state"):
            topics(topics=frozenset({"/joint"}))


def test_damage_in_the_middle_is_noticed(tmp_path):
    path = tmp_path / "b"
    with BagWriter(path, compress=True) as writer:
        channel = writer.channel("/joints", "sensor_msgs/msg/JointState", ())
        for number in range(50):
            writer.write(channel, number, joints(number))
    file = next(path.glob("*.mcap"))
    content = bytearray(file.read_bytes())
    content[150:160] = b"\xff" * 10
    file.write_bytes(content)
    with open_bag(path) as bag, pytest.raises(InvalidInput, match="damaged"):
        list(bag.records())


@pytest.mark.parametrize("mode", ["NONE", "FILE", "MESSAGE"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("version", [8, 9])
def test_bags_of_other_writers(tmp_path, mode, storage, version, capsys):
    """The layouts that ``ros2 bag record`` leaves, with each of its compressions."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    registry = TypeRegistry()
    writer = Writer(tmp_path / "b", version=version, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection(
            "/joints", "sensor_msgs/msg/JointState", typestore=registry.store
        )
        for number in range(10):
            writer.write(connection, number, joints(number))
    with open_bag(tmp_path / "b") as bag:
        decoded = [bag.types.decode(r.type, r.raw) for r in bag.records()]
    assert [message.header.stamp.sec for message in decoded] == list(range(10))
    assert main(["info", str(tmp_path / "b")]) == 0
    assert "/joints: 10 x sensor_msgs/msg/JointState" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["NONE", "FILE", "MESSAGE"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_bag_that_is_cut_off_anywhere_is_read_or_refused_in_a_sentence(
    tmp_path, mode, storage, capsys
):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    registry = TypeRegistry()
    writer = Writer(tmp_path / "b", version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection(
            "/joints", "sensor_msgs/msg/JointState", typestore=registry.store
        )
        for number in range(50):
            writer.write(connection, number, joints(number))
    draw = random.Random(5)
    whole = next(p for p in (tmp_path / "b").iterdir() if p.name != "metadata.yaml")
    content = whole.read_bytes()
    for trial in range(12):
        path = tmp_path / f"cut{trial}"
        shutil.copytree(tmp_path / "b", path)
        cut = path / whole.name
        if trial % 3:
            cut.write_bytes(content[: draw.randrange(len(content))])
        else:
            spoilt = bytearray(content)
            for _ in range(20):
                spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
            cut.write_bytes(spoilt)
        code = main(["info", str(path)])
        said = capsys.readouterr()
        assert code in (0, 2)
        assert code == 0 or str(path) in said.err
        with contextlib.suppress(InvalidInput), open_bag(path) as bag:
            list(bag.records())


def test_bag_without_definitions_uses_the_installed_ones(tmp_path):
    """Bags of older distributions hold only the names of types."""
    path = write(tmp_path / "b", storage="sqlite3")
    file = next(path.glob("*.db3"))
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE message_definitions")
        connection.execute("DROP TABLE schema")
        connection.commit()
    connection.close()
    with open_bag(path) as bag:
        state = next(r for r in bag.records() if r.topic == "/state")
        assert bag.types.decode(state.type, state.raw).nodes[0].name == "/n"


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("split", [0, 1000])
def test_metadata_that_does_not_fit_the_files_loses_no_message(tmp_path, storage, split):
    """Converted bags, and those of older releases: other times, and QoS in another form."""
    path = write(tmp_path / "b", storage=storage, split_size=split)
    file = path / "metadata.yaml"
    content = yaml.safe_load(file.read_text())
    information = content["rosbag2_bagfile_information"]
    information["starting_time"]["nanoseconds_since_epoch"] += 700_000_000
    for topic in information["topics_with_message_count"]:
        topic["topic_metadata"]["offered_qos_profiles"] = ""
        topic["topic_metadata"]["type_description_hash"] = "RIHS01_" + "0" * 64
    file.write_text(yaml.safe_dump(content))
    with open_bag(path) as bag:
        assert len(list(bag.records())) == bag.count == 101
        assert bag.begin == 1_000_000_000
        late = list(bag.records(Selection(topics=frozenset({"/joints"}), start=0.5)))
    assert [bag.types.decode(r.type, r.raw).header.stamp.sec for r in late] == list(range(50, 100))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_type_that_cannot_be_understood_takes_nothing_from_the_others(tmp_path, storage, capsys):
    """``ros2 bag`` writes the text of a .srv file as the definition of a service's events."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    event = "nowhere/srv/Add_Event"
    text = "int64 a\n---\nint64 sum\n" + "=" * 80 + "\nMSG: service_msgs/msg/ServiceEventInfo\n"
    writer = Writer(tmp_path / "b", version=9, storage_plugin=StoragePlugin[storage.upper()])
    with writer:
        strange = writer.add_connection("/add/_service_event", event, msgdef=text, rihs01="x")
        empty = writer.add_connection("/empty", "nowhere/msg/Empty", msgdef="", rihs01="x")
        known = writer.add_connection(
            "/joints", "sensor_msgs/msg/JointState", typestore=TypeRegistry().store
        )
        for number in range(5):
            writer.write(strange, 3 * number, b"\x00\x01\x00\x00\x00")
            writer.write(empty, 3 * number + 1, b"\x00\x01\x00\x00\x00")
            writer.write(known, 3 * number + 2, joints(number))
    with open_bag(tmp_path / "b") as bag:
        records = list(bag.records())
        assert len(records) == 15
        decoded = [bag.types.decode(r.type, r.raw) for r in records if r.topic == "/joints"]
        assert [message.header.stamp.sec for message in decoded] == list(range(5))
        assert bag.types.decode(records[1].type, records[1].raw) is not None
        with pytest.raises(InvalidInput, match="neither the bag nor a package here defines"):
            bag.types.decode(records[0].type, records[0].raw)
    assert main(["info", str(tmp_path / "b")]) == 0
    assert f"/add/_service_event: 5 x {event}" in capsys.readouterr().out


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
