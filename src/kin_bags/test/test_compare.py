"""Tolerances: what they let through, and what they do not."""

import math

import numpy as np
import pytest
from compared_messages import STORE, Header, Time, joints, verdict
from hypothesis import given
from hypothesis import strategies as st

from kin_bags.compare import Rule, Tolerances, compare
from kin_core.errors import InvalidInput

PoseArray = STORE.types["geometry_msgs/msg/PoseArray"]
Pose = STORE.types["geometry_msgs/msg/Pose"]
Point = STORE.types["geometry_msgs/msg/Point"]
Quaternion = STORE.types["geometry_msgs/msg/Quaternion"]


def poses(*xs):
    return PoseArray(
        Header(Time(0, 0), ""),
        [Pose(Point(x, 0.0, 0.0), Quaternion(0.0, 0.0, 0.0, 1.0)) for x in xs],
    )


def test_equal_is_good():
    assert verdict(joints([1.0, 2.0]), joints([1.0, 2.0]), {}).good


def test_without_rules_everything_must_be_equal():
    result = verdict(joints([1.0]), joints([1.0 + 1e-15]), {})
    assert not result.good
    assert result.first.path == "position"


def test_absolute_and_relative():
    assert verdict(joints([100.0]), joints([100.5]), {"relative": 0.01}).good
    assert not verdict(joints([100.0]), joints([101.5]), {"relative": 0.01}).good
    assert verdict(joints([0.0]), joints([1e-9]), {"absolute": 1e-8, "relative": 0.01}).good


def test_field_rules_override():
    rules = {"absolute": 1.0, "fields": {"position": {"absolute": 1e-3}, "header.*": "ignore"}}
    assert verdict(joints([1.0]), joints([1.0005], sec=9), rules).good
    assert not verdict(joints([1.0]), joints([1.1]), rules).good


def test_angles_wrap():
    rules = {"fields": {"position": {"angle": True, "absolute": 1e-6}}}
    assert verdict(joints([math.pi]), joints([-math.pi]), rules).good
    assert verdict(joints([0.1]), joints([0.1 + 6 * math.pi]), rules).good
    assert not verdict(joints([0.1]), joints([0.2]), rules).good


def test_text_and_length_and_count():
    assert verdict(joints([1]), joints([1], name="b"), {"absolute": 9}).first.path == "name[0]"
    assert verdict(joints([1]), joints([1, 2]), {"absolute": 9}).first.path == "position (length)"
    result = compare([("/t", joints([1]))] * 3, [("/t", joints([1]))] * 2, Tolerances({}))
    assert result.first.path == "number of messages"
    assert not compare([], [], Tolerances({})).good


def test_nan_and_infinity():
    odd = [math.nan, math.inf, -math.inf]
    assert verdict(joints(odd), joints(odd), {}).good
    assert not verdict(joints([math.nan]), joints([1.0]), {"absolute": 1e9}).good
    assert not verdict(joints([1.0]), joints([math.nan]), {"absolute": 1e9}).good
    assert not verdict(joints([math.inf]), joints([-math.inf]), {"absolute": 1e9}).good


def test_rows_in_any_order():
    rules = {"fields": {"position": {"unordered": 2, "absolute": 1e-6}}}
    assert verdict(joints([1, 2, 3, 4]), joints([3, 4, 1, 2]), rules).good
    assert not verdict(joints([1, 2, 3, 4]), joints([3, 4, 1, 9]), rules).good
    assert not verdict(joints([1, 2, 3, 4]), joints([1, 2, 1, 2]), rules).good  # one is lost
    assert not verdict(joints([1, 2, 3]), joints([1, 2, 3]), rules).good  # no whole rows


def test_rows_that_occur_several_times_are_counted():
    rules = {"fields": {"position": {"unordered": True}}}
    assert verdict(joints([1, 1, 2]), joints([2, 1, 1]), rules).good
    result = verdict(joints([1, 1, 2]), joints([1, 2, 2]), rules)
    assert "any order" in result.first.path


def test_unordered_angles():
    rules = {"fields": {"position": {"unordered": True, "angle": True, "absolute": 1e-6}}}
    assert verdict(joints([0.0, math.pi]), joints([-math.pi, 2 * math.pi]), rules).good


def test_messages_in_any_order():
    rules = {"fields": {"poses": {"unordered": True, "absolute": 1e-6},
                        "poses.position.*": {"absolute": 1e-6, "unordered": False}}}  # fmt: skip
    assert verdict(poses(1.0, 2.0), poses(2.0, 1.0 + 1e-7), rules).good
    result = verdict(poses(1.0, 2.0), poses(2.0, 2.0), rules)
    assert "in any order" in result.first.path


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.floats(1e-9, 1e3),
    st.integers(0, 19),
    st.sampled_from([-1, 1]),
)
def test_ten_times_the_tolerance_is_always_seen(values, tolerance, index, sign):
    changed = list(values)
    changed[index % len(values)] += sign * 10 * tolerance
    rules = {"absolute": tolerance}
    assert verdict(joints(values), joints(values), rules).good
    assert not verdict(joints(values), joints(changed), rules).good


@given(st.floats(-100, 100), st.integers(-20, 20), st.floats(-0.009, 0.009))
def test_angle_rule_ignores_whole_turns(angle, turns, noise):
    rule = Rule(angle=True, absolute=0.01)
    gap = rule.difference(np.array([angle]), np.array([angle + turns * 2 * math.pi + noise]))
    assert gap[0] <= 0.01


@pytest.mark.parametrize(
    "rules",
    [
        [1],
        {"/t": 3},
        {"/t": {"absolut": 1}},
        {"/t": {"absolute": -1}},
        {"/t": {"absolute": "x"}},
        {"/t": {"absolute": math.nan}},
        {"/t": {"fields": [1]}},
        {"/t": {"fields": {"a": 3}}},
        {"/t": {"fields": {"a": {"unordered": -2}}}},
    ],
)
def test_bad_rules(rules):
    with pytest.raises(InvalidInput):
        Tolerances(rules)
