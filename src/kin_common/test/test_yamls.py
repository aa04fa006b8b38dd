"""YAML from outside: words are bounded, blocks of text are not cut."""

import pytest

from kin_common.checks import LONGEST_NAME
from kin_common.errors import InvalidInput
from kin_common.yamls import load_yaml

LONG = "x" * (LONGEST_NAME + 1)


@pytest.mark.parametrize("text", [f"name: {LONG}", f"{LONG}: 1", f"'{LONG}'", f"[{LONG}]"])
def test_endless_words_are_refused_with_their_line(text):
    with pytest.raises(InvalidInput, match=r"YAML, line 2: holds a word of 1001 characters"):
        load_yaml(f"# a robot\n{text}\n")


def test_long_names_and_longer_blocks_are_read():
    assert load_yaml(f"name: {LONG[:-1]}") == {"name": LONG[:-1]}
    assert load_yaml(f"urdf: '{LONG}'", longest_word=10_000) == {"urdf": LONG}
    assert load_yaml(f"text: |\n  {LONG}\n") == {"text": f"{LONG}\n"}
