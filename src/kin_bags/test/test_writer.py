"""Bags as files: both storages, splits, compression, and what a kill leaves."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from bag_scenes import STORAGES, write
from rosbags.rosbag2 import Reader

from kin_bags.command import main
from kin_bags.reader import open_bag
from kin_bags.repair import is_damaged
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput


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


def test_sqlite_bag_has_the_schema_of_jazzy(tmp_path):
    path = write(tmp_path / "b", storage="sqlite3")
    connection = sqlite3.connect(next(path.glob("*.db3")))
    assert connection.execute("SELECT schema_version FROM schema").fetchone() == (4,)
    hashes = dict(connection.execute("SELECT name, type_description_hash FROM topics"))
    assert hashes["/state"] == TypeRegistry().digest("kin_interfaces/msg/StackState")
    connection.close()
