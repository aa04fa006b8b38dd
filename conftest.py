"""Fixtures and settings for all tests."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["kin_common.testing"]

# The first example of a test may compile a kernel, and the machine is shared: no deadlines. CI sees
# the same examples each time; people see new ones.
settings.register_profile(
    "kinstack",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("kinstack")
