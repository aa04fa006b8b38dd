"""Bags as files: both storages, splits, compression, kills, and hostile input."""

import array
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
import yaml
from kin_interfaces.msg import NodeState, StackState
from kin_interfaces.srv import CheckReady
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState

from kin_bags.command import main
from kin_bags.reader import Selection, open_bag
from kin_bags.record import to_bag_qos
from kin_bags.repair import is_damaged, repair_bag
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_ros.qos import LATCHED, SENSOR

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


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("compress", [False, True])
def test_round_trip(tmp_path, storage, compress):
    path = write(tmp_path / "b", storage=storage, compress=compress)
    with open_bag(path) as bag:
        assert bag.count == 101
        assert bag.duration == pytest.approx(0.99)
        records = list(bag.records())
        assert [r.stamp for r in records] == sorted(r.stamp for r in records)
        decoded = [bag.types.decode(r.type, r.raw) for r in records if r.topic == "/joints"]
        assert [m.header.stamp.sec for m in decoded] == list(range(100))
        state = next(r for r in records if r.topic == "/state")
        assert bag.types.decode(state.type, state.raw).nodes[0].restarts == 3
        qos = {c.topic: c.ext.offered_qos_profiles[0] for c in bag.connections}
        assert qos["/joints"].reliability.name == "BEST_EFFORT"
        assert qos["/state"].durability.name == "TRANSIENT_LOCAL"
        assert all(c.digest.startswith("RIHS01_") for c in bag.connections)
    with Reader(path) as reader:  # as anybody else would read it
        assert reader.message_count == 101


@pytest.mark.parametrize("storage", STORAGES)
def test_split_files_are_one_bag(tmp_path, storage):
    path = write(tmp_path / "b", storage=storage, split_duration=0.25)
    assert len(list(path.glob("b_*"))) == 4
    with open_bag(path) as bag:
        assert bag.count == 101
        assert len(list(bag.records())) == 101
    small = write(tmp_path / "c", storage=storage, split_size=1000)
    assert len(list(small.glob("c_*"))) > 4


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


@pytest.mark.parametrize("storage", STORAGES)
def test_empty_bag(tmp_path, storage):
    path = tmp_path / "b"
    with BagWriter(path, storage=storage):
        pass
    with open_bag(path) as bag:
        assert bag.count == 0
        assert list(bag.records()) == []
    assert main(["info", str(path)]) == 0


def test_never_overwrites(tmp_path):
    write(tmp_path / "b")
    with pytest.raises(InvalidInput, match="never overwritten"):
        BagWriter(tmp_path / "b")


KILLED = """
import os, signal, sys
sys.path.insert(0, {test!r})
from pathlib import Path
from kin_bags.writer import BagWriter
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
writer = BagWriter(Path({path!r}), storage={storage!r}, compress={compress!r}, split_duration=0.5)
channel = writer.channel("/joints", "sensor_msgs/msg/JointState", ())
raw = bytes(serialize_message(JointState()))
for number in range(80):
    writer.write(channel, number * 10_000_000, raw)
writer.flush()
for number in range(80, 90):
    writer.write(channel, number * 10_000_000, raw)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("compress", [False, True])
def test_killed_writer_loses_nothing_that_was_flushed(tmp_path, storage, compress):
    path = tmp_path / "b"
    code = KILLED.format(
        path=str(path), storage=storage, compress=compress, test=os.path.dirname(__file__)
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert is_damaged(path)
    said = []
    with open_bag(path, said.append) as bag:
        assert len(list(bag.records())) >= 80
    assert "was not closed" in said[0]
    assert not is_damaged(path)
    with Reader(path) as reader:
        assert reader.message_count >= 80


def test_every_cut_of_an_mcap_file_can_be_read(tmp_path):
    """Whatever byte the file ends at, all whole chunks before it are there."""
    path = tmp_path / "b"
    writer = BagWriter(path)
    channel = writer.channel("/joints", "sensor_msgs/msg/JointState", ())
    for number in range(5):
        writer.write(channel, number, joints(number))
        writer.flush()
    file = next(path.rglob("*.mcap"))
    whole = file.read_bytes()
    ends = set()
    for length in range(60, len(whole), 7):
        cut = tmp_path / f"cut{length}"
        cut.mkdir()
        (cut / "cut_0.mcap").write_bytes(whole[:length])
        repair_bag(cut)
        with open_bag(cut) as bag:
            ends.add(len(list(bag.records())))
    assert ends == {0, 1, 2, 3, 4, 5} or ends == {0, 1, 2, 3, 4}
    writer.close()


def test_bag_that_is_being_written_is_left_alone(tmp_path):
    writer = BagWriter(tmp_path / "b")
    channel = writer.channel("/joints", "sensor_msgs/msg/JointState", ())
    writer.write(channel, 1, joints(1))
    writer.flush()
    code = "import sys; from kin_bags.command import main; sys.exit(main(['info', sys.argv[1]]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "b")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "still being recorded" in done.stderr
    writer.write(channel, 2, joints(2))
    writer.close()
    with open_bag(tmp_path / "b") as bag:
        assert bag.count == 2


@pytest.mark.parametrize("damage", ["garbage", "empty", "metadata", "missing", "text", "nothing"])
def test_damaged_bags_get_a_sentence(tmp_path, damage, capsys):
    path = write(tmp_path / "b")
    file = next(path.glob("*.mcap"))
    if damage == "garbage":
        file.write_bytes(os.urandom(5000))
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "metadata":
        (path / "metadata.yaml").write_text("rosbag2_bagfile_information: [1, 2")
    elif damage == "missing":
        file.unlink()
    elif damage == "text":
        path = tmp_path / "x.txt"
        path.write_text("hello")
    else:
        path = tmp_path / "gone"
    assert main(["info", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


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


def test_info(tmp_path, capsys):
    path = write(tmp_path / "b", storage="sqlite3", compress=True)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "messages:  101" in out
    assert "/joints: 100 x sensor_msgs/msg/JointState (best_effort volatile depth 5)" in out
    assert "packed:    zstd" in out


def test_sqlite_bag_has_the_schema_of_jazzy(tmp_path):
    path = write(tmp_path / "b", storage="sqlite3")
    connection = sqlite3.connect(next(path.glob("*.db3")))
    assert connection.execute("SELECT schema_version FROM schema").fetchone() == (4,)
    hashes = dict(connection.execute("SELECT name, type_description_hash FROM topics"))
    assert hashes["/state"] == TypeRegistry().digest("kin_interfaces/msg/StackState")
    connection.close()


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


def test_names_of_types_of_early_releases(tmp_path):
    registry = TypeRegistry()
    registry.learn_from_bag("nowhere/Pair", "int32 a\nint32 b\n")
    assert (
        registry.decode("nowhere/Pair", b"\x00\x01\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00").b == 2
    )
    for name in ("Pair", "a/b/c/d", ""):
        with pytest.raises(InvalidInput, match="is no name of a type"):
            registry.learn_from_bag(name, "int32 a\n")


def test_types_of_services_are_messages():
    registry = TypeRegistry()
    name = "kin_interfaces/srv/CheckReady_Request"
    text = registry.definition(name)
    assert registry.digest(name) == registry.store.hash_rihs01(name)
    raw = bytes(serialize_message(CheckReady.Request(nodes=["a"], wait=2.0)))
    other = TypeRegistry()
    other.learn_from_bag(name, text)  # all that is needed stands in the bag
    assert other.decode(name, raw).wait == 2.0
    with pytest.raises(InvalidInput, match="no installed package"):
        registry.learn("nope/msg/Nothing")
