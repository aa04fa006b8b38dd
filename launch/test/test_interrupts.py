"""Ctrl-C and SIGTERM at any moment of a start: no traceback, nothing left behind.

KINSTACK_INTERRUPTS=40 tries as many moments, with the full stack too.
"""

import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from ament_index_python.packages import get_package_prefix
from domain_coordinator import domain_id

from kin_tools.runner import catches

MANY = int(os.environ.get("KINSTACK_INTERRUPTS", "0"))
MARK = "KINSTACK_TEST_MARK"
#: A node that imports little, one that imports much and one that compiles or loads kernels.
LAUNCH = """\
<launch>
  <node pkg="kin_monitor" exec="stack_monitor" output="both"/>
  <node pkg="hier_ik" exec="hier_ik_node" output="both"/>
  <node pkg="ft_controller" exec="ft_controller_node" output="both"/>
</launch>
"""
#: Words of an interpreter that was surprised.
SURPRISE = re.compile(r"Traceback|KeyboardInterrupt|Exception ignored|Fatal Python error|Aborted")


def marked(mark):
    """Processes that were started below one with this mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def interrupted(command, delay, numbers, domain, tmp_path, *, begun=False):
    """Start a command, send it signals after a delay [s], and return its output and leftovers.

    The delay counts from the start; with ``begun`` from when the interpreter, which answers an
    interrupt during its own start in its own way, runs the first line of the program.
    """
    mark = uuid.uuid4().hex
    log = tmp_path / f"{mark}.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={
                **os.environ,
                MARK: mark,
                "ROS_DOMAIN_ID": str(domain),
                "ROS_LOG_DIR": str(tmp_path / mark),
            },
        )
        while begun and not catches(process.pid, signal.SIGTERM) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(delay)
        for number in numbers:
            if process.poll() is None:
                os.killpg(process.pid, number)  # as a terminal does: to the whole group
            time.sleep(0.05)
        process.wait(60)
    deadline = time.monotonic() + 10.0
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = marked(mark)
    for process in left:
        process.kill()
    return delay, log.read_text(errors="replace"), [p.pid for p in left]


def moments(count, longest):
    """Moments of a start [s], others each time, spread over it, most of them early."""
    return [longest * random.random() ** 2 for _ in range(count)]


def check(outcomes):
    for delay, output, left in outcomes:
        assert not SURPRISE.search(output), f"after {delay:.3f} s:\n{output}"
        assert not left, f"after {delay:.3f} s these were left: {left}"


def python(*arguments):
    """An interpreter as ``./kinstack`` starts it."""
    return ["env", "--block-signal=INT", sys.executable, *arguments]


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["-m", "kin_tools.launch"], signal.SIGINT),
        (["-m", "kin_tools.launch"], signal.SIGTERM),
        (["-m", "kin_tools.up", "--launch-file"], signal.SIGTERM),
    ],
)
def test_a_start_at_any_moment(tmp_path, command, number):
    file = tmp_path / "some.launch.xml"
    file.write_text(LAUNCH)
    words = python(*command, str(file))
    with domain_id() as domain, ThreadPoolExecutor(3) as pool:
        outcomes = pool.map(
            lambda delay: interrupted(words, delay, [number], domain, tmp_path),
            moments(MANY or 4, 6.0),
        )
        check(outcomes)


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize("program", ["hier_ik/hier_ik_node", "kin_monitor/stack_monitor"])
def test_a_node_that_is_started_by_hand_at_any_moment(tmp_path, program):
    package, name = program.split("/")
    command = [sys.executable, str(Path(get_package_prefix(package), "lib", package, name))]
    with domain_id() as domain, ThreadPoolExecutor(3) as pool:
        outcomes = pool.map(
            lambda delay: interrupted(
                command, delay, [signal.SIGINT], domain, tmp_path, begun=True
            ),
            moments(MANY or 4, 4.0),
        )
        check(outcomes)


@pytest.mark.node
@pytest.mark.skipif(not MANY, reason="KINSTACK_INTERRUPTS is not set")
@pytest.mark.timeout(3600)
def test_the_full_stack_at_any_moment(tmp_path):
    command = python("-m", "kin_tools.launch", "kin_bringup", "full_stack.launch.xml")
    command.append("dashboard_port:=0")
    with domain_id() as domain:
        for delay in moments(MANY, 15.0):
            check([interrupted(command, delay, [signal.SIGINT], domain, tmp_path)])


def test_an_interrupted_command_says_so_in_one_line(tmp_path):
    code = "import kin_core.interrupts, os, signal; os.kill(os.getpid(), signal.SIGINT); input()"
    done = subprocess.run(
        python("-c", code), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == "kinstack: interrupted\n"
    assert done.returncode != 0


def test_compilers_end_with_the_one_who_started_them(tmp_path):
    """SIGTERM, SIGKILL and Ctrl-C to whoever waits for the kernels."""
    (tmp_path / "lib" / "package").mkdir(parents=True)
    (tmp_path / "numba-stamps").mkdir()
    (tmp_path / "numba").mkdir()
    for name in ("package", "kin_core"):
        (tmp_path / "numba-stamps" / name).write_text("a digest")
    program = tmp_path / "lib" / "package" / "compiler"
    program.write_text(f"#!{sys.executable} -S\nimport time\ntime.sleep(600)\n")
    program.chmod(0o755)
    script = textwrap.dedent(
        f"""
        import kin_core.interrupts
        from kin_tools.precompile import compile_kernels
        try:
            compile_kernels([{str(program)!r}])
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        mark = uuid.uuid4().hex
        process = subprocess.Popen(
            python("-c", script),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, MARK: mark, "NUMBA_CACHE_DIR": str(tmp_path / "numba")},
        )
        deadline = time.monotonic() + 20.0
        while len(marked(mark)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(marked(mark)) == 2
        process.send_signal(number)
        process.wait(20)
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not marked(mark)
        said = process.communicate()[0]
        assert "compiling" in said
        assert "Traceback" not in said
