"""The command that runs a launch file."""

import pytest

from kin_tools.launch import main


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["gone.launch.xml"], "there is no such file"),
        (["nopkg", "x.launch.xml"], "package 'nopkg' is not installed"),
        (["lxpkg", "gone.launch.xml"], "has no such launch file"),
        (["FILE", "word"], "expected name:=value"),
        (["FILE", "a:="], "expected name:=value"),
        (["FILE", ":=b"], "expected name:=value"),
        (["FILE"], "needs a value: must:=VALUE"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_2(words, sentence, prefix, tmp_path, capsys):
    file = tmp_path / "x.launch.xml"
    file.write_text("<launch><arg name='must'/></launch>")
    assert main([str(file) if word == "FILE" else word for word in words]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_show_args(prefix, tmp_path, capsys):
    file = tmp_path / "x.launch.xml"
    file.write_text("<launch><arg name='a' default='1' description='what a is'/></launch>")
    assert main([str(file), "--show-args"]) == 0
    assert "    'a':\n        what a is\n        (default: '1')" in capsys.readouterr().out
