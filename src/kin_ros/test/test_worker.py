"""Workers over real DDS: cancel, timeout, overlap, while a 100 Hz timer keeps running."""

import threading
import time

import pytest
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.srv import CheckReady, SolveContinuumIK
from rclpy.parameter import Parameter

from kin_core.errors import InvalidInput, StatusCode
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


class Slow(KinNode):
    """A node whose work takes as long as the test wants; it watches its own executor meanwhile."""

    def __init__(self, **arguments):
        super().__init__("slow", ParameterSet, **arguments)
        self.release = threading.Event()
        self.running = 0
        self.most_running = 0
        self.deaf = False
        self.lock = threading.Lock()
        self.ticks = []

    def configure(self):
        self.serve(SolveContinuumIK, "~/solve", self.work_for(SolveContinuumIK.Response))
        self.serve(CheckReady, "~/ping", lambda q, t: CheckReady.Response(ready=True), inline=True)
        self.serve_action(
            SweepWorkspace,
            "~/sweep",
            self.work_for(SweepWorkspace.Result),
            lambda p: SweepWorkspace.Feedback(fraction=p.fraction, done=int(p.counters["done"])),
        )
        self.every(0.01, lambda: self.ticks.append(time.monotonic()), steady=True)

    def work_for(self, response):
        def work(request, task):
            with self.lock:
                self.running += 1
                self.most_running = max(self.most_running, self.running)
            try:
                done = 0
                while not self.release.wait(0.002):
                    done += 1
                    task.progress(min(done / 1000, 0.99), "working", done=done)
                    if not self.deaf:
                        task.check()
                return response()
            finally:
                with self.lock:
                    self.running -= 1

        return work


def ticks_in(node, seconds):
    before = len(node.ticks)
    time.sleep(seconds)
    return len(node.ticks) - before


def test_the_executor_runs_while_a_solve_runs(ros):
    node = ros.add(Slow)
    future = ros.call_async(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request())
    wait_until(lambda: node.running == 1)
    # 100 Hz is asked for; a blocked executor would give none at all.
    assert ticks_in(node, 1.0) > 50
    assert ros.call(CheckReady, "/slow/ping", CheckReady.Request()).ready
    node.release.set()
    wait_until(future.done)
    assert future.result().status.code == StatusCode.SUCCESS


def test_a_timeout_is_honoured(ros):
    node = ros.add(Slow)
    answer = ros.call(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request(timeout=0.3))
    assert answer.status.code == StatusCode.TIMEOUT
    assert "0.3 s" in answer.status.message
    assert 0.25 < answer.status.solve_time < 5.0
    wait_until(lambda: node.running == 0)


def test_the_default_timeout_is_a_parameter(ros):
    ros.add(Slow, {"default_timeout": 0.2})
    answer = ros.call(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request())
    assert answer.status.code == StatusCode.TIMEOUT


def test_a_solver_that_does_not_listen_does_not_keep_the_caller(ros):
    node = ros.add(Slow)
    node.deaf = True
    answer = ros.call(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request(timeout=0.2))
    assert answer.status.code == StatusCode.TIMEOUT
    assert node.running == 1
    node.release.set()
    wait_until(lambda: node.running == 0)


def test_a_time_limit_out_of_bounds_is_refused_and_holds_no_worker(ros):
    """Of services and actions alike; the sentence names the field and the parameter."""
    node = ros.add(Slow, {"max_timeout": 20.0})
    for timeout in (-1.0, -5e-324, float("nan"), float("inf"), -float("inf"), 20.001, 1e308):
        request, goal = SolveContinuumIK.Request(timeout=timeout), SweepWorkspace.Goal()
        goal.timeout = timeout
        for answer in (
            ros.call(SolveContinuumIK, "/slow/solve", request),
            ros.send_goal(SweepWorkspace, "/slow/sweep", goal),
        ):
            assert answer.status.code == StatusCode.INVALID_INPUT, timeout
            assert answer.status.message.startswith("timeout: must be between 0 and 20 s")
            assert "max_timeout" in answer.status.message
    assert node.most_running == 0
    node.release.set()
    allowed = ros.call(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request(timeout=20.0))
    assert allowed.status.code == StatusCode.SUCCESS


def test_the_default_timeout_is_within_the_maximum(ros):
    with pytest.raises(InvalidInput, match="default_timeout: must be at most max_timeout = 5"):
        ros.add(Slow, {"max_timeout": 5.0})
    node = ros.add(Slow, {"max_timeout": 5.0, "default_timeout": 5.0})
    changed = node.set_parameters([Parameter("default_timeout", value=6.0)])
    assert not changed[0].successful
    assert "max_timeout" in changed[0].reason
    changed = node.set_parameters_atomically(
        [Parameter("default_timeout", value=6.0), Parameter("max_timeout", value=6.0)]
    )
    assert changed.successful


def test_overlapping_solves_run_side_by_side_and_the_queue_is_bounded(ros):
    node = ros.add(Slow, {"worker_threads": 3, "queue_limit": 2})
    client = ros.client(SolveContinuumIK, "/slow/solve")
    futures = [client.call_async(SolveContinuumIK.Request()) for _ in range(7)]
    wait_until(lambda: sum(f.done() for f in futures) == 2, what="two refusals")
    refused = [f.result() for f in futures if f.done()]
    assert all(r.status.code == StatusCode.LIMIT_EXCEEDED for r in refused)
    assert "queue_limit" in refused[0].status.message
    assert node.most_running == 3
    node.release.set()
    wait_until(lambda: all(f.done() for f in futures))
    codes = sorted(f.result().status.code for f in futures)
    assert codes == [StatusCode.SUCCESS] * 5 + [StatusCode.LIMIT_EXCEEDED] * 2


def test_a_burst_of_requests_is_answered_in_full(ros):
    node = ros.add(Slow, {"queue_limit": 200})
    node.release.set()
    client = ros.client(SolveContinuumIK, "/slow/solve")
    futures = [client.call_async(SolveContinuumIK.Request()) for _ in range(100)]
    wait_until(lambda: all(f.done() for f in futures), what="a hundred answers")
    assert {f.result().status.code for f in futures} == {StatusCode.SUCCESS}


def test_an_action_reports_progress_and_succeeds(ros):
    node = ros.add(Slow)
    feedback = []
    handle = ros.start_goal(SweepWorkspace, "/slow/sweep", SweepWorkspace.Goal(), feedback.append)
    assert handle.accepted
    wait_until(lambda: len(feedback) >= 3)
    assert feedback[0].done < feedback[-1].done
    node.release.set()
    result = handle.get_result_async()
    wait_until(result.done)
    assert result.result().status == 4  # GoalStatus.STATUS_SUCCEEDED
    assert result.result().result.status.code == StatusCode.SUCCESS


def test_an_action_is_cancelled(ros):
    node = ros.add(Slow)
    handle = ros.start_goal(SweepWorkspace, "/slow/sweep", SweepWorkspace.Goal())
    wait_until(lambda: node.running == 1)
    cancelled = handle.cancel_goal_async()
    wait_until(cancelled.done)
    assert len(cancelled.result().goals_canceling) == 1
    result = handle.get_result_async()
    wait_until(result.done)
    assert result.result().status == 5  # GoalStatus.STATUS_CANCELED
    assert result.result().result.status.code == StatusCode.CANCELLED
    wait_until(lambda: node.running == 0)
    assert ticks_in(node, 0.5) > 20


def test_an_action_times_out(ros):
    ros.add(Slow)
    result = ros.send_goal(SweepWorkspace, "/slow/sweep", SweepWorkspace.Goal(timeout=0.2))
    assert result.status.code == StatusCode.TIMEOUT


def test_deactivating_cancels_what_runs(ros):
    node = ros.add(Slow)
    future = ros.call_async(SolveContinuumIK, "/slow/solve", SolveContinuumIK.Request())
    wait_until(lambda: node.running == 1)
    ros.run_on(node, lambda: node.trigger_deactivate() or True)
    wait_until(future.done)
    assert future.result().status.code == StatusCode.CANCELLED
