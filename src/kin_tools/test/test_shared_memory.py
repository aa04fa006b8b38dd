"""Leftovers of dead processes in shared memory: all of them go, and nothing that lives."""

import fcntl
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from domain_coordinator import domain_id

from kin_testing.fixtures import wait_until
from kin_tools.shared_memory import remove_leftovers

SHM = Path("/dev/shm")
OLD = time.time() - 3600.0

#: A participant that tells when it is there, and hears itself over shared memory.
PARTICIPANT = """
import sys, rclpy
from std_msgs.msg import String
rclpy.init()
node = rclpy.create_node("left")
heard = []
node.create_subscription(String, "x", heard.append, 10)
print("ready", flush=True)
for line in sys.stdin:
    pass
"""


@pytest.fixture
def files(tmp_path):
    """A folder that looks like shared memory."""

    def make(*names, when=OLD):
        for name in names:
            (tmp_path / name).write_bytes(b"x" * 64)
            os.utime(tmp_path / name, (when, when))
        return tmp_path

    return make


SEGMENT = ("fastrtps_0123456789abcdef", "fastrtps_0123456789abcdef_el")
PORT = ("fastrtps_port7411", "fastrtps_port7411_el", "sem.fastrtps_port7411_mutex")


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_nobody_holds_is_removed(files):
    folder = files(*SEGMENT, *PORT, "fastrtps_port7413", "sem.fastrtps_port7413_mutex")
    assert len(remove_leftovers(folder)) == 7
    assert left(folder) == []


def test_files_of_others_are_left_alone(files):
    names = (
        "lttng-ust-wait-6", "fastrtps", "fastrtps_", "fastrtps_xyz", "fastrtps_port", "pulse-shm-1",
        "fastrtps_port7411_other", "fastrtps_0123456789abcdef0", "sem.other", "a_fastrtps_port1",
        "psm_12345678", "kinstack_pages",
    )  # fmt: skip
    folder = files(*names)
    assert remove_leftovers(folder) == []
    assert left(folder) == sorted(names)


def test_what_is_locked_stays(files):
    folder = files(*SEGMENT, *PORT)
    with (folder / SEGMENT[1]).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # This process would be seen by what it has open: another one has the lock, unseen.
        assert set(remove_leftovers(folder)) == set(PORT)
    assert left(folder) == sorted(SEGMENT)


def test_a_lock_alone_is_enough_to_stay(files):
    """Processes of other containers hold locks that are seen, and mappings that are not."""
    folder = files(*SEGMENT)
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        with (folder / SEGMENT[1]).open() as held:
            fcntl.flock(held, kind)
            assert remove_leftovers(folder, used=()) == []
    assert len(remove_leftovers(folder)) == 2


def test_what_is_mapped_stays(files):
    folder = files("fastrtps_port7413", "sem.fastrtps_port7413_mutex")
    with (folder / "fastrtps_port7413").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    with mapped:
        assert remove_leftovers(folder) == []
    assert len(remove_leftovers(folder)) == 2


def test_what_is_new_stays(files):
    folder = files(*PORT)
    os.utime(folder / PORT[1])
    assert remove_leftovers(folder) == []
    assert remove_leftovers(folder, age=-10.0)


def test_links_and_foreign_owners_stay(files, tmp_path, monkeypatch):
    folder = files(*PORT)
    (folder / "fastrtps_port9").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(os, "geteuid", lambda: 424242)
    assert remove_leftovers(folder) == []
    monkeypatch.undo()
    assert "fastrtps_port9" not in remove_leftovers(folder)
    assert left(folder) == ["fastrtps_port9"]
    assert remove_leftovers(tmp_path / "nowhere") == []


def start(domain):
    process = subprocess.Popen(
        [sys.executable, "-c", PARTICIPANT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ROS_DOMAIN_ID": str(domain)},
    )
    assert process.stdout.readline() == "ready\n"
    return process


def held_by(pid):
    """Names in shared memory that a process has mapped or open."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    names = {
        line.split("/dev/shm/")[1] for line in maps.splitlines() if "/dev/shm/fastrtps" in line
    }
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(descriptor)
        if target.startswith("/dev/shm/fastrtps"):
            names.add(target.removeprefix("/dev/shm/"))
    return names


@pytest.mark.node
@pytest.mark.skipif(not SHM.is_dir(), reason="no shared memory here")
def test_a_killed_participant_is_cleared_away_and_a_living_one_is_not():
    with domain_id() as domain:
        living = start(domain)
        lives = held_by(living.pid)  # its own: of others it knows nothing yet
        doomed = start(domain)
        try:
            dies = held_by(doomed.pid)
            assert lives
            assert dies
            doomed.send_signal(signal.SIGKILL)
            doomed.wait(10)
            dead = dies - lives
            assert all((SHM / name).exists() for name in dead)
            wait_until(
                lambda: (remove_leftovers(), not any((SHM / name).exists() for name in dead))[1],
                20.0,
                f"{sorted(dead)} to go",
            )
            assert all((SHM / name).exists() for name in lives)
            assert held_by(living.pid) >= lives
            third = start(domain)  # the ports can be used again
            third.stdin.close()
            assert third.wait(20) == 0
        finally:
            for process in (living, doomed):
                process.kill()
                process.wait()
