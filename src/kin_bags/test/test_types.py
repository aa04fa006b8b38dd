"""Types by their names: of early releases, and the parts of services."""

import pytest
from kin_interfaces.srv import CheckReady
from rclpy.serialization import serialize_message

from kin_bags.types import TypeRegistry
from kin_core.errors import InvalidInput


def test_names_of_types_of_early_releases(tmp_path):
    registry = TypeRegistry()
    registry.learn_from_bag("nowhere/Pair", "int32 a\nint32 b\n")
    assert (
        registry.decode("nowhere/Pair", b"\x00\x01\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00").b == 2
    )
    for name in ("Pair", "a/b/c/d", ""):
        with pytest.raises(InvalidInput, match="is no name of a type"):
            registry.learn_from_bag(name, "int32 a\n")


def test_types_of_services_are_messages():
    registry = TypeRegistry()
    name = "kin_interfaces/srv/CheckReady_Request"
    text = registry.definition(name)
    assert registry.digest(name) == registry.store.hash_rihs01(name)
    raw = bytes(serialize_message(CheckReady.Request(nodes=["a"], wait=2.0)))
    other = TypeRegistry()
    other.learn_from_bag(name, text)  # all that is needed stands in the bag
    assert other.decode(name, raw).wait == 2.0
    with pytest.raises(InvalidInput, match="no installed package"):
        registry.learn("nope/msg/Nothing")
