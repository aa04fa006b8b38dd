"""Two stacks of the same node names on one machine."""

import os
import subprocess
import sys

import pytest

from kin_tools.claims import NameTaken, claim_names

HOLD = """
import sys
from kin_tools.claims import claim_names
with claim_names(sys.argv[1:]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    return tmp_path


@pytest.fixture
def holder():
    """Another process that holds names until it is killed."""
    started = []

    def hold(*names):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_name_is_held_once(holder):
    other = holder("/ft_controller", "/dashboard")
    taken = pytest.raises(NameTaken, match="already running in ROS domain 7")
    with taken as caught, claim_names(["/ft_controller", "/hier_ik"]):
        pytest.fail("both drive")
    assert caught.value.names == ["/ft_controller"]
    assert caught.value.pid == str(other.pid)
    with claim_names(["/hier_ik"]):  # what was refused has left nothing held
        pass


def test_another_namespace_or_domain_is_free(holder, monkeypatch):
    holder("/ft_controller")
    with claim_names(["/robot2/ft_controller"]):
        pass
    monkeypatch.setenv("ROS_DOMAIN_ID", "8")
    with claim_names(["/ft_controller"]):
        pass


def test_a_killed_holder_holds_no_more(holder):
    process = holder("/ft_controller")
    process.kill()
    process.wait()
    with claim_names(["/ft_controller"]):
        pass


def test_a_fork_keeps_the_claim(holder):
    """The supervisor is a fork of the front and may outlive it."""
    read, write = os.pipe()
    with claim_names(["/a"]):
        pid = os.fork()
        if pid == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    os.close(read)
    with pytest.raises(NameTaken), claim_names(["/a"]):
        pass
    os.close(write)
    os.waitpid(pid, 0)
    with claim_names(["/a"]):
        pass


def test_the_sentence_stays_short(holder):
    names = [f"/n{k}" for k in range(40)]
    holder(*names)
    with pytest.raises(NameTaken) as caught, claim_names(names):
        pass
    assert "and 37 more" in str(caught.value)
    assert len(str(caught.value)) < 300
