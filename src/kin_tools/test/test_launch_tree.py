"""Launch files as trees: elements with their lines, and files that cannot be read."""

import pytest

from kin_tools.errors import LaunchError
from kin_tools.launch_tree import read_launch_file


def test_elements_keep_their_order_attributes_and_lines(tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text(
        "<launch>\n  <arg name='a' default='$(env HOME)'/>\n\n"
        "  <node exec='n' pkg='p'>\n    <remap from='x' to='y'/>\n"
        "    <param name='k' value='1'/>\n    <remap from='z' to='w'/>\n  </node>\n</launch>\n"
    )
    root = read_launch_file(file)
    assert [(child.tag, child.line) for child in root.children] == [("arg", 2), ("node", 4)]
    argument, node = root.children
    assert argument.attributes == {"name": "a", "default": "$(env HOME)"}  # nothing is replaced
    assert [(remap.attributes["from"], remap.line) for remap in node.all("remap")] == [
        ("x", 5),
        ("z", 7),
    ]
    assert str(node.error("is odd")) == f"{file}:4: <node>: is odd"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not xml",
        "<robot/>",
        '<!DOCTYPE a [<!ENTITY b "c">]><launch>&b;</launch>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><launch/>',
        '<?xml version="1.0" encoding="nope"?><launch/>',
        "<launch>" + "<group>" * 500 + "</group>" * 500 + "</launch>",
        "<launch>\x00</launch>",
    ],
)
def test_hostile_files_get_a_sentence(text, tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text(text)
    with pytest.raises(LaunchError) as caught:
        read_launch_file(file)
    assert caught.value.file == file
    assert len(str(caught.value).splitlines()) == 1


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "gone.xml", tmp_path):
        with pytest.raises(LaunchError, match="no such file"):
            read_launch_file(path)


def test_a_file_of_any_size_is_not_read(tmp_path):
    file = tmp_path / "x.launch.xml"
    file.write_text("<launch>" + " " * (4 * 1024 * 1024) + "</launch>")
    with pytest.raises(LaunchError, match="is larger than"):
        read_launch_file(file)
