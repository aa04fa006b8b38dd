"""Texts that are cut to a length."""

from hypothesis import given
from hypothesis import strategies as st

from kin_core.texts import shortened


@given(st.text(max_size=300), st.integers(40, 200))
def test_a_shortened_text_fits_and_keeps_its_beginning(text, limit):
    short = shortened(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        assert f"({len(text)} characters)" in short
        assert text.startswith(short.split(" ... (")[0])
