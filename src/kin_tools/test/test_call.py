"""``call`` against a running node, and with requests that cannot be understood."""

import pytest
import yaml

from kin_monitor.node import StackMonitor
from kin_tools.call import main

TYPE = "kin_interfaces/srv/CheckReady"


@pytest.fixture
def call(ros, monkeypatch, capsys):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros.domain))

    def run(*words):
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.node
def test_answer_and_exit_codes(ros, call):
    ros.add(StackMonitor)
    code, out, _ = call("/stack_monitor/check_ready", TYPE, "{wait: 30.0}")
    assert code == 0
    answer = yaml.safe_load(out)
    assert answer["ready"] is True
    assert answer["status"]["code"] == 0
    code, out, err = call("stack_monitor/check_ready", TYPE, "{nodes: [ghost]}")
    assert code == 1
    assert yaml.safe_load(out)["missing"] == ["/ghost"]
    assert "NOT_CONVERGED: 0 of 1 nodes ready; /ghost is missing" in err
    code, _, err = call("/stack_monitor/chek_ready", TYPE, "{}", "--wait", "2")
    assert code == 1
    assert "did you mean /stack_monitor/check_ready" in err
    code, out, _ = call("/stack_monitor/get_state", "lifecycle_msgs/srv/GetState")
    assert (code, yaml.safe_load(out)["current_state"]["label"]) == (0, "active")
    code, _, err = call("/stack_monitor/check_ready", "lifecycle_msgs/srv/GetState", "--wait", "2")
    assert code == 1
    assert "is of type kin_interfaces/srv/CheckReady, not lifecycle_msgs/srv/GetState" in err


@pytest.mark.node
def test_no_stack(call):
    code, _, err = call("/nobody/here", TYPE, "{}", "--wait", "0.2")
    assert code == 1
    assert "there is no service /nobody/here" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["/a", TYPE, "{wait: [1}"], "request, line 1"),
        (["/a", TYPE, "{wait: x}"], "wait: expected a number"),
        (["/a", TYPE, "{wiat: 1}"], "did you mean wait"),
        (["/a", TYPE, "[1]"], "expected a mapping"),
        (["/a", TYPE, "{wait: 1, wait: 2}"], "duplicated"),
        (["/a", TYPE, "@/no/such/file"], "/no/such/file"),
        (["/a", TYPE, "!!python/object/apply:os.system [true]"], "request"),
        (["/a", "kin_interfaces/srv/Nope", "{}"], "has no srv 'Nope'"),
        (["a b", TYPE, "{}"], "cannot be the name of a service"),
        (["/a/", TYPE, "{}"], "cannot be the name of a service"),
        (["", TYPE, "{}"], "cannot be the name of a service"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_2(words, sentence, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1
