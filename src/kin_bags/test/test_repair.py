"""Bags whose writer was killed, or still writes."""

import subprocess
import sys

from bag_scenes import joints

from kin_bags.reader import open_bag
from kin_bags.repair import repair_bag
from kin_bags.writer import BagWriter


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
