"""What is refused, and where; what the plan says besides command lines."""

import pytest

from kin_tools.errors import LaunchError
from kin_tools.launch_xml import load_launch_file, show_arguments


def refuse(tmp_path, text, arguments=None):
    file = tmp_path / "x.launch.xml"
    file.write_text(text)
    with pytest.raises(LaunchError) as caught:
        load_launch_file(file, arguments)
    assert caught.value.file.name == "x.launch.xml"
    return caught.value


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("<timer period='1'/>", 3, ["<timer>", "not supported", "<launch>"]),
        ("<set_env name='a' value='b'/>", 3, ["set_env"]),
        ("<push-ros-namespace namespace='a'/>", 3, ["did you mean <push_ros_namespace>"]),
        ("<node pkg='lxpkg' exec='plain' launch-prefix='gdb'/>", 3, ["'launch-prefix'", "allowed"]),
        ("<node pkg='lxpkg' exec='plain' nam='x'/>", 3, ["did you mean 'name'"]),
        ("<node pkg='lxpkg'/>", 3, ["'exec' is missing"]),
        ("<node pkg='lxpkg' exec='plain'><parm name='a' value='1'/></node>", 3, ["<param>"]),
        ("<node pkg='lxpkg' exec='plain'>\n<remap from='a'/></node>", 4, ["'to' is missing"]),
        ("<node pkg='lxpkg' exec='plain'><param name='a' value='1'><param name='b' value='1'/>"
         "</param></node>", 3, ["nested"]),
        ("<node pkg='lxpkg' exec='plain'><param name='a' type='str' value='1'/></node>", 3,
         ["'type'"]),
        ("<node pkg='lxpkg' exec='plain'><param from='/nope.yaml'/></node>", 3, ["/nope.yaml"]),
        ("<node pkg='nopkg' exec='plain'/>", 3, ["package 'nopkg' is not installed"]),
        ("<node pkg='lxpkg' exec='nope'/>", 3, ["no executable 'nope'", "it has n, plain"]),
        ("<node pkg='lxpkg' exec='plain' output='loud'/>", 3, ["'output'", "screen"]),
        ("<node pkg='lxpkg' exec='plain' respawn_delay='inf'/>", 3, ["respawn_delay"]),
        ("<group scoped='false'/>", 3, ["'scoped'"]),
        ("<include file='$(dirname)/x.launch.xml'/>", 3, ["being included already"]),
        ("<include file='$(dirname)/gone.launch.xml'/>", 3, ["no such file"]),
        ("<include file='$(dirname)/x.launch.py'/>", 3, ["only XML"]),
        ("<let name='a' value='$(eval 1)'/>", 3, ["unknown substitution $(eval"]),
        ("<let name='a' value='$(vra b)'/>", 3, ["did you mean $(var"]),
        ("<group if='false'><let name='a' value='$(vra b)'/></group>", 3, ["unknown"]),
        ("<arg name='robot' default='1'/><let name='b' value='$(var rbot)'/>", 3,
         ["did you mean 'robot'"]),
        ("<executable cmd='no-such-program-at-all x'/>", 3, ["no-such-program-at-all"]),
        ("<executable cmd=''/>", 3, ["'cmd' is empty"]),
        ("<executable cmd='true' shell='true'/>", 3, ["'shell'"]),
        ("some text", 3, ["text inside <launch>"]),
        ("<let name='a' value='1' if='1' unless='0'/>", 3, ["cannot stand together"]),
        ("<node pkg='lxpkg'", 4, ["not valid XML"]),
    ],
)  # fmt: skip
def test_refused_with_line(body, line, words, prefix, tmp_path):
    error = refuse(tmp_path, f"<launch>\n<!-- two -->\n{body}\n</launch>\n")
    assert error.line == line, error
    for word in words:
        assert word in str(error)
    assert f"x.launch.xml:{line}" in str(error)


def test_fault_in_an_included_file_names_that_file(prefix, tmp_path):
    (tmp_path / "inner.launch.xml").write_text("<launch>\n\n<nodes/></launch>")
    file = tmp_path / "x.launch.xml"
    file.write_text("<launch><include file='$(dirname)/inner.launch.xml'/></launch>")
    with pytest.raises(LaunchError) as caught:
        load_launch_file(file)
    assert (caught.value.file.name, caught.value.line) == ("inner.launch.xml", 3)


def test_parameter_file_must_hold_parameters(prefix, tmp_path):
    for content in ("[1, 2]", "a: 1", "a: [", ""):
        (tmp_path / "p.yaml").write_text(content)
        error = refuse(
            tmp_path,
            "<launch><node pkg='lxpkg' exec='plain'>"
            "<param from='$(dirname)/p.yaml'/></node></launch>",
        )
        assert "p.yaml" in str(error)


def test_labels_are_unique_and_short(prefix, tmp_path):
    file = tmp_path / "x.launch.xml"
    node = "<node pkg='lxpkg' exec='plain' name='{}' namespace='{}'/>"
    file.write_text(
        f"<launch>{node.format('a', 'r1')}{node.format('a', 'r2')}{node.format('b', 'r1')}"
        f"{node.format('c', '/')}{node.format('c', '/')}<executable cmd='true'/></launch>"
    )
    plan = load_launch_file(file)
    labels = [spec.label for spec in plan.processes]
    assert labels == ["r1/a", "r2/a", "b", "c-1", "c-2", "true"]
    assert plan.node_names == ["/r1/a", "/r2/a", "/r1/b", "/c", "/c"]
    assert any("second node is named /c" in warning for warning in plan.warnings)


def test_arguments_that_nobody_reads(prefix, tmp_path):
    (tmp_path / "inner.launch.xml").write_text("<launch><arg name='deep' default=''/></launch>")
    file = tmp_path / "x.launch.xml"
    file.write_text(
        "<launch><arg name='a' default='1'/><let name='b' value='$(var c 2)'/>"
        "<include file='$(dirname)/inner.launch.xml' if='false'/></launch>"
    )
    given = {"a": "0", "c": "0", "deep": "0", "typo": "0", "sigterm_timeout": "1"}
    assert load_launch_file(file, given).unused == ["typo"]


def test_show_arguments(tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text(
        "<launch><arg name='a' default='$(env HOME)/x' description='what a is'/>"
        "<group if='true'><arg name='b'/></group><arg name='a' default='no'/></launch>"
    )
    first, second = show_arguments(file)
    assert (first.name, first.default, first.description) == ("a", "$(env HOME)/x", "what a is")
    assert (second.name, second.default, second.conditional) == ("b", None, True)


def test_environment_is_that_of_the_call_not_of_the_node(prefix, tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text(
        "<launch><node pkg='lxpkg' exec='plain'><env name='LX' value='1'/>"
        "<env name='LX2' value='$(env LX none)'/></node></launch>"
    )
    (spec,) = load_launch_file(file).processes
    assert spec.environment == {"LX": "1", "LX2": "none"}
