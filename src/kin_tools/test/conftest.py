import os
import stat
import sys
import textwrap
from pathlib import Path

import pytest

#: Prints its command line and part of its environment as one line of JSON; no ROS, so it is quick.
PLAIN = """\
#!{python} -S
import json, os, sys
print(json.dumps({{"argv": sys.argv[1:], "LX": os.environ.get("LX")}}), flush=True)
"""

#: A real node that prints what became of its names, parameters and environment.
NODE = """\
#!{python}
import json, os
import rclpy
from rclpy.node import Node

rclpy.init()
node = Node("default_name", automatically_declare_parameters_from_overrides=True)
values = {{}}
for name, parameter in node._parameters.items():
    values[name] = [parameter.type_.name, parameter.value if not hasattr(parameter.value, "tolist")
                    else list(parameter.value)]
print(json.dumps({{
    "name": node.get_fully_qualified_name(),
    "chatter": node.resolve_topic_name("chatter"),
    "parameters": values,
    "LX": os.environ.get("LX"),
}}, default=list), flush=True)
node.destroy_node()
rclpy.shutdown()
"""


def _program(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text).format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """An install prefix with a package lxpkg that has the executables plain and n."""
    root = tmp_path / "prefix"
    for folder in (
        "share/ament_index/resource_index/packages",
        "share/lxpkg/config",
        "share/lxpkg/launch",
        "lib/lxpkg",
    ):
        (root / folder).mkdir(parents=True)
    (root / "share/ament_index/resource_index/packages/lxpkg").touch()
    _program(root / "lib/lxpkg/plain", PLAIN)
    _program(root / "lib/lxpkg/n", NODE)
    old = os.environ.get("AMENT_PREFIX_PATH") or sys.prefix
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{root}{os.pathsep}{old}")
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    for name in ("A", "B", "LX", "LX2", "NOPE"):
        monkeypatch.delenv(name, raising=False)
    return root
