"""Bets on private parts of rclpy: all hold with the one installed, and a lost one is logged."""

import ast
from datetime import date
from pathlib import Path

import pytest
from rclpy import logging

import kin_ros.node
from kin_ros.bets import BETS, Bet, rclpy_version

SOURCES = Path(kin_ros.node.__file__).parent


@pytest.fixture
def lines(monkeypatch):
    """What is logged as a warning."""
    found = []
    logger = logging.get_logger("kin_ros")
    monkeypatch.setattr(type(logger), "warning", lambda self, text, **_: found.append(text))
    return found


def test_a_lost_bet_is_logged_once_with_versions_and_date(lines, monkeypatch):
    monkeypatch.setattr("kin_ros.bets.BETS", {})
    bet = Bet(name="a trick", otherwise="it is done slowly")
    assert bet.holds(("text", "upper"), (int, "real"))
    assert not lines
    assert not bet.holds(("text", "upper", "trick"))
    assert not bet.holds(("text", "trick"))
    assert lines == [
        f"a trick: made for {bet.made_for}, but rclpy {rclpy_version()} has no str.trick; it is"
        f" done slowly. To be removed by {bet.remove_by.isoformat()}."
    ]


def test_no_bet_was_lost_and_none_is_overdue():
    assert len(BETS) == 5
    assert not [bet.name for bet in BETS.values() if bet.told]
    assert all(bet.remove_by >= date(2026, 11, 18) for bet in BETS.values())


def test_who_imports_from_inside_rclpy_has_made_a_bet():
    for path in SOURCES.glob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        if any(name.startswith("rclpy.impl") for name in modules):
            assert "kin_ros.bets" in modules, path.name
