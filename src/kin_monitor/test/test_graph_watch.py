"""Watching real nodes: which are counted, and what is known of them."""

import pytest
from rclpy.node import Node

from kin_monitor.graph_watch import GraphWatch, resolve_name
from kin_monitor.health import Health
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until


class Plain(KinNode):
    """A managed node that does nothing."""

    def __init__(self, **arguments):
        super().__init__("plain", ParameterSet, **arguments)


@pytest.mark.parametrize(
    ("name", "namespace", "full"),
    [("a", "/", "/a"), ("a", "/r", "/r/a"), ("/a", "/r", "/a"), ("b/a", "/r", "/r/b/a")],
)
def test_names_are_relative_to_the_namespace(name, namespace, full):
    assert resolve_name(name, namespace) == full


@pytest.mark.node
def test_nodes_of_the_namespace_are_watched_and_no_others(ros):
    inside = ros.add(Plain, {}, "/robot")
    ros.add(Plain, {}, "/other")
    observer = ros.add(lambda **options: Node("_observer", **options))
    watch = ros.run_on(observer, lambda: GraphWatch(observer, "/robot", ["plain", "ghost"]))

    def looked():
        return {node.name: node for node in ros.run_on(observer, watch.poll).nodes}

    wait_until(lambda: looked()["/robot/plain"].health == Health.HEALTHY, 60.0, "the node")
    seen = looked()
    assert seen.keys() == {"/robot/plain", "/robot/ghost"}  # the observer is hidden
    assert seen["/robot/plain"].lifecycle == "active"
    assert seen["/robot/ghost"].health == Health.MISSING
    ros.run_on(inside, inside.trigger_deactivate)
    wait_until(lambda: looked()["/robot/plain"].lifecycle == "inactive", 60.0, "its new state")
    assert looked()["/robot/plain"].health == Health.STARTING
    ros.run_on(observer, watch.close)
