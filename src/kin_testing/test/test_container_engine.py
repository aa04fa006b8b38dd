"""The client of a Docker engine, with a program in its place that writes down what it is asked."""

import os

import pytest

from kin_testing.container_engine import Engine, NoEngine, open_engine

#: Answers like the client: old enough to build by itself, with or without an engine behind it.
CLIENT = """#!/bin/sh
echo "$*" >> {log}
case "$1" in
  --version) echo "Docker version 20.10.24, build 1" ;;
  info) exit {code} ;;
  inspect) echo '[{{"State": {{"Running": true}}}}]' ;;
  fails) echo out; echo why >&2; exit 3 ;;
esac
"""


@pytest.fixture
def client(tmp_path, monkeypatch):
    def make(code):
        program = tmp_path / "docker"
        program.write_text(CLIENT.format(log=tmp_path / "log", code=code))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return program

    return make


def test_a_command_that_fails_says_what_it_wrote_unless_that_was_expected(client):
    engine = Engine(str(client(0)))
    with pytest.raises(AssertionError, match=r"exit code 3\nout\nwhy"):
        engine.run("fails")
    assert engine.run("fails", check=False).returncode == 3
    assert engine.inspect("it", "State.Running") is True


def test_an_image_is_built_from_the_file_of_its_tree(client, tmp_path):
    engine = Engine(str(client(0)), host="unix:///x.sock")
    assert engine.environment["DOCKER_HOST"] == "unix:///x.sock"
    engine.build("tag", tmp_path, target="runtime", arguments={"A": "1"}, cache=False)
    words = (tmp_path / "log").read_text().split()
    assert words[:5] == ["build", "--network", "host", "--tag", "tag"]
    for word in ("--target", "runtime", "--build-arg", "A=1", "--no-cache"):
        assert word in words
    assert words[-1] == str(tmp_path)
    assert f"{tmp_path}/docker/Dockerfile" in words


def test_the_engine_that_runs_is_used_and_without_one_the_reason_is_given(client, tmp_path):
    program = client(0)
    with open_engine(tmp_path / "own", start=False) as engine:
        assert (engine.docker, engine.own) == (str(program), False)
    client(1)
    with (
        pytest.raises(NoEngine, match="no Docker engine answers here"),
        open_engine(tmp_path / "own", start=False),
    ):
        pass
    assert not (tmp_path / "own").exists()
