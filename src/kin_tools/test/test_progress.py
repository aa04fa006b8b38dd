"""What is printed while nodes come up and go."""

import re

import pytest

from kin_ros.client import open_client
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until
from kin_tools.progress import Reporter


class Shown(KinNode):
    """A node that says where it can be opened, as the dashboard does."""

    def __init__(self, **arguments):
        super().__init__("shown", ParameterSet, **arguments)

    def activate(self):
        self.diagnostics.value("url", "http://127.0.0.1:1234")
        self.diagnostics.publish()


@pytest.mark.node
def test_a_line_when_a_node_is_active_and_one_with_its_address(ros, capsys):
    with open_client("report", domain=ros.domain) as client:
        reporter = Reporter(client, ["/shown"], started=0.0)
        reporter.turn()
        assert not reporter.ready
        node = ros.add(Shown)
        said = []

        def heard():
            reporter.turn()
            said.append(capsys.readouterr().out)
            return "http://127.0.0.1:1234" in "".join(said)

        wait_until(heard, 60.0, "the address")
        reporter.close()
    text = "".join(said)
    assert reporter.ready
    assert re.search(r"kinstack: /shown is active \(\d+\.\d s\)", text)
    assert re.search(r"kinstack: 1 node active after", text)
    assert text.count("/shown is at http://127.0.0.1:1234") == 1
    assert node.active
