"""Texts that are cut to a length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_core.checks import LONGEST_NAME, name, one_of
from kin_core.errors import InvalidInput, LimitExceeded
from kin_core.texts import LONGEST_SENTENCE, shortened
from kin_ros.status import status_of


@given(st.text(max_size=300), st.integers(40, 200))
def test_a_shortened_text_fits_and_keeps_its_beginning(text, limit):
    short = shortened(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        assert f"({len(text)} characters)" in short
        assert text.startswith(short.split(" ... (")[0])


def test_a_status_never_echoes_a_long_text_whole():
    for error in (InvalidInput("name", "x" * 10**6), ValueError("x" * 10**6)):
        assert len(status_of(error).message) <= LONGEST_SENTENCE


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


def test_names():
    assert name("link", "base") == "base"
    assert name("link", "x" * LONGEST_NAME)
    with pytest.raises(LimitExceeded, match="link: a name of 1000000 characters"):
        name("link", "x" * 10**6)
    with pytest.raises(InvalidInput, match="link: must be a text"):
        name("link", 7)
