"""Names, namespaces and command lines of the processes of a plan."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kin_tools.process_spec import ProcessSpec, RosArguments, check_node_name, join_namespace

TOKENS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@pytest.mark.parametrize("bad", ["a b", "/a//b", "1a", "a/1", "ä"])
def test_bad_namespaces(bad):
    with pytest.raises(ValueError, match="namespace"):
        join_namespace(None, bad)


@pytest.mark.parametrize("bad", ["", "a/b", "1a", "a b", "a" * 300])
def test_bad_node_names(bad):
    with pytest.raises(ValueError, match="node name"):
        check_node_name(bad)


@given(st.lists(TOKENS, max_size=3), st.lists(TOKENS, min_size=1, max_size=3))
def test_a_relative_namespace_is_appended_and_an_absolute_one_replaces(base, inner):
    outer = "/" + "/".join(base)
    assert join_namespace(outer, "/".join(inner)) == "/" + "/".join([*base, *inner])
    assert join_namespace(outer, "/" + "/".join(inner)) == "/" + "/".join(inner)
    assert join_namespace(outer, None) == outer
    assert join_namespace(None, None) is None


def test_words_of_a_node_in_the_order_that_decides_what_overrides_what(tmp_path):
    ros = RosArguments("n", "/r", (Path("/file.yaml"), {"a": 1}), (("in", "out"),))
    spec = ProcessSpec("r/n", ("program", "word"), ros)
    words = spec.command(tmp_path)
    inline = tmp_path / "r.n.params1.yaml"
    assert words == [
        *("program", "word", "--ros-args", "-r", "__node:=n", "-r", "__ns:=/r"),
        *("--params-file", "/file.yaml", "--params-file", str(inline), "-r", "in:=out"),
    ]
    assert yaml.safe_load(inline.read_text()) == {"/r/n": {"ros__parameters": {"a": 1}}}
    assert (ros.full_name, ros.graph_name) == ("/r/n", "/r/n")
    nameless = RosArguments(None, None, ({"a": 1},))
    nameless.words(tmp_path, "x")
    assert "/**" in yaml.safe_load((tmp_path / "x.params0.yaml").read_text())
    assert (nameless.full_name, nameless.graph_name) == (None, None)
    assert RosArguments("n").graph_name == "/n"
