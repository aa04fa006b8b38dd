"""Checks of outside data: what is refused is named, with a sentence."""

import math

import numpy as np
import pytest

from kin_core import checks, errors
from kin_core.checks import one_of
from kin_core.errors import InvalidInput


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: checks.finite("v", [1.0, math.nan]), "v: must be finite, got nan at 1"),
        (lambda: checks.finite("v", [[0.0], [math.inf]]), "got inf at [1, 0]"),
        (lambda: checks.finite("v", ["a"]), "v: must hold numbers"),
        (lambda: checks.shape("v", [1.0, 2.0], (3,)), "v: must have the shape (3), got (2,)"),
        (lambda: checks.shape("v", [1.0], (None, 3)), "(any, 3)"),
        (lambda: checks.quaternion("q", [0, 0, 0, 2]), "q: must be a quaternion of norm 1, got"),
        (lambda: checks.quaternion("q", [0, 0, 1]), "q: must have the shape (4), got (3,)"),
        (lambda: checks.number("n", True), "n: must be a number, got True"),
        (lambda: checks.positive("n", 0.0), "n: must be greater than zero, got 0"),
        (lambda: checks.within("n", 5, 0, 1), "n: must be between 0 and 1, got 5"),
        (lambda: checks.one_of("m", "fats", ("fast", "paper")), "did you mean 'fast'?"),
        (lambda: checks.one_of("m", "zzz", ("fast", "paper")), "Known: fast, paper"),
        (lambda: checks.count("boxes", 11, 10), "boxes: 11 is more than the limit of 10"),
    ],
)
def test_checks_speak(check, sentence):
    with pytest.raises(errors.KinError) as refusal:
        check()
    assert sentence in str(refusal.value)


def test_finite_returns_the_array():
    np.testing.assert_array_equal(checks.finite("v", [1, 2]), np.array([1.0, 2.0]))


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(InvalidInput) as refusal:
        one_of("mode", "qqq", ("plain", "fancy"))
    assert str(refusal.value) == "mode: 'qqq' is not known. Known: fancy, plain"
    with pytest.raises(InvalidInput) as refusal:
        one_of("mode", "fanci", ("plain", "fancy"))
    assert str(refusal.value).startswith("mode: 'fanci' is not known; did you mean 'fancy'? Known:")
    # Comparing a text of a million characters with every known name would take minutes.
    with pytest.raises(InvalidInput) as refusal:
        one_of("mode", "fancy" * 200_000, ("plain", "fancy"))
    assert len(str(refusal.value)) < 400
