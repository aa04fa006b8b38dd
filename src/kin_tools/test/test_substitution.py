"""Substitutions: what stands for itself, what is replaced, and what is refused."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_tools.substitution import (
    Call,
    Scope,
    SubstitutionError,
    find_share,
    parse,
    parse_command,
    perform,
)


def scope(**values):
    return Scope(values, Path("/there"))


def performed(text, **values):
    return perform(parse(text), scope(**values))


@given(st.text(st.characters(exclude_characters="\\$", exclude_categories=["Cs"])))
def test_a_text_without_a_dollar_stands_for_itself(text):
    assert performed(text) == text


@given(
    st.text(st.characters(exclude_characters="\\$\"'() ", exclude_categories=["Cs"]), min_size=1)
)
def test_what_an_argument_holds_comes_back_quoted_or_not(text):
    assert performed(f"<$(var missing {text})>") == f"<{text}>"
    assert performed(f"<$(var missing '{text}')>") == f"<{text}>"
    assert performed("<$(var given)>", given=text) == f"<{text}>"


def test_names_defaults_and_folders(monkeypatch):
    monkeypatch.setenv("LX", "set")
    monkeypatch.delenv("LX2", raising=False)
    assert performed("$(env LX)/$(env LX2 none)/$(dirname)") == "set/none//there"
    assert performed("$(var $(env LX2 b))", b="2") == "2"
    assert performed("\\$(var a)") == "$(var a)"
    assert performed("$(var a 'two words')") == "two words"
    assert performed("$(find-pkg-share kin_bringup)") == find_share("kin_bringup")


def test_what_is_looked_up_is_remembered():
    here = scope(a="1")
    perform(parse("$(var a) $(var b 2)"), here)
    assert here.read == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("$(", "no name after"),
        ("$(var a", "is not closed"),
        ("$(var 'a)", "is not closed"),
        ("$(vra a)", r"did you mean \$\(var"),
        ("$(dirname x)", "takes 0 arguments"),
        ("$(var)", "takes 1 or 2 arguments"),
        ("$(env A " * 300 + "x" + ")" * 300, "nest deeper"),
    ],
)
def test_what_cannot_be_read(text, sentence):
    with pytest.raises(SubstitutionError, match=sentence):
        parse(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("$(var robt)", "did you mean 'robot'"),
        ("$(env NO_SUCH_VARIABLE)", "is not set"),
        ("$(find-pkg-share nopkg)", "'nopkg' is not installed"),
    ],
)
def test_what_has_no_value(text, sentence):
    assert "NO_SUCH_VARIABLE" not in os.environ
    with pytest.raises(SubstitutionError, match=sentence):
        performed(text, robot="1")


def test_a_command_is_split_as_by_a_shell_but_never_inside_a_substitution():
    words = parse_command("echo 'a b' x$(var c)y $(var d 'e f')")
    assert words[:2] == [("echo",), ("a b",)]
    assert words[2] == ("x", Call("var", (("c",),)), "y")
    assert [perform(word, scope(c="1 2")) for word in words] == ["echo", "a b", "x1 2y", "e f"]
    with pytest.raises(SubstitutionError, match="No closing quotation"):
        parse_command("echo 'a")
