"""``python -m kin_tools.policy``: a least-privilege SROS2 policy from what a running stack uses.

Each node gets an enclave of its own that allows exactly the topics, services and actions that the
graph shows for it; see docs/security.md. With ``--from FILE --into NAMESPACE`` it reads such a
policy and writes it for stacks in other namespaces.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from defusedxml import ElementTree

from kin_core.errors import InvalidInput

__all__ = ["Rights", "main", "moved", "read_policy", "rights_of", "write_policy"]

#: What every node may need although the graph of a given moment need not show it.
_ALWAYS = {("topics", "subscribe"): ("/clock", "/parameter_events", "/tf", "/tf_static")}
#: Names that are the same for everybody, whatever the namespace.
_GLOBAL = ("/clock", "/diagnostics", "/parameter_events", "/rosout", "/tf", "/tf_static")
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by python -m kin_tools.policy from a running stack. -->
"""
_KINDS = (
    ("topics", "topic", "publish"),
    ("topics", "topic", "subscribe"),
    ("services", "service", "reply"),
    ("services", "service", "request"),
    ("actions", "action", "execute"),
    ("actions", "action", "call"),
)


@dataclass
class Rights:
    """What one node may do: names by (what, how), such as ("topics", "publish")."""

    names: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def add(self, what: str, how: str, names: Iterable[str]) -> None:
        """Allow more."""
        self.names.setdefault((what, how), set()).update(names)

    def missing(self, used: Rights) -> list[str]:
        """What ``used`` holds and this does not allow, for people."""
        return [
            f"{how} {name}"
            for (what, how), names in sorted(used.names.items())
            for name in sorted(names - self.names.get((what, how), set()))
        ]


def rights_of(observer: Any, name: str, namespace: str) -> Rights:
    """What a node uses now.

    Args:
        observer: Any rclpy node of the same graph.
        name: The node's name.
        namespace: The node's namespace.
    """
    from rclpy import action

    look = {
        ("topics", "publish"): observer.get_publisher_names_and_types_by_node,
        ("topics", "subscribe"): observer.get_subscriber_names_and_types_by_node,
        ("services", "reply"): observer.get_service_names_and_types_by_node,
        ("services", "request"): observer.get_client_names_and_types_by_node,
        ("actions", "execute"): partial(action.get_action_server_names_and_types_by_node, observer),
        ("actions", "call"): partial(action.get_action_client_names_and_types_by_node, observer),
    }
    rights = Rights()
    for (what, how), names in _ALWAYS.items():
        rights.add(what, how, names)
    for (what, how), ask in look.items():
        rights.add(what, how, (n for n, _ in ask(name, namespace) if "/_action/" not in n))
    return rights


def write_policy(nodes: Mapping[str, Rights], root: str = "/kinstack") -> str:
    """The policy file.

    Args:
        nodes: By full node name.
        root: Enclaves are named below it, by the node's name.
    """
    policy = Element("policy", version="0.2.0")
    enclaves = SubElement(policy, "enclaves")
    profiles: dict[str, Element] = {}
    for full, rights in sorted(nodes.items(), key=lambda node: node[0].rsplit("/", 1)[::-1]):
        namespace, _, name = full.rpartition("/")
        if name not in profiles:
            enclave = SubElement(enclaves, "enclave", path=f"{root}/{name}")
            profiles[name] = SubElement(enclave, "profiles")
        profile = SubElement(profiles[name], "profile", ns=namespace or "/", node=name)
        for what, tag, how in _KINDS:
            names = sorted(rights.names.get((what, how), ()))
            block = SubElement(profile, what, {how: "ALLOW"}) if names else profile
            for entry in names:
                SubElement(block, tag).text = entry
    indent(policy)
    return f"{_HEAD}{tostring(policy, encoding='unicode')}\n"


def moved(nodes: Mapping[str, Rights], namespace: str) -> dict[str, Rights]:
    """The same nodes in another namespace; names that belong to everybody stay.

    Args:
        nodes: By full node name, of a stack without a namespace.
        namespace: Such as "/robot1"; "/" for none.
    """
    prefix = "/" + namespace.strip("/") if namespace.strip("/") else ""
    found = {}
    for full, rights in nodes.items():
        there = Rights()
        for (what, how), names in rights.names.items():
            there.add(what, how, (n if n in _GLOBAL else prefix + n for n in names))
        found[prefix + full] = there
    return found


def read_policy(text: str) -> dict[str, tuple[str, Rights]]:
    """Enclave and rights by full node name.

    Raises:
        InvalidInput: It is not a policy.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InvalidInput("policy", str(error)) from None
    found = {}
    for enclave in root.iter("enclave"):
        for profile in enclave.iter("profile"):
            rights = Rights()
            for what, tag, how in _KINDS:
                for block in profile.iter(what):
                    if block.get(how) == "ALLOW":
                        rights.add(what, how, (entry.text or "" for entry in block.iter(tag)))
            full = f"{profile.get('ns', '/').rstrip('/')}/{profile.get('node')}"
            found[full] = (enclave.get("path", ""), rights)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="kin_tools.policy",
        description="Write an SROS2 policy for the nodes of the running stack.",
    )
    parser.add_argument("--namespace", default="/", help="of the running stack")
    parser.add_argument("--output", type=Path, help="file to write; the terminal if not given")
    parser.add_argument("--from", dest="source", type=Path, help="a policy to read instead")
    parser.add_argument(
        "--into", nargs="+", default=["/"], help="with --from: namespaces that the stacks will have"
    )
    options = parser.parse_args(argv)
    if options.source:
        try:
            known = read_policy(options.source.read_text())
        except (InvalidInput, OSError) as error:
            print(f"policy: {options.source}: {error}", file=sys.stderr)
            return 2
        plain = {name: rights for name, (_, rights) in known.items()}
        nodes = {k: v for space in options.into for k, v in moved(plain, space).items()}
    else:
        nodes = _running(options.namespace)
        if not nodes:
            print(f"policy: no nodes in {options.namespace}: is it running?", file=sys.stderr)
            return 1
    text = write_policy(nodes)
    if options.output:
        options.output.write_text(text)
    else:
        print(text, end="")
    return 0


def _running(namespace: str) -> dict[str, Rights]:
    from tf2_msgs.msg import TFMessage

    from kin_ros.client import open_client
    from kin_ros.qos import STATE

    space = "/" + namespace.strip("/")
    with open_client("policy") as client:
        # Who shows robots listens to their joints while somebody listens to tf.
        client.node.create_subscription(TFMessage, "/tf", lambda _: None, STATE)
        client.spin_until(lambda: False, 3.0)  # the time that discovery takes
        names = [
            name
            for name, where in client.node.get_node_names_and_namespaces()
            if where == space and name != client.node.get_name() and not name.startswith("_")
        ]
        return {
            f"{space.rstrip('/')}/{name}": rights_of(client.node, name, space) for name in names
        }


if __name__ == "__main__":
    sys.exit(main())
