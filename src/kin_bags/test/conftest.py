import sys
from pathlib import Path

import pytest

# The test folder holds what several test files share.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def domain(ros, monkeypatch):
    """The test's graph, whose domain is also that of the commands that it starts."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros.domain))
    return ros
