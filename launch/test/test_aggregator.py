"""The file for diagnostic_aggregator: every node in one group, told apart by its machine."""

import socket
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray

from kin_monitor.node import StackMonitor

LAUNCH = Path(__file__).resolve().parents[1]
#: What the analyzers of diagnostic_aggregator 4 (Jazzy) understand.
KNOWN = {"type", "path", "contains", "startswith", "name", "expected", "regex", "remove_prefix",
         "timeout", "num_items", "discard_stale"}  # fmt: skip


def analyzers():
    (content,) = yaml.safe_load((LAUNCH / "config" / "diagnostics.yaml").read_text()).values()
    return {k: v for k, v in content["ros__parameters"].items() if isinstance(v, dict)}


def our_nodes():
    """Names of the nodes that the launch files of the stack start."""
    for file in LAUNCH.glob("*.launch.xml"):
        for node in ElementTree.parse(file).iter("node"):
            if (LAUNCH.parent / "src" / node.get("pkg")).is_dir():
                yield node.get("name")


@pytest.mark.parametrize("namespace", ["", "/robot1", "/cell/left"])
def test_every_node_is_in_one_group(namespace):
    names = sorted(set(our_nodes()))
    assert len(names) >= 8
    for name in names:
        full = f"{namespace}/{name}"
        groups = [k for k, a in analyzers().items() if any(part in full for part in a["contains"])]
        assert len(groups) == 1, (full, groups)


def test_the_analyzers_are_those_of_the_package():
    paths = [one["path"] for one in analyzers().values()]
    assert len(set(paths)) == len(paths)
    for one in analyzers().values():
        assert set(one) <= KNOWN
        assert one["type"] == "diagnostic_aggregator/GenericAnalyzer"


@pytest.mark.node
@pytest.mark.parametrize("given", ["", "arm 0042"])
def test_a_status_says_what_hardware_it_is_of(ros, given):
    ros.add(StackMonitor, {"hardware_id": given})
    (array,) = ros.collect(DiagnosticArray, "/diagnostics")
    (status,) = array.status
    assert status.hardware_id == (given or socket.gethostname())
    assert status.name == "/stack_monitor"
