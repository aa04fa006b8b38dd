"""The runner with real processes: output, respawn, the end of everything however it comes."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest

PATIENCE = 60.0


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


class Run:
    """The runner as its own process; its children are known by a mark in their command line."""

    def __init__(self, tmp_path, body, *arguments):
        self.mark = uuid.uuid4().hex
        self.file = tmp_path / "run.launch.xml"
        self.file.write_text(f"<launch>{body.replace('MARK', self.mark)}</launch>")
        self.out = tmp_path / "out.txt"
        with self.out.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kin_tools.launch", str(self.file), *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def text(self):
        return self.out.read_text()

    def wait_for_text(self, text, count=1):
        wait_for(lambda: self.text().count(text) >= count, f"{count} times {text!r}")

    def marked(self):
        """Processes that carry the mark, the runner's own command line apart."""
        found = []
        for process in psutil.process_iter():
            try:
                if self.mark in " ".join(process.cmdline()) and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def supervisor(self):
        return wait_for(lambda: psutil.Process(self.process.pid).children(), "the supervisor")[0]

    def gone(self):
        wait_for(lambda: not self.marked(), "the end of all children")


@pytest.fixture
def run(tmp_path, prefix):
    runs = []

    def start(body, *arguments):
        runs.append(Run(tmp_path, body, *arguments))
        return runs[-1]

    yield start
    for each in runs:
        if each.process.poll() is None:
            each.process.terminate()
            each.process.wait(PATIENCE)
        for process in each.marked():
            process.kill()


def python(code, *, name, extra=""):
    """An executable element that runs Python code; MARK is in its command line."""
    return f"""<executable cmd='{sys.executable} -S -c "{code}" MARK' name='{name}'
               output='screen' {extra}/>"""


SLEEP = "import time; print(1234567, flush=True); time.sleep(1000)"
DEAF = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "print(1234567, flush=True); time.sleep(1000)"
)
STONE_DEAF = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1234567, flush=True); time.sleep(1000)"
)
#: A process with a child of its own that leaves the group and ignores everything polite.
FAMILY = (
    "import os, time, signal; pid = os.fork(); os.setsid() if pid == 0 else None; "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN) if pid == 0 else None; "
    "print(1234567, flush=True); time.sleep(1000)"
)


def test_output_logs_and_exit_code(run, tmp_path):
    r = run(
        python("print(11, flush=True); import sys; sys.stderr.write(chr(50) * 3)", name="talks")
        + python("raise SystemExit(3)", name="fails")
        + f"<executable cmd='{sys.executable} -S -c \"print(77)\"' name='quiet'/>"
    )
    assert r.process.wait(PATIENCE) == 1
    text = r.text()
    assert "[talks] 11\n" in text
    assert "[talks] 222\n" in text  # the last line needs no line end
    assert "fails failed: exit code 3" in text
    assert "[quiet]" not in text  # its output goes to the log only
    latest = tmp_path / "log" / "latest"
    assert latest.joinpath("quiet.log").read_text().endswith(" 77\n")
    assert "222" in latest.joinpath("talks.log").read_text()


def test_all_well_is_zero(run):
    r = run(python("print(5)", name="a") + python("print(6)", name="b"))
    assert r.process.wait(PATIENCE) == 0


def test_nothing_to_do(run):
    assert run("").process.wait(PATIENCE) == 0


def test_interrupt_ends_everything(run):
    r = run(python(SLEEP, name="a") + python(SLEEP, name="b"))
    r.wait_for_text("1234567", 2)
    assert len(r.marked()) == 2
    r.process.send_signal(signal.SIGINT)
    assert r.process.wait(PATIENCE) == 0
    assert not r.marked()


def test_child_that_ignores_sigint_gets_sigterm(run):
    r = run(python(DEAF, name="deaf"), "sigterm_timeout:=0.3")
    r.wait_for_text("1234567")
    r.process.send_signal(signal.SIGINT)
    assert r.process.wait(PATIENCE) == 0
    assert "deaf: does not end, sending SIGTERM" in r.text()
    assert not r.marked()


def test_child_that_ignores_all_gets_sigkill_and_that_is_a_failure(run):
    r = run(python(STONE_DEAF, name="deaf"), "sigterm_timeout:=0.2", "sigkill_timeout:=0.2")
    r.wait_for_text("1234567")
    r.process.send_signal(signal.SIGTERM)
    assert r.process.wait(PATIENCE) == 1
    assert "sending SIGKILL" in r.text()
    assert not r.marked()


def test_second_interrupt_does_not_wait(run):
    r = run(python(STONE_DEAF, name="deaf"), "sigterm_timeout:=9999", "sigkill_timeout:=9999")
    r.wait_for_text("1234567")
    for step in ("ending everything", "sending SIGTERM", "sending SIGKILL"):
        r.process.send_signal(signal.SIGINT)
        r.wait_for_text(step)
    assert r.process.wait(PATIENCE) == 1
    assert not r.marked()


def test_respawn_until_the_end(run):
    r = run(python("raise SystemExit(4)", name="again", extra="respawn='true' respawn_delay='1.0'"))
    r.wait_for_text("again: ended", 3)
    r.process.send_signal(signal.SIGINT)
    assert r.process.wait(PATIENCE) == 1  # its last life had failed
    assert not r.marked()


def test_respawned_child_that_runs_is_no_failure(run):
    r = run(python(SLEEP, name="phoenix", extra="respawn='true'"))
    r.wait_for_text("1234567")
    (first,) = r.marked()
    first.kill()
    r.wait_for_text("1234567", 2)
    (second,) = r.marked()
    assert second.pid != first.pid
    r.process.send_signal(signal.SIGINT)
    assert r.process.wait(PATIENCE) == 0
    assert r.text().count("phoenix: started") == 2


def test_interrupt_while_waiting_to_respawn(run):
    r = run(python("print(1)", name="slow", extra="respawn='true' respawn_delay='9999'"))
    r.wait_for_text("slow: ended")
    r.process.send_signal(signal.SIGINT)
    assert r.process.wait(PATIENCE) == 0
    assert r.text().count("slow: started") == 1


@pytest.mark.parametrize("code", [SLEEP, DEAF, STONE_DEAF, FAMILY], ids=range(4))
def test_runner_killed_leaves_no_orphans(run, code):
    r = run(python(code, name="a") + python(SLEEP, name="b"))
    r.wait_for_text("1234567", 2)
    supervisor = r.supervisor()
    r.process.kill()
    r.process.wait(PATIENCE)
    r.gone()
    wait_for(lambda: not supervisor.is_running(), "the end of the supervisor")


@pytest.mark.parametrize("code", [SLEEP, STONE_DEAF, FAMILY], ids=range(3))
def test_supervisor_killed_leaves_no_orphans(run, code):
    r = run(python(code, name="a") + python(SLEEP, name="b"))
    r.wait_for_text("1234567", 2)
    r.supervisor().kill()
    assert r.process.wait(PATIENCE) == 1
    assert not r.marked()


def test_both_killed_at_once(run):
    r = run(python(STONE_DEAF, name="a"))
    r.wait_for_text("1234567")
    supervisor = r.supervisor()
    for process in (r.process, supervisor):
        os.kill(process.pid, signal.SIGSTOP)
    for process in (r.process, supervisor):
        os.kill(process.pid, signal.SIGKILL)
    r.process.wait(PATIENCE)
    r.gone()


def test_descendants_that_left_the_group_are_ended(run):
    r = run(python(FAMILY, name="family"))
    r.wait_for_text("1234567", 2)
    assert len(r.marked()) == 2
    r.process.send_signal(signal.SIGINT)
    r.process.wait(PATIENCE)
    assert not r.marked()


def test_reader_of_the_output_goes_away(tmp_path, prefix):
    r = Run(tmp_path, "")  # for the mark only
    r.process.wait(PATIENCE)
    r.file.write_text(
        "<launch>"
        + python("import time\nwhile 1: print(3, flush=1); time.sleep(0.01)", name="a").replace(
            "MARK", r.mark
        )
        + "</launch>"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "kin_tools.launch", str(r.file)], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    process.wait(PATIENCE)
    assert not r.marked()


def test_flood_and_binary_output_do_not_stop_it(run):
    r = run(
        python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 20000)", name="flood")
        + python("print(chr(97) * 300000)", name="long")
    )
    assert r.process.wait(PATIENCE) == 0


def test_program_that_cannot_start(run, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    r = run(f"<executable cmd='{broken}' name='broken'/>" + python("print(8)", name="fine"))
    assert r.process.wait(PATIENCE) == 1
    assert "broken cannot be started" in r.text()
    assert "[fine] 8" in r.text()


def test_environment_reaches_the_child(run):
    r = run(
        "<node pkg='lxpkg' exec='plain' name='p' namespace='q' output='screen' args='x'>"
        "<env name='LX' value='seen'/></node>"
    )
    assert r.process.wait(PATIENCE) == 0
    line = next(line for line in r.text().splitlines() if line.startswith("[p] "))
    seen = json.loads(line[4:])
    assert seen["LX"] == "seen"
    assert seen["argv"] == ["x", "--ros-args", "-r", "__node:=p", "-r", "__ns:=/q"]
