"""The full launch file, started for real; and what ``up --check`` makes of good and bad answers."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
from ament_index_python.packages import get_package_share_directory

from kin_tools.launch_xml import load_launch_file, show_arguments
from kin_tools.up import main, warn_if_visible

SHARE = Path(get_package_share_directory("kin_bringup"))
SYSTEMS = ("cuik", "ft", "delta", "continuum", "hier", "robots")
ONLY_MONITOR = [f"{system}:=false" for system in (*SYSTEMS, "dashboard")]


@pytest.fixture
def environment(tmp_path):
    values = {**os.environ, "ROS_LOG_DIR": str(tmp_path / "log")}
    values.pop("ROS_DOMAIN_ID", None)
    return values


def up(environment, *words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "kin_tools.up", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        **options,
    )


def test_full_stack_declares_its_arguments():
    names = [argument.name for argument in show_arguments(SHARE / "full_stack.launch.xml")]
    assert names[:3] == ["namespace", "use_sim_time", "log_level"]
    assert {*SYSTEMS, "monitor"} <= set(names)


@pytest.mark.parametrize("off", [(), SYSTEMS, ("monitor",)])
def test_switches_decide_what_is_started_and_expected(off):
    arguments = {"namespace": "r1", **dict.fromkeys(off, "false")}
    plan = load_launch_file(SHARE / "full_stack.launch.xml", arguments)
    names = plan.node_names
    assert all(name.startswith("/r1/") for name in names)
    assert ("/r1/stack_monitor" in names) == ("monitor" not in off)
    if "monitor" in off:
        return
    monitor = next(spec for spec in plan.processes if spec.label == "stack_monitor")
    inline = [block for block in monitor.ros.parameters if not isinstance(block, Path)]
    expected = next(block["expected"] for block in inline if "expected" in block)
    assert {f"/r1/{name}" for name in expected} == set(names)


def test_use_sim_time_reaches_every_node():
    plan = load_launch_file(SHARE / "full_stack.launch.xml", {"use_sim_time": "true"})
    for spec in plan.processes:
        inline = [block for block in spec.ros.parameters if not isinstance(block, Path)]
        assert any(block.get("use_sim_time") is True for block in inline), spec.label
        assert "--log-level" in spec.program, spec.label


@pytest.mark.stack
def test_check_of_the_monitor_alone(environment):
    process = up(environment, "--check", "namespace:=rob", *ONLY_MONITOR)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    assert "kinstack: /rob/stack_monitor is active" in out
    assert "/rob/stack_monitor  check_ready  SUCCESS" in out
    assert "every node answered" in out


@pytest.mark.stack
def test_up_prints_the_address_of_the_dashboard(environment):
    systems_off = [f"{system}:=false" for system in SYSTEMS]
    process = up(environment, "namespace:=seen", "dashboard_port:=0", *systems_off)
    try:
        found = None
        for line in process.stdout:
            found = re.search(r"/seen/dashboard is at (http://127\.0\.0\.1:\d+)", line)
            if found:
                break
        assert found, "no address"
        with urllib.request.urlopen(found[1], timeout=30) as page:
            assert b"<html" in page.read().lower()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.stack
def test_the_screen_of_a_good_start_is_short_and_ends_with_the_address(environment):
    systems_off = [f"{system}:=false" for system in SYSTEMS]
    process = up(environment, "namespace:=calm", "dashboard_port:=0", *systems_off)
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if "is at http" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    active = [line for line in lines if re.search(r"/calm/\w+ is active \(", line)]
    assert len(active) == 2, lines
    assert "2 nodes active after" in lines[-2]
    assert re.search(r"/calm/dashboard is at http://127\.0\.0\.1:\d+", lines[-1])
    told = [line for line in lines if not line.startswith("kinstack:   ")]
    assert len(told) <= 8, lines  # of the kernels, perhaps; the log; a line each; ready; address
    # The end of a stack is no fault of its nodes.
    assert "missing" not in rest
    assert "Traceback" not in rest
    assert len(rest.splitlines()) <= 3, rest


@pytest.mark.stack
def test_a_terminal_keeps_the_address_in_its_last_line(environment):
    systems_off = [f"{system}:=false" for system in SYSTEMS]
    front, back = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kin_tools.up", "namespace:=tty", "dashboard_port:=0", *systems_off],
        stdout=back,
        stderr=back,
        env=environment,
    )
    os.close(back)
    seen = b""
    try:
        while seen.count(b"/tty/dashboard is at http") < 3:  # drawn again and again
            seen += os.read(front, 4096)
        assert seen.rsplit(b"\r\x1b[K", 1)[-1].count(b"\n") == 0
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while os.read(front, 4096):
                pass
        process.wait(60)
        os.close(front)
    assert process.returncode == 0


@pytest.mark.stack
def test_a_second_stack_with_the_same_names_is_refused(environment):
    first = up(environment, "namespace:=twice", *ONLY_MONITOR)
    try:
        for line in first.stdout:
            if "1 node active" in line:
                break
        second = up(environment, "namespace:=twice", *ONLY_MONITOR)
        out, _ = second.communicate(timeout=60)
        assert second.returncode == 1
        assert "/twice/stack_monitor: already running in ROS domain 0" in out
        assert f"process {first.pid}" in out
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    assert first.returncode == 0


@pytest.mark.stack
def test_interrupt_and_kill_leave_nothing(environment):
    for number in (signal.SIGINT, signal.SIGKILL):
        process = up(environment, "namespace:=x", *ONLY_MONITOR)
        for line in process.stdout:
            if "1 node active" in line:
                break
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 2
        process.send_signal(number)
        process.communicate(timeout=60)
        code = process.returncode
        assert code == (0 if number == signal.SIGINT else -signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=30)
        assert not alive


@pytest.mark.stack
def test_two_stacks_in_two_namespaces(environment, ros, monkeypatch):
    environment["ROS_DOMAIN_ID"] = str(ros.domain)
    stacks = [up(environment, f"namespace:={name}", *ONLY_MONITOR) for name in ("one", "two")]
    try:
        from kin_interfaces.srv import CheckReady

        for name in ("one", "two"):
            answer = ros.call(
                CheckReady,
                f"/{name}/stack_monitor/check_ready",
                CheckReady.Request(wait=60.0),
                timeout=90.0,
            )
            assert answer.ready
        services = [name for name, _ in ros.node.get_service_names_and_types()]
        mine = [name for name in services if name.endswith("/check_ready")]
        assert sorted(mine) == ["/one/stack_monitor/check_ready", "/two/stack_monitor/check_ready"]
        answer = ros.call(
            CheckReady,
            "/one/stack_monitor/check_ready",
            CheckReady.Request(nodes=["/two/stack_monitor"]),
        )
        assert list(answer.missing) == ["/two/stack_monitor"]
    finally:
        for process in stacks:
            process.send_signal(signal.SIGINT)
        for process in stacks:
            process.communicate(timeout=60)


@pytest.mark.stack
def test_check_fails_when_a_node_does_not_come(environment, tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text(
        "<launch><node pkg='kin_monitor' exec='stack_monitor' name='wrong'>"
        "<param name='period' value='-1.0'/></node></launch>"
    )
    process = up(environment, "--check", "--launch-file", str(file), "--timeout", "60")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1, out
    assert "not ready" in out
    assert "period" in out  # the node's own sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cuick:=true"], "did you mean cuik"),
        (["word"], "expected name:=value"),
        (["monitor:=maybe"], "must be true, false, 1 or 0"),
        (["namespace:=a//b"], "not a valid namespace"),
        (["--launch-file", "/no/such.launch.xml"], "no such file"),
    ],
)
def test_bad_arguments(words, sentence, capsys):
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reach", "seen"), [("SUBNET", True), ("", True), ("LOCALHOST", False), ("OFF", False)]
)
def test_says_when_other_machines_can_see_the_nodes(reach, seen, monkeypatch, capsys):
    """A sourced ROS 2 sets the range to SUBNET, where nobody has chosen one."""
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", reach)
    warn_if_visible()
    assert ("other machines can find these nodes" in capsys.readouterr().out) == seen


def test_time_is_not_spent_on_imports():
    """``up`` must not import what makes the start slow before the processes are started."""
    code = "import sys, kin_tools.up; print({'rclpy', 'numba', 'scipy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
