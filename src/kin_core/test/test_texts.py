"""Texts that are cut to a length."""

from hypothesis import given
from hypothesis import strategies as st

from kin_core.texts import did_you_mean, lined_up, shortened


@given(st.text(max_size=300), st.integers(40, 200))
def test_a_shortened_text_fits_and_keeps_its_beginning(text, limit):
    short = shortened(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        assert f"({len(text)} characters)" in short
        assert text.startswith(short.split(" ... (")[0])


def test_the_nearest_word_is_suggested_and_no_other():
    assert did_you_mean("pram", ["param", "remap"]) == "; did you mean 'param'?"
    assert did_you_mean("pram", ["param"], "<{}>") == "; did you mean <param>?"
    assert did_you_mean("completely_other", ["param"]) == ""
    assert did_you_mean("x", []) == ""


def test_columns_line_up_whatever_is_longest():
    lines = lined_up(("a", "long name", "n"), [("xyz", "1", "7"), ("", "2", "1234")], right=2)
    assert lines == [
        "a    long name     n",
        "---  ---------  ----",
        "xyz  1             7",
        "     2          1234",
    ]
    assert lined_up(("a", "b"), []) == ["a  b", "-  -"]
