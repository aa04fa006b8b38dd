"""What tests of nodes rest on: waiting, a graph of their own, and an end that leaves nothing."""

import psutil
import pytest
from domain_coordinator import domain_id
from rclpy.node import Node
from std_msgs.msg import String

from kin_testing.fixtures import RosGraph, wait_until


def test_waiting_returns_the_value_and_names_what_did_not_come():
    values = iter([0, "", None, 7])
    assert wait_until(lambda: next(values), 5.0) == 7
    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the moon"):
        wait_until(lambda: False, 0.01, "the moon")


@pytest.mark.node
def test_graphs_of_two_domains_do_not_hear_each_other(ros):
    with domain_id() as number:
        other = RosGraph(number)
        try:
            heard, unheard = ros.listen(String, "/words"), other.listen(String, "/words")
            ros.publish(String, "/words", String(data="here"))
            wait_until(lambda: heard, 60.0, "the message")
            assert not unheard
        finally:
            other.close()


@pytest.mark.node
def test_an_exception_in_an_executor_fails_the_test_and_processes_end_with_it():
    def broken(**options):
        node = Node("broken", **options)
        node.create_timer(0.01, lambda: 1 / 0)
        return node

    with domain_id() as number:
        graph = RosGraph(number)
        process = graph.process("kin_monitor", "stack_monitor")
        node = graph.add(broken)
        with pytest.raises(AssertionError, match="the executor"):  # it spins no more
            wait_until(lambda: graph.run_on(node, lambda: False, 2.0), 60.0)
        with pytest.raises(AssertionError, match="ended by an exception"):
            graph.close()
    assert not psutil.pid_exists(process.pid) or process.status() == psutil.STATUS_ZOMBIE
