"""Fixtures and settings for all tests."""

import os
import signal

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
