"""YAML from outside: what is taken, what is refused, and how far aliases reach."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kin_core.checks import LONGEST_NAME
from kin_core.errors import InvalidInput
from kin_core.yamls import LIMIT_EXPANSION, load_yaml


def laughs(levels, width=10):
    """The well-known bomb: every level holds the one below so many times."""
    lines = ["l0: &l0 [lol]"]
    for k in range(1, levels):
        lines.append(f"l{k}: &l{k} [{', '.join([f'*l{k - 1}'] * width)}]")
    return "\n".join(lines)


def test_aliases_become_copies():
    content = load_yaml("a: &x {n: [1, 2]}\nb: *x\nc: [*x, *x]\nd: &s text\ne: *s")
    assert content == {
        "a": {"n": [1, 2]}, "b": {"n": [1, 2]}, "c": [{"n": [1, 2]}] * 2, "d": "text", "e": "text",
    }  # fmt: skip
    content["b"]["n"].append(3)
    assert content["a"]["n"] == content["c"][0]["n"] == content["c"][1]["n"] == [1, 2]


def test_merge_keys():
    content = load_yaml("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nboth: {<<: [*b, *b], z: 4}")
    assert content["more"] == {"x": 1, "y": 3}
    assert content["both"] == {"x": 1, "y": 2, "z": 4}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (laughs(10), f"aliases add more than {LIMIT_EXPANSION} values to the document"),
        (laughs(40, 2), f"aliases add more than {LIMIT_EXPANSION} values"),
        ("a: &x [" + "1, " * 300 + "]\nb: [" + "*x, " * 300 + "]", "aliases add more than"),
        ("a: &x {<<: &y {p: 1}}\nb: [" + "*x, " * 9000 + "]", "aliases add more than"),
        ("a: &x [*x]", "line 1: the alias 'x' stands within itself"),
        ("a: &x {b: {c: *x}}", "the alias 'x' stands within itself"),
        ("a: *x", "undefined alias"),
        ("a: &x " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*x" + "]" * 40, "nests deeper"),
        ("a: !!binary aGVsbG8=", "line 1: a value of the type binary is not allowed"),
        ("a: 1:30", "line 1: '1:30' is no number; write it in quotes if it is a text"),
        ("a: 1:30.5", "'1:30.5' is no number"),
        ("a: -190:20:30", "is no number"),
        ("a: 2026-11-18", "a value of the type timestamp is not allowed; write it in quotes"),
        ("a: !!set {b, c}", "of the type set is not allowed"),
        ("a: !!omap [b: 1]", "of the type omap is not allowed"),
        ("a: " + "9" * 400, "a whole number of 400 digits is too large"),
        ("a: " + "9" * 5000, "holds a word of 5000 characters"),
        ("a: 18446744073709551616", "is too large"),
        ("k" * 1001 + ": 1", "holds a word of 1001 characters"),
        ("? [a]\n: 1", "a key must be a plain value"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(text, sentence):
    with pytest.raises(InvalidInput) as refusal:
        load_yaml(text, name="f.yaml")
    assert sentence in str(refusal.value)
    assert str(refusal.value).startswith("f.yaml")
    assert "\n" not in str(refusal.value)


def test_what_was_quoted_is_text():
    text = "{a: '1:30', b: \"2026-11-18\", c: 18446744073709551615, d: 0x1F, e: 1e3, f: 1.0e+3}"
    assert load_yaml(text) == {
        "a": "1:30", "b": "2026-11-18", "c": 2**64 - 1, "d": 31, "e": "1e3", "f": 1000.0,
    }  # fmt: skip


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab:-*&", max_size=4)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text("ab", max_size=2), inner)
        ),
        max_leaves=8,
    ),
    st.integers(0, 3),
)
def test_documents_with_aliases_are_what_they_say(part, times):
    """A shared object is written with anchor and aliases; what is read is the same document."""
    document = {"first": part, "again": [part] * times}
    assert load_yaml(yaml.safe_dump(document)) == document


@pytest.mark.parametrize("source", [None, 3, b"a: 1", ["a: 1"]])
def test_a_source_is_a_text_or_a_path(source):
    with pytest.raises(InvalidInput, match="must be a text or a Path"):
        load_yaml(source)


LONG = "x" * (LONGEST_NAME + 1)


@pytest.mark.parametrize("text", [f"name: {LONG}", f"{LONG}: 1", f"'{LONG}'", f"[{LONG}]"])
def test_endless_words_are_refused_with_their_line(text):
    with pytest.raises(InvalidInput, match=r"YAML, line 2: holds a word of 1001 characters"):
        load_yaml(f"# a robot\n{text}\n")


def test_long_names_and_longer_blocks_are_read():
    assert load_yaml(f"name: {LONG[:-1]}") == {"name": LONG[:-1]}
    assert load_yaml(f"urdf: '{LONG}'", longest_word=10_000) == {"urdf": LONG}
    assert load_yaml(f"text: |\n  {LONG}\n") == {"text": f"{LONG}\n"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\na: 2", "f.yaml, line 2: the key 'a' is duplicated"),
        ("a: [", "f.yaml, line 2: did not find expected node content"),
        ("[" * 100 + "]" * 100, "nests deeper than 64 levels"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a\x00", "f.yaml: is not valid YAML"),
        ("a" * 200, "is larger than 100 bytes"),
    ],
)
def test_yaml_refusals(text, sentence):
    with pytest.raises(InvalidInput) as refusal:
        load_yaml(text, name="f.yaml", limit_bytes=100 if text == "a" * 200 else 1000)
    assert sentence in str(refusal.value)


def test_yaml_files(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("x: [1, 2.5, true, null, text]\n")
    assert load_yaml(file) == {"x": [1, 2.5, True, None, "text"]}
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_yaml(tmp_path / "missing.yaml")
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InvalidInput, match="UTF-8"):
        load_yaml(file)


@given(st.text(max_size=100))
def test_any_text_is_yaml_or_refused(text):
    try:
        load_yaml(text)
    except InvalidInput as refusal:
        assert str(refusal)
