"""What a ROS installation relies on: declared dependencies, installed programs, colcon test."""

import ast
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from ament_index_python.packages import get_package_prefix

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = sorted(path.parent for path in (ROOT / "src").glob("*/setup.py"))
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.xml"))

#: Names in package.xml that differ from the module's: rosdep keys, and packages of the index.
DECLARED_AS = {
    "PIL": "python3-pil",
    "cupy": "cupy-cuda13x",
    "defusedxml": "python3-defusedxml",
    "distributed": "dask",
    "hypothesis": "python3-hypothesis",
    "matplotlib": "python3-matplotlib",
    "mpl_toolkits": "python3-matplotlib",
    "mpmath": "python3-mpmath",
    "networkx": "python3-networkx",
    "numba": "python3-numba",
    "numpy": "python3-numpy",
    "psutil": "python3-psutil",
    "pytest": "python3-pytest",
    "scipy": "python3-scipy",
    "yaml": "python3-yaml",
}
#: Come with another package of the lock, or are for tests alone.
FROM_THE_LOCK = {
    "llvmlite": "llvmlite",
    "nvidia": "nvidia-cuda-nvrtc",
    "pinocchio": "pin",
    "playwright": "playwright",
    "websockets": "websockets",  # comes with viser
}
#: Imported only where a person has installed them; the code says so when they are missing.
OPTIONAL = {"mujoco", "domain_coordinator", "mcap", "zstandard", "xdist"}

#: Programs of a ROS installation that launch files start; there are no wheels of them.
OF_ROS = {"diagnostic_aggregator", "rviz2"}


def imports(package, files):
    """Top-level names that modules of a package import, with one place of each."""
    found = {}
    for path in sorted(files):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            else:
                continue
            for name in names:
                found.setdefault(name.split(".")[0], f"{path.relative_to(ROOT)}:{node.lineno}")
    # The baselines of the benchmarks are in the workspace, beside the packages.
    ours = {package.name, "benchmarks", *(path.stem for path in files)}
    for name in {*sys.stdlib_module_names, *ours}:
        found.pop(name, None)
    return found


def declared(package, *, tests=True):
    """The dependencies in a package.xml, with or without those of its tests alone."""
    root = ElementTree.parse(package / "package.xml").getroot()
    kinds = {item.tag for item in root if item.tag.endswith("depend")}
    wanted = kinds if tests else kinds - {"test_depend"}
    from_index = [e.text for e in root.find("export") if e.tag in ("pip_depend", "pip_extra")]
    return {item.text.strip() for item in root if item.tag in wanted} | {
        name.partition("[")[0] for name in from_index
    }


def undeclared(package, files, known):
    """What the modules import and rosdep would not install, with the place of each."""
    lock = (ROOT / "requirements.lock").read_text() + (ROOT / "requirements-dev.lock").read_text()
    missing = []
    for name, place in imports(package, files).items():
        if name in OPTIONAL:
            continue
        if name in FROM_THE_LOCK:
            assert f"\n{FROM_THE_LOCK[name]}==" in lock, f"{name} ({place}) is in no lock file"
        elif DECLARED_AS.get(name, name) not in known:
            missing.append(f"{DECLARED_AS.get(name, name)} ({place})")
    return missing


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_import_is_declared(package):
    files = [*(package / package.name).rglob("*.py")]
    missing = undeclared(package, files, declared(package, tests=False))
    assert not missing, f"{package.name}/package.xml lacks: {', '.join(missing)}"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_import_of_the_tests_is_declared(package):
    """With the conftest of the whole and the plugin it loads, which ``colcon test`` runs too."""
    shared = [ROOT / "conftest.py", ROOT / "src/kin_testing/kin_testing/fixtures.py"]
    known = declared(package) | declared(ROOT / "src/kin_testing", tests=False) | {"kin_testing"}
    missing = undeclared(package, [*(package / "test").rglob("*.py"), *shared], known)
    assert not missing, f"{package.name}/package.xml lacks: {', '.join(missing)}"


def test_bringup_depends_on_every_package_it_starts():
    wanted = {
        node.get("pkg") for path in LAUNCH_FILES for node in ElementTree.parse(path).iter("node")
    }
    assert wanted, "no launch file starts a node"
    wanted |= {"launch_ros", "launch_xml", "ros2launch"}  # what reads these files
    missing = wanted - declared(ROOT / "launch", tests=False)
    assert not missing, f"launch/package.xml lacks {sorted(missing)}"


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_launched_programs_are_installed(path):
    for node in ElementTree.parse(path).iter("node"):
        package, program = node.get("pkg"), node.get("exec")
        if package in OF_ROS:
            continue
        installed = Path(get_package_prefix(package), "lib", package, program)
        assert os.access(installed, os.X_OK), f"{path.name}: {package} has no program {program}"


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_launch_files_name_existing_files(path):
    for item in ElementTree.parse(path).iter():
        named = item.get({"param": "from", "include": "file"}.get(item.tag, ""))
        if named:
            tail = named.replace("$(find-pkg-share kin_bringup)", "").replace("$(dirname)", "")
            assert (ROOT / "launch" / tail.lstrip("/")).is_file(), f"{path.name}: {named}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "launch" / "config").glob("*.yaml")), ids=lambda path: path.name
)
def test_parameters_hold_in_every_namespace(path):
    """A plain node name at the top of a parameter file means that node outside of namespaces."""
    for node in yaml.safe_load(path.read_text()):
        assert node.startswith("/**"), f"{path.name}: {node}"


def test_the_pytest_plugins_of_ros_do_no_harm(tmp_path):
    """ROS registers plugins whose hooks have arguments that pytest 9 no longer knows."""
    for name in ("launch_testing", "launch_ros", "launch_pytest"):
        (tmp_path / f"{name}_plugin.py").write_text(
            "def pytest_pycollect_makemodule(path, parent): raise RuntimeError\n"
        )
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pytest11]\n{name} = {name}_plugin\n")
    (tmp_path / "test_small.py").write_text("def test_small(): pass\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "test_small.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_colcon_test_works(tmp_path):
    """Colcon finds and runs a package's tests, and reports a failure as one."""
    build = tmp_path / "build"
    command = [sys.executable, "-m", "colcon", "--log-base", str(tmp_path / "log")]
    common = ["--base-paths", str(ROOT / "src"), "--packages-select", "kin_core"]
    installed = Path(get_package_prefix("kin_core")).parent
    places = ["--build-base", str(build), "--install-base", str(installed)]
    (build / "kin_core").mkdir(parents=True)
    tested = subprocess.run(
        [*command, "test", *common, *places, "--pytest-args", "-k", "test_checks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "ROS_DISTRO": ""},
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    result = subprocess.run(
        [*command, "test-result", "--test-result-base", str(build), "--verbose"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stdout
    ran = ElementTree.parse(build / "kin_core" / "pytest.xml").getroot().find("testsuite")
    assert int(ran.get("tests")) > 5
    assert int(ran.get("failures")) + int(ran.get("errors")) == 0


#: What stands for ``ros2 launch``: it writes down how it was called and has our runner do it, which
#: does not see the claims of the one who called.
ROS2 = """#!/bin/sh
echo "$@" > {called}
shift
ROS_DISTRO= XDG_RUNTIME_DIR={folder} exec {python} -m kin_tools.launch "$@"
"""
#: A command of ours in a Python that cannot read launch files.
WITHOUT_READER = """
import runpy, sys
sys.modules["kin_tools.launch_xml"] = None
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
SYSTEMS = ("cuik", "ft", "delta", "continuum", "hier", "dashboard", "robots")
OFF = [f"{name}:=false" for name in SYSTEMS]


@pytest.mark.parametrize(
    ("words", "called", "said"),
    [
        (["up", "--check", "namespace:=ward", *OFF],
         r"full_stack\.launch\.xml namespace:=ward cuik", "/ward/stack_monitor  check_ready"),
        (["up", "--show-args"], r"full_stack\.launch\.xml --show-args", "use_sim_time"),
        (["launch", "kin_bringup", "monitor.launch.xml", "--show-args"],
         "kin_bringup monitor.launch.xml --show-args", "expected"),
    ],
)  # fmt: skip
def test_with_a_ros_sourced_ros2_launch_alone_reads_launch_files(words, called, said, tmp_path):
    ros2 = tmp_path / "ros2"
    ros2.write_text(ROS2.format(called=tmp_path / "called", folder=tmp_path, python=sys.executable))
    ros2.chmod(0o755)
    environment = {
        **os.environ,
        "ROS_DISTRO": "jazzy",
        "KINSTACK_WHEELS": "",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "ROS_LOG_DIR": str(tmp_path / "log"),
    }
    for name in ("ROS_DOMAIN_ID", "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_READER, f"kin_tools.{words[0]}", *words[1:]],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(called, (tmp_path / "called").read_text())
    assert said in ran.stdout, ran.stdout + ran.stderr
    assert words[1] != "--check" or "every node answered" in ran.stdout
