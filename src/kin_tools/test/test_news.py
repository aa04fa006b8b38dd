"""What is said on the screen about nodes that change."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_monitor.health import Health, NodeView
from kin_tools.news import News


def node(health, message="is unhealthy: the arm stopped", name="/n"):
    return NodeView(name, health, True, "", 0, 0.0, 0, message)


def test_one_line_when_a_node_is_active_and_none_on_the_way():
    news = News(100.0)
    assert news.lines([node(Health.MISSING)], 100.1) == []
    assert news.lines([node(Health.STARTING)], 101.0) == []
    assert news.lines([node(Health.HEALTHY)], 102.5) == ["/n is active (2.5 s)"]
    assert news.lines([node(Health.HEALTHY)], 110.0) == []


def test_a_fault_is_told_in_the_words_of_the_node():
    news = News(0.0)
    news.lines([node(Health.HEALTHY)], 0.0)
    assert news.lines([node(Health.UNHEALTHY)], 9.0) == ["/n is unhealthy: the arm stopped"]
    assert news.lines([node(Health.HEALTHY)], 20.0) == ["/n is active again (20.0 s)"]


def test_a_node_that_flaps_is_told_seldom():
    news = News(0.0)
    states = itertools.cycle([Health.HEALTHY, Health.UNHEALTHY])
    told = []
    for tick in range(601):  # a change each tenth of a second, for a minute
        told += news.lines([node(next(states))], 0.1 * tick)
    assert 2 <= len(told) <= 13
    assert "changes" in told[-1]


@given(
    st.lists(st.tuples(st.sampled_from(list(Health)), st.floats(0.01, 20.0)), max_size=60),
    st.floats(0.5, 10.0),
)
def test_lines_of_a_node_are_apart_and_end_with_the_truth(steps, calm):
    news, now, times, last = News(0.0, calm), 0.0, [], None
    for health, wait in steps:
        now += wait
        for line in news.lines([node(health)], now):
            times.append(now)
            last = line
    assert all(b - a >= calm - 1e-9 for a, b in itertools.pairwise(times))
    if steps and times:
        for line in news.lines([node(steps[-1][0])], now + calm + 1.0):
            last = line
        if steps[-1][0] == Health.HEALTHY:
            assert "is active" in last
        elif steps[-1][0] >= Health.UNHEALTHY:
            assert "is unhealthy" in last


def test_nodes_do_not_silence_each_other():
    news = News(0.0)
    both = [node(Health.HEALTHY, name="/a"), node(Health.HEALTHY, name="/b")]
    assert len(news.lines(both, 1.0)) == 2


@pytest.mark.parametrize("health", [Health.MISSING, Health.SILENT, Health.UNHEALTHY])
def test_a_node_that_never_was_active_is_not_lost(health):
    assert News(0.0).lines([node(health)], 50.0) == []
