"""A launch file with every element, run for real: names, topics, typed parameters, environment.

The expectations are what ``ros2 launch`` (launch 3.4.3, launch_ros 0.26.6) starts from such a file.
"""

import json
import os
import subprocess
import sys

import pytest

FULL = """<launch>
  <arg name="namespace" default="robot1" description="ns"/>
  <arg name="use_sim_time" default="false"/>
  <arg name="first" default="true"/>
  <let name="file" value="$(find-pkg-share lxpkg)/config/values.yaml"/>
  <group>
    <push_ros_namespace namespace="$(var namespace)"/>
    <node pkg="lxpkg" exec="n" name="alpha" output="screen" respawn="false" respawn_delay="1.0"
          if="$(var first)">
      <param from="$(var file)"/>
      <param name="use_sim_time" value="$(var use_sim_time)"/>
      <param name="extra" value="3"/>
      <param name="group"><param name="deep" value="'7'"/></param>
      <remap from="chatter" to="talk"/>
      <env name="LX" value="$(env HOME)"/>
    </node>
    <node pkg="lxpkg" exec="n" name="beta" namespace="sub" output="screen" unless="$(var first)"/>
    <include file="$(dirname)/inner.launch.xml"><arg name="who" value="gamma"/></include>
  </group>
  <executable cmd="echo done $(env NOPE fallback)" output="screen" name="e"/>
</launch>
"""
INNER = """<launch>
  <arg name="who" default="inner" description="name"/>
  <node pkg="lxpkg" exec="n" name="$(var who)" output="screen"/>
</launch>
"""
VALUES = "/**:\n  ros__parameters:\n    gain: 5.0\n    names: [a, b]\n    big: 4000000000\n"


@pytest.fixture
def package(prefix):
    launch = prefix / "share/lxpkg/launch"
    (launch / "full.launch.xml").write_text(FULL)
    (launch / "inner.launch.xml").write_text(INNER)
    (prefix / "share/lxpkg/config/values.yaml").write_text(VALUES)
    return prefix


def launch(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "kin_tools.launch", "lxpkg", "full.launch.xml", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = {}
    for line in done.stdout.splitlines():
        label, _, text = line.partition("] ")
        if text.startswith("{"):
            printed[label[1:]] = json.loads(text)
    return printed, done.stdout


@pytest.mark.node
def test_first_branch(package):
    nodes, out = launch()
    assert nodes.keys() == {"alpha", "gamma"}
    alpha = nodes["alpha"]
    assert alpha["name"] == "/robot1/alpha"
    assert alpha["chatter"] == "/robot1/talk"
    assert alpha["LX"] == os.environ["HOME"]
    expected = {
        "gain": ["DOUBLE", 5.0],
        "names": ["STRING_ARRAY", ["a", "b"]],
        "big": ["INTEGER", 4000000000],
        "use_sim_time": ["BOOL", False],
        "extra": ["INTEGER", 3],
        "group.deep": ["STRING", "7"],
    }
    assert {name: alpha["parameters"].get(name) for name in expected} == expected
    gamma = nodes["gamma"]
    assert (gamma["name"], gamma["chatter"], gamma["LX"]) == (
        "/robot1/gamma",
        "/robot1/chatter",
        None,
    )
    assert not {"gain", "extra"} & gamma["parameters"].keys()
    assert "[e] done fallback\n" in out


@pytest.mark.node
def test_second_branch(package):
    nodes, _ = launch("first:=false", "namespace:=r2")
    assert nodes.keys() == {"beta", "gamma"}
    assert (nodes["beta"]["name"], nodes["beta"]["chatter"]) == ("/r2/sub/beta", "/r2/sub/chatter")
    assert (nodes["gamma"]["name"], nodes["gamma"]["chatter"]) == ("/r2/gamma", "/r2/chatter")
