import sys
from pathlib import Path

import pytest
import viser

from kin_dashboard.node import free_port

# The test folder holds what several test files share.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def server():
    """A server with a real scene, and nobody who looks at it."""
    made = viser.ViserServer(host="127.0.0.1", port=free_port("127.0.0.1", 0), verbose=False)
    yield made
    made.stop()
