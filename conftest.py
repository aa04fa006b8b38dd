"""Fixtures and settings for all tests."""

import os
import signal
from pathlib import Path

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

#: The packages with kernels, longest tests first. A worker takes a whole one: it compiles once.
_COMPILED = ("ft_controller", "kin_solvers", "continuum_ik", "gpu_kinematics", "hier_ik")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several workers: a package with kernels, or another test file, goes to one of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    rank = {}
    for item in items:
        path = Path(item.path).relative_to(config.rootpath)
        package = path.parts[1] if path.parts[0] == "src" else ""
        known = package in _COMPILED
        rank[item] = _COMPILED.index(package) if known else len(_COMPILED)
        item.add_marker(pytest.mark.xdist_group(package if known else str(path)))
    items.sort(key=rank.__getitem__)
