"""The security policy: what is written can be read, and names what a node uses."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kin_core.errors import InvalidInput
from kin_monitor.node import StackMonitor
from kin_testing.fixtures import wait_until
from kin_tools.policy import Rights, main, moved, read_policy, rights_of, write_policy

ROOT = Path(__file__).resolve().parents[3]
POLICY = ROOT / "docker" / "security" / "policy.xml"


def test_round_trip():
    rights = Rights()
    rights.add("topics", "publish", ["/a", "/b<&"])
    rights.add("actions", "execute", ["/solve"])
    read = read_policy(write_policy({"/ns/node": rights}))
    assert list(read) == ["/ns/node"]
    enclave, found = read["/ns/node"]
    assert enclave == "/kinstack/node"
    assert not found.missing(rights)
    assert not rights.missing(found)
    assert Rights().missing(rights) == ["execute /solve", "publish /a", "publish /b<&"]


def test_not_a_policy():
    with pytest.raises(InvalidInput):
        read_policy("<policy")


def test_moved_into_namespaces(tmp_path):
    rights = Rights()
    rights.add("topics", "publish", ["/a", "/diagnostics"])
    nodes = moved({"/node": rights}, "robot/")
    assert list(nodes) == ["/robot/node"]
    assert nodes["/robot/node"].names["topics", "publish"] == {"/robot/a", "/diagnostics"}
    assert moved({"/node": rights}, "/")["/node"].names == rights.names
    # For two stacks at once: one enclave, a profile for each.
    made = tmp_path / "policy.xml"
    assert main(["--from", str(POLICY), "--into", "/", "/control", "--output", str(made)]) == 0
    here, there = read_policy(POLICY.read_text()), read_policy(made.read_text())
    assert set(there) == {*here, *(f"/control{name}" for name in here)}
    assert there["/control/hier_ik"][0] == here["/hier_ik"][0] == "/kinstack/hier_ik"
    assert made.read_text().count("<enclave ") == len(here)


def test_what_cannot_be_read_is_said(tmp_path, capsys):
    assert main(["--from", str(tmp_path / "none.xml")]) == 2
    assert "none.xml" in capsys.readouterr().err


@pytest.mark.node
def test_the_monitor_uses_what_its_policy_allows(ros):
    ros.add(StackMonitor)
    wait_until(
        lambda: ros.node.get_service_names_and_types_by_node("stack_monitor", "/"), 60.0, "services"
    )
    used = rights_of(ros.node, "stack_monitor", "/")
    assert "/stack_monitor/check_ready" in used.names["services", "reply"]
    assert "/stack_state" in used.names["topics", "publish"]
    allowed = read_policy(POLICY.read_text())["/stack_monitor"][1]
    # Clients of other nodes' services come and go with those nodes.
    used.names.pop(("services", "request"))
    assert not allowed.missing(used)


def test_every_launched_node_has_an_enclave_of_its_own():
    policy = read_policy(POLICY.read_text())
    enclaves = [enclave for enclave, _ in policy.values()]
    assert len(set(enclaves)) == len(enclaves)
    for path in sorted((ROOT / "launch").glob("*.launch.xml")):
        for node in ElementTree.parse(path).iter("node"):
            if node.get("pkg") in ("diagnostic_aggregator", "tf2_ros", "rviz2"):
                continue
            enclave, rights = policy[f"/{node.get('name')}"]
            assert enclave == f"/kinstack/{node.get('name')}"
            assert not any("*" in name for names in rights.names.values() for name in names)
            told = {item.get("name"): item.get("value") for item in node.iter("env")}
            assert told.get("ROS_SECURITY_ENCLAVE_OVERRIDE") == enclave, path.name
