"""The command: what it prints, and its exit codes."""

import os

import pytest
from bag_scenes import write

from kin_bags.command import main


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


def test_info(tmp_path, capsys):
    path = write(tmp_path / "b", storage="sqlite3", compress=True)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "messages:  101" in out
    assert "/joints: 100 x sensor_msgs/msg/JointState (best_effort volatile depth 5)" in out
    assert "packed:    zstd" in out


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
