"""A launched stack ends with whoever launched it, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.stack
ROOT = Path(__file__).resolve().parents[3]

#: A stack of the monitor alone, and a test that never ends.
TEST = """
import time
from pathlib import Path
from kin_testing.running_stack import running_stack

OFF = dict.fromkeys(("cuik", "ft", "delta", "continuum", "hier", "dashboard"), "false")

def test_for_ever(tmp_path):
    with running_stack(tmp_path / "log.txt", OFF) as stack:
        started = [stack.process, *stack.process.children(recursive=True)]
        Path(__file__).with_suffix(".new").write_text(" ".join(str(p.pid) for p in started))
        Path(__file__).with_suffix(".new").rename(Path(__file__).with_suffix(".pids"))
        time.sleep(1000.0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_pytest_that_is_ended_leaves_no_stack(number, tmp_path):
    file = tmp_path / "test_for_ever.py"
    file.write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", str(file)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "CI": "1"}
    ) as running:
        pids = file.with_suffix(".pids")
        wait_until(lambda: pids.exists() or running.poll() is not None, 90.0, "the stack")
        assert running.poll() is None, running.stdout.read()
        started = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        assert len(started) >= 3  # the command, its supervisor, the monitor
        running.send_signal(number)
        said, _ = running.communicate(timeout=60.0)
    _, alive = psutil.wait_procs(started, timeout=60.0)
    assert not alive, alive
    if number == signal.SIGTERM:
        assert "KeyboardInterrupt" in said
