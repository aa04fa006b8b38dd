"""Fixtures and settings for all tests."""

import contextlib
import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["kin_testing.fixtures"]

# A shell that starts the tests in the background has SIGINT ignored, and so would every process
# that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# SIGTERM is like Ctrl-C: what tests have started is ended in good order. Children that are forked
# have the usual answer to it.
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))

# The first example of a test may compile a kernel, and the machine is shared: no deadlines. CI sees
# the same examples each time; people see new ones.
settings.register_profile(
    "kinstack",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kinstack")

#: Tests that control arms in real time: one worker for them all, so that none disturbs another.
_REAL_TIME = (
    "src/ft_controller/test/test_voting.py",
    "src/ft_controller/test/test_replica_group.py",
    "src/ft_controller/test/test_node.py",
    "src/ft_controller/test/test_motion_node.py",
    "src/ft_controller/test/test_claim.py",
)

#: Tests that mostly wait, for processes or for the graph: another worker.
_WAITING = (
    "src/kin_bags/test/test_record.py",
    "src/kin_bags/test/test_replay.py",
    "src/kin_bags/test/test_regress.py",
    "src/kin_tools/test/test_up.py",
    "src/kin_tools/test/test_runner.py",
    "src/kin_monitor/test/test_node.py",
    "src/kin_tools/test/test_call.py",
    "src/kin_testing/test/test_fuzz.py",
)

#: Packages whose tests share kernels that only they use, so that one worker has each of them; then
#: the longest files. All other files come last.
_COMPUTING = ("src/continuum_ik/", "src/hier_ik/", "src/gpu_kinematics/")
_LONG = (
    "src/kin_solvers/test/test_solve.py",
    "src/kin_solvers/test/test_schedule.py",
    "src/kin_solvers/test/test_components.py",
    "src/kin_solvers/test/test_dask.py",
    "src/kin_tools/test/test_setup_workspace.py",
    "src/kin_solvers/",
    "launch/test/test_hosts.py",
    "launch/",
    "docker/",
    "src/ft_controller/",
)

_NICE = os.getpriority(os.PRIO_PROCESS, 0)

#: Tests of the whole stack, which run one after the other. Last those that share one stack: it is
#: there until the end.
_STACKS = (
    "launch/test/test_stack_shown.py",
    "launch/test/test_simulated_stack.py",
    "docs/test/test_commands.py",
    "launch/test/test_stack.py",
)


def _unit(nodeid: str) -> str:
    """What a test goes to a worker with."""
    if nodeid.startswith(_REAL_TIME):
        return "real time"
    if nodeid.startswith(_WAITING):
        return "waiting"
    package = next((start for start in _COMPUTING if nodeid.startswith(start)), None)
    return package or nodeid.split("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have tests that compute give way to those that keep time, or wait for processes."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        computes = item.nodeid.startswith((*_COMPUTING, "src/kin_solvers/", "benchmarks/"))
        with contextlib.suppress(PermissionError):  # not everybody can take it back
            os.setpriority(os.PRIO_PROCESS, 0, min(_NICE + 10 * computes, 19))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by the order above, with several workers by all of it."""
    several = "PYTEST_XDIST_WORKER" in os.environ
    order = (*_REAL_TIME, *_WAITING, *_COMPUTING, *_LONG) if several else _STACKS

    def rank(item: pytest.Item) -> int:
        return next((k for k, start in enumerate(order) if item.nodeid.startswith(start)), last)

    last = len(order) if several else -1
    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Units instead of xdist's groups, which are single tests with some versions of pytest."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        """Gives the units out in the order of the tests."""

        def _split_scope(self, nodeid: str) -> str:
            return _unit(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)
