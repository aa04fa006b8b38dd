"""The command line: JSON, pictures, errors."""

import json

from kin_solvers.command import main


def test_json_and_picture(tmp_path):
    answer, picture = tmp_path / "a.json", tmp_path / "a.png"
    assert main(["planar_four_bar", "--quiet", "--json", str(answer), "--plot", str(picture)]) == 0
    data = json.loads(answer.read_text())
    assert data["complete"]
    assert len(data["components"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_errors_are_one_line(tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("variables: {a: {}}\nloops: []\n")
    assert main([str(bad), "--quiet"]) == 2
    text = capsys.readouterr().err
    assert "bad.yaml" in text
    assert "loops" in text
    assert main(["nobody", "--quiet"]) == 2
    assert "bennett" in capsys.readouterr().err


def test_an_incomplete_answer_says_so(tmp_path):
    answer = tmp_path / "a.json"
    assert main(["stewart", "--quiet", "--max-boxes", "20", "--json", str(answer)]) == 1
    data = json.loads(answer.read_text())
    assert not data["complete"]
    assert data["unfinished_lower"]
