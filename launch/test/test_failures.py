"""Whatever runs by itself in a node is killed with an exception, and must be found out.

Every timer, loop, mailbox and subscription of every node is made to raise once: the log, the
diagnostics and the stack monitor must say so, and the node must go on.
"""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from kin_interfaces.msg import NodeState, StackState
from rcl_interfaces.msg import Log

from continuum_ik.node import ContinuumNode
from ft_controller.node import FtController
from ft_controller.simulator_node import ArmSimulator
from gpu_kinematics.node import GpuKinematicsNode
from hier_ik.closer_node import LoopCloserNode
from hier_ik.node import HierNode
from kin_dashboard.node import Dashboard
from kin_monitor.node import StackMonitor
from kin_ros.parameters import describe
from kin_ros.qos import LATCHED
from kin_ros.robot_state_node import RobotStateNode
from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import wait_until

SOURCES = Path(__file__).resolve().parents[2] / "src"
ROBOTS = SOURCES.parent / "launch" / "robots" / "robots.yaml"

#: Every node class, with parameters under which all that it has runs.
NODES = {
    KinSolversNode: {},
    FtController: {},
    ArmSimulator: {},
    GpuKinematicsNode: {"fleet": 4},
    ContinuumNode: {"source": "benchmark"},
    HierNode: {"blocks": 1},
    LoopCloserNode: {},
    Dashboard: {"port": 0},
    StackMonitor: {},
    RobotStateNode: {"robots_file": str(ROBOTS), "robots": ["demo_arm"]},
}

#: Made under other parameters only.
ELSEWHERE = {"message on robot_description"}

#: Modules that make threads or timers of their own, and why they may.
ALLOWED = {
    "kin_core/threads.py": "the one that all others use",
    "kin_ros/lifecycle.py": "the timers of all nodes, guarded",
    "kin_ros/answers.py": "sends answers again; what it raises is met by the executor's guard",
    "kin_ros/diagnostics.py": "publishes once a second; the same",
    "kin_testing/fixtures.py": "fixtures of tests, which fail loudly",
    "kin_solvers/pipeline.py": "hands its threads' exceptions to the one who waits for them",
    "kin_tools/setup_workspace.py": "runs before anything is installed",
    "kin_ros/worker.py": "what its threads raise becomes the status of an answer",
}

#: A node whose process meets what no guard of its own catches.
UNGUARDED = """
import sys, threading, time
from kin_core.task import ALARMS
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet

def die(name):
    raise RuntimeError(f"thrown into {name}")

class Careless(KinNode[ParameterSet]):
    def __init__(self, **arguments):
        super().__init__("careless", ParameterSet, **arguments)

    def activate(self):
        self.timer = self.create_timer(0.5, lambda: die("a bare timer"))
        self.thread("guarded", lambda: die("a thread"))
        threading.Thread(target=lambda: die("a bare thread"), name="bare").start()
        ALARMS.set(time.monotonic() + 0.1, lambda: die("an alarm"))

sys.exit(run(Careless))
"""


class Killed(RuntimeError):
    """Thrown into a loop."""


def classes_in(text):
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Subscript) and getattr(base.value, "id", "") == "KinNode"
    }


def sources():
    for path in sorted(SOURCES.glob("*/*/**/*.py")):
        parts = path.relative_to(SOURCES).parts
        if "test" not in parts and "build" not in parts:
            yield "/".join(parts[1:]), path.read_text()


def test_every_node_is_in_the_list():
    found = set().union(*(classes_in(text) for _, text in sources()))
    assert found == {kind.__name__ for kind in NODES}


def test_no_thread_and_no_timer_is_made_that_could_end_unseen():
    makers = {"Thread", "Timer", "create_timer"}
    found = {}
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            called = node.func if isinstance(node, ast.Call) else None
            made = getattr(called, "attr", getattr(called, "id", ""))
            if made in makers and name not in ALLOWED:
                found.setdefault(name, []).append(f"line {node.lineno}: {made}")
            # A pool keeps what its threads raise until somebody asks for the result.
            dropped = node.value if isinstance(node, ast.Expr) else None
            submits = (
                isinstance(dropped, ast.Call) and getattr(dropped.func, "attr", "") == "submit"
            )
            if submits and name not in ALLOWED:
                found.setdefault(name, []).append(f"line {node.lineno}: a dropped future")
    assert not found, f"use KinNode.every, loop or thread, or kin_core.threads: {found}"


def made_by(kind):
    """What the source of a node makes, by its name in the log, as far as that is a constant."""
    for call in ast.walk(ast.parse(Path(inspect.getsourcefile(kind)).read_text())):
        made = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
        if made == "every":
            called = call.args[1]
            yield f"timer {getattr(called, 'attr', getattr(called, 'id', '')).strip('_')}"
        elif made in ("loop", "thread", "mailbox") and isinstance(call.args[0], ast.Constant):
            yield call.args[0].value if made == "mailbox" else f"{made} {call.args[0].value}"
        elif made == "listen" and isinstance(call.args[1], ast.Constant):
            yield f"message on {call.args[1].value}"


@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_what_names_a_file_can_be_set_only_at_the_start(kind):
    parameters = kind.__orig_bases__[0].__args__[0]
    for row in describe(parameters).values():
        about = f"{row.name} {row.spec.description}".lower()
        if any(word in about for word in ("file", "folder", "path to", "director")):
            assert row.spec.read_only, row.name


@pytest.mark.node
@pytest.mark.parametrize("kind", NODES, ids=lambda kind: kind.__name__)
def test_each_of_its_loops_is_killed_and_found_out(ros, kind, monkeypatch):
    monkeypatch.setattr("kin_ros.diagnostics.SHOWN", 1e9)  # until all of it has been seen
    node = ros.add(kind, NODES[kind])
    if kind is not StackMonitor:
        ros.add(StackMonitor)
    full = node.get_fully_qualified_name()
    logs = ros.listen(Log, "/rosout", 100)
    diagnoses = ros.listen(DiagnosticArray, "/diagnostics", 10)
    states = ros.listen(StackState, "/stack_state", LATCHED)
    wait_until(lambda: states and diagnoses, 30.0, "the monitor and the diagnostics")
    assert not set(made_by(kind)) - set(node.guarded) - ELSEWHERE

    def said(what):
        """Where a failure has been told of, so far."""
        text = f"{what}: Killed: thrown into {what}"
        shown = [s for array in diagnoses for s in array.status if s.name == full]
        watched = [n for state in states for n in state.nodes if n.name == full]
        return {
            "log": any(what in log.msg and "Killed" in log.msg for log in logs),
            "diagnostics": any(
                text in s.message and s.level == DiagnosticStatus.ERROR for s in shown
            ),
            "monitor": any(text in n.message and n.health == NodeState.UNHEALTHY for n in watched),
        }

    alive = {}
    all_of_them = list(node.guarded.values())
    for guarded in all_of_them:
        what, usual = guarded.what, guarded.action

        def count(*arguments, what=what, usual=usual):
            alive[what] = alive.get(what, 0) + 1
            if arguments != (None,):  # a message may have come before the test's own call
                usual(*arguments)

        def kill(*_, guarded=guarded, what=what, count=count):
            guarded.action = count
            raise Killed(f"thrown into {what}")

        guarded.action = kill
    selves = [one for one in all_of_them if one.what.startswith(("timer", "loop"))]
    for guarded in all_of_them:
        if guarded not in selves:  # waits for a message or an item
            ros.run_on(node, lambda guarded=guarded: guarded(None))
    for guarded in all_of_them:
        what = guarded.what
        wait_until(lambda: guarded.failures, 30.0, f"{what} to be killed")  # noqa: B023
        wait_until(lambda: all(said(what).values()), 30.0, f"{what} in {said(what)}")  # noqa: B023
    for guarded in selves:
        wait_until(lambda: alive.get(guarded.what, 0) >= 2, 30.0, f"{guarded.what} to go on")  # noqa: B023

    def well():
        last = [s for array in diagnoses[-3:] for s in array.status if s.name == full]
        return last and "Killed" not in last[-1].message

    monkeypatch.setattr("kin_ros.diagnostics.SHOWN", 0.0)
    for guarded in all_of_them:
        if guarded not in selves:
            node.recovered(guarded.what)  # as the next message would do
    wait_until(well, 30.0, "the faults to be taken back")
    assert node.active


@pytest.mark.node
def test_a_control_loop_that_breaks_down_ends_in_an_error_that_everybody_sees(ros, monkeypatch):
    node = ros.add(FtController)
    ros.add(StackMonitor)
    logs = ros.listen(Log, "/rosout", 100)
    states = ros.listen(StackState, "/stack_state", LATCHED)
    wait_until(lambda: states, 30.0, "the monitor")

    def broken(*_):
        raise Killed("thrown into the control loop")

    monkeypatch.setattr(node.group, "vote", broken)

    def unhealthy():
        return any(
            "thrown into the control loop" in one.message and one.health == NodeState.UNHEALTHY
            for one in states[-1].nodes
        )

    wait_until(unhealthy, 30.0, "the monitor to see it")
    wait_until(lambda: any("control loop broke down" in log.msg for log in logs), 30.0, "a line")


@pytest.mark.node
def test_what_no_guard_catches_is_found_out_too_and_the_process_goes_on(ros, tmp_path):
    program = tmp_path / "careless.py"
    program.write_text(UNGUARDED)
    ros.add(StackMonitor)
    logs = ros.listen(Log, "/rosout", 100)
    diagnoses = ros.listen(DiagnosticArray, "/diagnostics", 10)
    states = ros.listen(StackState, "/stack_state", LATCHED)
    process = subprocess.Popen(
        [sys.executable, program], env={**os.environ, "ROS_DOMAIN_ID": str(ros.domain)}
    )
    try:
        for what in ("a bare timer", "a thread", "a bare thread", "an alarm"):
            thrown = f"thrown into {what}"
            wait_until(lambda: any(thrown in log.msg for log in logs), 60.0, f"log: {what}")  # noqa: B023
            wait_until(
                lambda: any(thrown in s.message for array in diagnoses for s in array.status),  # noqa: B023
                60.0,
                f"diagnostics: {what}",
            )
            wait_until(
                lambda: any(thrown in n.message for state in states for n in state.nodes),  # noqa: B023
                60.0,
                f"monitor: {what}",
            )
        seen = len(diagnoses)
        wait_until(lambda: len(diagnoses) > seen + 2, 30.0, "the diagnostics to go on")
        assert process.poll() is None
        ros.wait_active("/careless")
    finally:
        process.terminate()
        assert process.wait(30.0) == 0
