"""Processes that end with the one that started them."""

import subprocess
import sys

import psutil

from kin_testing.fixtures import wait_until

#: A child that is deaf to SIGTERM, whose own child has left its group and lost its parent.
FAMILY = """
import subprocess, sys
import psutil
from kin_tools.guard import become_subreaper, end_descendants
become_subreaper()
SLEEP = "import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True);" + SLEEP
LOST = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
deaf = subprocess.Popen([sys.executable, "-S", "-c", DEAF], stdout=subprocess.PIPE)
deaf.stdout.readline()
subprocess.run([sys.executable, "-S", "-c", LOST, sys.executable, "-c", SLEEP], check=True)
ended = end_descendants(0.2)
print(len(ended), len(psutil.Process().children(recursive=True)))
"""
PARENT = """
import os, subprocess, sys, time
from functools import partial
from kin_tools.guard import die_with_parent
child = subprocess.Popen(
    [sys.executable, "-S", "-c", "import time; time.sleep(600)"],
    preexec_fn=partial(die_with_parent, os.getpid()),
)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_every_descendant_is_ended_deaf_and_orphaned_ones_too():
    done = subprocess.run(
        [sys.executable, "-c", FAMILY], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["2", "0"]


def test_a_child_ends_with_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait(30)
    wait_until(lambda: not child.is_running() or child.status() == "zombie", 30.0, "its end")
