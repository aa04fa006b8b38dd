"""Requests and answers as messages: their topics and types, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_bags.questions import Exchange, exchange_of, is_answer, is_question, owner_of

NAMES = st.from_regex(r"(/[a-z][a-z0-9_]{0,8}){1,3}", fullmatch=True)


@given(NAMES, st.booleans())
def test_an_exchange_is_found_again_from_its_question(name, action):
    kind = "kin_interfaces/action/Solve" if action else "kin_interfaces/srv/Solve"
    exchange = Exchange(name, kind, action)
    assert exchange_of(exchange.question_topic, exchange.question_type) == exchange
    assert is_question(exchange.question_topic)
    assert not is_answer(exchange.question_topic)
    assert is_answer(exchange.answer_topic)
    assert not is_question(exchange.answer_topic)
    assert owner_of(exchange.question_topic) == owner_of(exchange.answer_topic) == name


@given(NAMES)
def test_an_ordinary_topic_is_neither(name):
    assert not is_question(name)
    assert not is_answer(name)
    assert owner_of(name) == name


@pytest.mark.parametrize(
    ("exchange", "part"),
    [
        (Exchange("/a", "kin_interfaces/srv/CheckReady", False), "Request"),
        (Exchange("/a", "kin_interfaces/action/SweepWorkspace", True), "Goal"),
    ],
)
def test_the_class_of_questions(exchange, part):
    assert exchange.question_class() is getattr(exchange.interface(), part)
    assert exchange.question_type.endswith(f"_{part}")
