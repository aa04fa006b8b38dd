"""How the programs of nodes begin: signals while they are loaded, and then the function."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from kin_ros import entry

#: A module that takes its time to be loaded, and says when it begins to.
SLOW = """
import sys, time
print("loading", flush=True)
time.sleep(float(sys.argv[1]))

def main():
    print("called", flush=True)
    return 7
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "slow_program.py").write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    program = "import sys; from kin_ros.entry import slow_program; sys.exit(slow_program.main())"

    def begin(seconds, **options):
        return subprocess.Popen(
            [sys.executable, "-c", program, str(seconds)],
            stdout=subprocess.PIPE, text=True, env=environment, **options,
        )  # fmt: skip

    return begin


def test_a_name_is_loaded_when_it_is_called_and_not_before():
    program = entry.no_such_package.node.main
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        program()
    assert entry.math.sqrt is not None
    with pytest.raises(AttributeError):
        entry.__wrapped__
    with pytest.raises(AttributeError):
        getattr(entry.package, "_private")  # noqa: B009 (reading it is the test)


def test_the_function_is_called_and_its_value_given_back(start):
    process = start(0.0)
    said, _ = process.communicate(timeout=60)
    assert said.split() == ["loading", "called"]
    assert process.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_is_loaded_ends_it_without_a_word(start, number):
    process = start(60.0, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "loading\n"
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert error == ""


def test_a_person_at_a_terminal_is_told(start):
    ours, theirs = pty.openpty()
    process = start(60.0, stderr=theirs)
    os.close(theirs)
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    time.sleep(0.05)
    assert b"interrupted before it was started" in os.read(ours, 4096)
    os.close(ours)
