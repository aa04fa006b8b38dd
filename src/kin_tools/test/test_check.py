"""The questions of ``up --check`` and the table of answers."""

from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory

from kin_core.errors import InvalidInput
from kin_tools.check import Answer, Question, read_questions, table
from kin_tools.launch_xml import load_launch_file

SHARE = Path(get_package_share_directory("kin_bringup"))


def test_questions(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "- {node: n, service: ~/s, type: a/srv/B, request: {x: 1}}\n"
        "- {node: gone, service: ~/s, type: a/srv/B}\n"
        "- {node: n, service: rel, type: a/srv/B}\n"
        "- {node: n, service: /abs, type: a/srv/B}\n"
    )
    questions = read_questions(tmp_path, ["/r/n", "/r/m"])
    assert [q.service for q in questions] == ["/r/n/s", "/r/rel", "/abs", "/r/m/get_state"]
    assert questions[0].request == {"x": 1}


@pytest.mark.parametrize(
    "text", ["a: 1", "- 1", "- {node: n}", "- {node: n, service: s, type: t, reqest: {}}", "- ["]
)
def test_bad_questions(text, tmp_path):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=r"bad\.yaml"):
        read_questions(tmp_path, ["/n"])


def test_table_lines_up():
    question = Question("/n", "/n/solve", "a/srv/B", None, "")
    lines = table(
        [
            Answer(question, True, "SUCCESS", 0.0012, ""),
            Answer(question, False, "TIMEOUT", 9.0, "x"),
        ]
    ).splitlines()
    assert lines[0].index("time") == lines[2].index("      1.2")
    assert "9000.0" in lines[3]


def test_every_question_fits_its_type():
    """The requests of all systems can be filled into their types."""
    from kin_ros.messages import fill, find_type

    plan = load_launch_file(SHARE / "full_stack.launch.xml")
    for question in read_questions(SHARE / "config" / "check", plan.node_names):
        fill(find_type(question.kind, "srv").Request(), question.request)
