"""The panel of closed mechanisms: solves that overtake each other, and curves that are walked."""

from types import SimpleNamespace

import numpy as np
import pytest
from kin_interfaces.action import SolveManifold
from kin_interfaces.msg import Manifold
from page_scenes import connected
from rclpy.task import Future

from kin_dashboard.cuik import CuikPanel, along_curve


def test_a_shuffled_curve_is_walked_in_order():
    turn = np.linspace(-np.pi, np.pi, 60, endpoint=False)
    curve = np.stack([turn, 0.3 * np.sin(turn)], axis=1)
    shuffled = np.random.default_rng(1).permutation(60)
    walked = shuffled[along_curve(curve[shuffled], np.array([True, False]))]
    steps = np.diff(walked) % 60
    # One way round, with at most one jump where it closes.
    assert np.isin(steps, (1, 59)).mean() > 0.95
    assert sorted(walked) == list(range(60))
    assert len(along_curve(np.zeros((0, 2)), np.array([True, True]))) == 0


class Goal:
    """A goal that was accepted; the test gives its result."""

    accepted = True

    def __init__(self):
        self.cancelled = 0
        self.result = Future()

    def cancel_goal_async(self):
        self.cancelled += 1

    def get_result_async(self):
        return self.result

    def finish(self, name, code=0):
        result = SolveManifold.Result(manifold=Manifold(mechanism=name, variables=["a"]))
        result.status.code = code
        self.result.set_result(SimpleNamespace(result=result))


@pytest.fixture
def panel():
    return connected(CuikPanel)


def accept(panel, number):
    goal = Goal()
    panel.node.clients["kin_solvers/solve_manifold"].sent[number][1].set_result(goal)
    return goal


def test_the_last_solve_wins_however_late_the_first_one_ends(panel):
    panel.solve("bennett", 0.1)
    first = accept(panel, 0)
    panel.solve("bricard", 0.1)
    assert first.cancelled == 1
    second = accept(panel, 1)
    second.finish("bricard")
    first.finish("bennett")
    assert panel.manifold.mechanism == "bricard"
    assert not panel.solving
    assert "solved in" in panel.message


def test_a_solve_that_is_cancelled_before_it_is_accepted_is_cancelled_then(panel):
    panel.solve("bennett", 0.1)
    panel.cancel()
    goal = accept(panel, 0)
    assert goal.cancelled == 1
    goal.finish("bennett", code=5)
    assert panel.message.startswith("CANCELLED")


def test_progress_is_that_of_the_solve_under_way(panel):
    panel.solve("bennett", 0.1)
    panel.solve("bricard", 0.1)
    (_, _, old), (_, _, new) = panel.node.clients["kin_solvers/solve_manifold"].sent
    old(SimpleNamespace(feedback=SolveManifold.Feedback(settled=0.9)))
    assert panel.progress == 0.0
    new(SimpleNamespace(feedback=SolveManifold.Feedback(settled=0.25, queued=7)))
    assert panel.progress == 0.25
    assert "7 boxes waiting" in panel.counters


def test_without_its_node_it_says_so(panel):
    panel.node.clients["kin_solvers/solve_manifold"].ready = False
    panel.solve("bennett", 0.1)
    assert "does not answer" in panel.message
    assert not panel.solving
