"""What of the nodes' output belongs on a quiet screen."""

import pytest

from kin_tools.run_log import Screen

LOG = "[{}] [1731900000.123456789] [ft_controller]: the arm stopped"


@pytest.mark.parametrize(
    ("text", "error", "shown"),
    [
        (LOG.format("INFO"), True, False),
        (LOG.format("WARN"), True, False),
        (LOG.format("ERROR"), True, True),
        (LOG.format("FATAL"), True, True),
        ("\x1b[31m" + LOG.format("ERROR"), True, True),
        ("[ft_controller-1] " + LOG.format("ERROR"), False, True),
        ("[ft_controller-1] " + LOG.format("INFO"), False, False),
        ("Traceback (most recent call last):", True, True),
        ("a banner of some library", False, False),
    ],
)
def test_a_quiet_screen_shows_what_went_wrong(text, error, shown):
    assert Screen({}, quiet=True).wants("n", text, error=error) == shown
    assert Screen({}).wants("n", text, error=error)


def test_a_line_with_other_numbers_is_not_new():
    screen = Screen({}, quiet=True)
    shown = [
        screen.wants("n", LOG.format("ERROR") + f" at {k / 3} s", error=True) for k in range(500)
    ]
    assert shown == [True] + [False] * 499
    assert screen.wants("m", LOG.format("ERROR") + " at 1.5 s", error=True)
    assert screen.wants("n", LOG.format("ERROR") + " for good", error=True)


def test_lines_without_end_take_no_memory_without_end():
    screen = Screen({}, quiet=True)
    for k in range(5000):
        screen.wants("n", "error " + "x" * k, error=True)
    assert len(screen.kinds) <= 1000
