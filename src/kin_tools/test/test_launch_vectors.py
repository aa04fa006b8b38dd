"""The parser against the real ``ros2 launch``; see data/README.md for the source of the vectors."""

import json
import math
from pathlib import Path

import pytest
import yaml

from kin_tools.errors import LaunchError
from kin_tools.launch_xml import load_launch_file

VECTORS = json.loads((Path(__file__).parent / "data" / "launch_vectors.json").read_text())

INCLUDED = {
    "sub/inc.launch.xml": """<launch><arg name="who" default="inner"/>
<let name="leak" value="leaked"/><arg name="shared" default="incdefault"/>
<node pkg="lxpkg" exec="n" name="$(var who)" args="$(dirname) $(var shared)"/>
<push_ros_namespace namespace="pushed"/></launch>""",
    "sub/req.launch.xml": """<launch><arg name="must"/>
<node pkg="lxpkg" exec="n" name="req" args="$(var must)"/></launch>""",
    "p1.yaml": "/**:\n  ros__parameters:\n    a: 1\n",
}


def started(plan, folder, replacements):
    """What a plan starts, in the form of the vectors."""
    out = []
    for spec in plan.processes:
        words = spec.command(folder)[1:]
        argv = []
        while words:
            word = words.pop(0)
            if word == "--params-file":
                file = Path(words.pop(0))
                inline = ".params" in file.name
                argv.append(["params", yaml.safe_load(file.read_text()) if inline else str(file)])
            else:
                argv.append(word)
        text = json.dumps({"argv": argv, "env": dict(spec.environment)})
        for path, mark in replacements.items():
            text = text.replace(path, mark)
        out.append(json.loads(text))
    return out


def same(left, right):
    """Equal, types included (1 is not 1.0 and not true), with NaN equal to NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_same_as_ros2_launch(vector, prefix, tmp_path):
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    for name, text in INCLUDED.items():
        (here / name).write_text(text)
    file = here / "vector.launch.xml"
    file.write_text(vector["xml"])
    if vector["refused"]:
        with pytest.raises(LaunchError) as refused:
            load_launch_file(file, vector["arguments"])
        assert refused.value.line > 0
        return
    plan = load_launch_file(file, vector["arguments"])
    got = started(plan, tmp_path, {str(prefix): "@PREFIX@", str(here): "@HERE@"})
    wanted = vector["started"]
    assert len(got) == len(wanted)
    for expected in wanted:
        assert any(same(expected, actual) for actual in got), (expected, got)
