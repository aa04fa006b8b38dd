"""Fixtures and settings for all tests."""

import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["kin_common.testing"]

# A shell that starts the tests in the background has SIGINT ignored, and so would every process
# that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example of a test may compile a kernel, and the machine is shared: no deadlines. CI sees
# the same examples each time; people see new ones.
settings.register_profile(
    "kinstack",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kinstack")

#: What goes to one worker as a whole, because its tests share kernels, processes or a started stack;
#: longest first, so that short files fill the end. Everything else goes file by file.
_UNITS = (
    "src/ft_controller/",
    "src/kin_tools/test/test_stack_shown.py",
    "src/continuum_ik/",
    "src/kin_tools/test/test_stack.py",
    "src/kin_tools/test/test_bag_graph.py",
    "src/gpu_kinematics/",
    "src/kin_solvers/",
    "src/hier_ik/",
    "src/kin_tools/test/test_setup_workspace.py",
    "src/kin_tools/test/test_hosts.py",
    "src/kin_tools/test/test_up.py",
)


def _unit(nodeid: str) -> str:
    """What a test goes to a worker with."""
    return next((unit for unit in _UNITS if nodeid.startswith(unit)), nodeid.split("::")[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers: the long units first."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {name: rank for rank, name in enumerate(_UNITS)}
        items.sort(key=lambda item: ranks.get(_unit(item.nodeid), len(ranks)))


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
