"""Questions for a bag: what is refused."""

import pytest

from kin_bags.ask import read_exchanges
from kin_core.errors import InvalidInput


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "std_msgs/msg/String"},
        {"topic": "/a", "service": "/b", "type": "std_msgs/msg/String"},
        {"topic": "/a", "type": "std_msgs/msg/Nothing"},
        {"topic": "/a", "type": "std_msgs/msg/String", "request": {}},
        {"topic": "/a", "type": "std_msgs/msg/String", "outputs": ["/b"]},
        {"topic": "a", "type": "std_msgs/msg/String"},
        {"action": "/a", "type": "kin_interfaces/action/SweepWorkspace", "request": {"x": 1}},
    ],
)
def test_bad_questions(entry):
    with pytest.raises(InvalidInput, match=r"q\[0\]"):
        read_exchanges([entry], "q")
