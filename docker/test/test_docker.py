"""What is known of the images without an engine: they are well formed, their scripts work."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kin_testing.fixtures import wait_until

DOCKER = Path(__file__).resolve().parents[1]
ROOT = DOCKER.parent
SCRIPTS = sorted(DOCKER.glob("*.sh"))
COMPOSE = sorted(DOCKER.glob("compose*.yaml"))


def tool(name):
    """A checker from the environment; a missing one is a failure, because the lock names it."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found, f"{name} is in requirements-dev.lock and not installed"
    return found


def run(*command, **options):
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=120, **options
    )


def without_ros(**changes):
    """The environment of a shell in which nothing is sourced."""
    drop = ("ROS_DISTRO", "AMENT_PREFIX_PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    kept = {key: value for key, value in os.environ.items() if key not in drop}
    kept.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    return {**kept, "KINSTACK_WHEELS": "1", **changes}


def test_dockerfile_passes_hadolint():
    checked = run(tool("hadolint"), DOCKER / "Dockerfile")
    assert checked.returncode == 0, checked.stdout


def test_hadolint_would_object(tmp_path):
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM ros:latest\nRUN cd /tmp && sudo apt-get install x\n")
    assert run(tool("hadolint"), bad).returncode != 0


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_files_fit_the_schema(path):
    checked = run(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    "path", [*SCRIPTS, ROOT / "kinstack", ROOT / ".ci" / "run"], ids=lambda p: p.name
)
def test_shell_scripts_pass_shellcheck(path):
    assert os.access(path, os.X_OK), f"{path.name} is not executable"
    checked = run(tool("shellcheck"), "--severity=warning", path)
    assert checked.returncode == 0, checked.stdout


def stages():
    """Dockerfile instructions by stage."""
    text = re.sub(r"\\\n", " ", (DOCKER / "Dockerfile").read_text())
    found, name = {}, ""
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            name = rest.split(" AS ")[-1] if " AS " in rest else "final"
            found[name] = [("FROM", rest)]
        elif name and word.isupper():
            found[name].append((word, rest))
    return found


@pytest.mark.parametrize("name", ["runtime", "native"])
def test_image_is_not_root_and_tells_its_health(name):
    found = stages()
    image = dict(found[name])
    assert image["USER"] == "1000:1000"
    assert "healthcheck.sh" in image["HEALTHCHECK"]
    assert "entrypoint.sh" in image["ENTRYPOINT"]
    # Nothing after it turns back to root, and compilers stay in the builders.
    assert [word for word, _ in found[name]].count("USER") == 1
    assert not any(tool in rest for _, rest in found[name] for tool in ("g++", "cmake", "-dev"))
    assert found["gpu"][0][1] == "runtime AS gpu"
    assert found["default"] == [("FROM", "runtime AS default")]


def test_base_images_are_the_documented_ones():
    text = (DOCKER / "Dockerfile").read_text()
    assert "ARG BASE=debian:bookworm-slim\n" in text
    assert "ARG ROS_IMAGE=ros:jazzy-ros-base\n" in text
    assert "# syntax=" not in text  # it would be fetched from a registry
    version = (ROOT / "VERSION").read_text().strip()
    assert f"ARG VERSION={version}\n" in text


def test_every_copied_file_exists():
    for stage, lines in stages().items():
        for word, rest in lines:
            if word == "COPY" and "--from=" not in rest:
                *sources, _ = [part for part in rest.split() if not part.startswith("--")]
                for source in sources:
                    assert (ROOT / source).exists(), f"{stage} copies {source}"


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    target = tmp_path_factory.mktemp("layers")
    unwanted = shutil.ignore_patterns("test", "__pycache__", "*.egg-info", "build")
    for name in ("src", "launch"):
        shutil.copytree(ROOT / name, target / "tree" / name, symlinks=True, ignore=unwanted)
    done = run(sys.executable, DOCKER / "layers.py", target / "tree", target)
    assert done.returncode == 0, done.stderr
    return target


def test_kernel_layers_hold_what_warm_up_imports_and_no_node(layers):
    kernels = layers / "kernels"
    assert {path.name for path in kernels.iterdir()} == {
        *("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik")
    }
    for layer in kernels.iterdir():
        files = {path.name for path in layer.rglob("*.py")}
        assert "warm_up.py" in files
        assert not files & {"node.py", "conversions.py", "markers.py", "parameters.py"}
        assert not (layer / "src" / "kin_ros").exists()


def test_kernel_layers_are_complete(layers):
    """Each imports by itself, without the rest of the workspace."""
    for layer in (layers / "kernels").iterdir():
        path = ":".join(str(layer / "build" / name) for name in ("kin_core", layer.name))
        environment = {**os.environ, "PYTHONPATH": path}
        program = f"import {layer.name}.warm_up as w; print(w.__file__)"
        done = run(sys.executable, "-c", program, env=environment, cwd=layer)
        assert done.stdout.startswith(str(layer)), done.stderr


def test_build_layer_is_what_colcon_builds_from(layers):
    """The digest by which set-up decides on a build is the same for the layer as for the tree."""
    sys.path.insert(0, str(ROOT / "src/kin_tools/kin_tools"))
    try:
        from setup_workspace import source_digest
    finally:
        sys.path.pop(0)
    for manifest in sorted((ROOT / "src").glob("*/package.xml")):
        folder = manifest.parent
        layer = layers / "build" / "src" / folder.name
        assert source_digest(layer) == source_digest(folder), folder.name
    assert (layers / "interfaces/src/kin_interfaces/CMakeLists.txt").exists()
    for path in (layers / "build").rglob("__init__.py"):
        assert path.read_text() == ""


def test_bill_of_materials_reads_the_lock():
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import sbom;"
        " print(json.dumps(list(sbom.locked(open(sys.argv[2]).read()).items())))"
    )
    done = run(sys.executable, "-c", program, DOCKER, ROOT / "requirements.lock")
    found = json.loads(done.stdout)
    text = (ROOT / "requirements.lock").read_text()
    assert len(found) == len(re.findall(r"^[A-Za-z0-9].*==", text, re.MULTILINE))
    assert sum(len(hashes) for _, hashes in found) == text.count("--hash=sha256:")


def test_gpu_lock_is_the_development_lock():
    ours = (DOCKER / "requirements-gpu.lock").read_text()
    theirs = (ROOT / "requirements-dev.lock").read_text()
    blocks = re.findall(r"^[a-z].*?(?=^[a-z]|\Z)", ours, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        pinned = block.split("# via")[0].rstrip()
        assert pinned in theirs, f"{block.splitlines()[0]} differs from requirements-dev.lock"


def test_entry_point_execs_the_command_with_the_workspace_sourced():
    """The process that the engine signals is the program itself, not a shell around it."""
    program = "import os, kin_interfaces.msg, rclpy; print(os.getpid(), flush=True); input()"
    with subprocess.Popen(
        [DOCKER / "entrypoint.sh", "shell", "python", "-c", program],
        env=without_ros(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        said = started.stdout.readline().strip()
        try:
            assert said == str(started.pid), said or started.stderr.read()
            started.send_signal(signal.SIGTERM)
            assert started.wait(20) == -signal.SIGTERM
        finally:
            started.kill()


def test_entry_point_returns_the_exit_code():
    assert run(DOCKER / "entrypoint.sh", "sh", "-c", "exit 7", env=without_ros()).returncode == 7


def test_keystore_script_makes_keys_for_every_node(tmp_path):
    keys = tmp_path / "keys"
    made = run(DOCKER / "make_keystore.sh", keys, "/", "/control", env=without_ros())
    assert made.returncode == 0, made.stdout + made.stderr
    policy = (DOCKER / "security" / "policy.xml").read_text()
    enclaves = re.findall(r'<enclave path="/(\S+)"', policy)
    assert f"keys of {len(enclaves)} enclaves" in made.stdout
    assert "built without DDS security" in made.stdout
    for enclave in enclaves:
        assert (keys / "enclaves" / enclave / "key.pem").is_file(), enclave
    granted = (keys / "enclaves/kinstack/ft_controller/permissions.xml").read_text()
    assert "<topic>rt/control/joint_torques</topic>" in granted
    assert keys.stat().st_mode & 0o077 == 0  # for nobody else
    # Keys are never overwritten.
    again = run(DOCKER / "make_keystore.sh", keys, env=without_ros())
    assert again.returncode == 1
    assert "already" in again.stderr


def services():
    """Name, file and definition of all services; those of compose.security.yaml complete others."""
    for path in COMPOSE:
        for name, service in yaml.safe_load(path.read_text())["services"].items():
            if path.name != "compose.security.yaml":
                yield name, path, service


def test_compose_services_are_hardened():
    for name, _, service in services():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "pids_limit", "user", "tmpfs"} <= service.keys(), name
        # A user of the host can be named where memory is shared: others see topics and get no data.
        assert "KINSTACK_UID" in service["user"], name


def test_compose_files_suit_the_tool_of_debian():
    """The compose tool of Debian 12 refuses a name at the top."""
    for path in COMPOSE:
        assert "name" not in yaml.safe_load(path.read_text()), path.name


def test_launch_arguments_in_compose_files_exist():
    launch = ROOT / "launch" / "full_stack.launch.xml"
    known = set(re.findall(r'<arg name="(\w+)"', launch.read_text()))
    for name, path, service in services():
        for word in service["command"]:
            if ":=" in word:
                assert word.split(":=")[0] in known, f"{path.name}: {word}"
                assert word.split(":=")[1], f"{name}: an empty argument is refused"


def health(state_file, **changes):
    environment = without_ros(KINSTACK_STATE_FILE=str(state_file), **changes)
    return run(DOCKER / "healthcheck.sh", env=environment)


@pytest.mark.stack
def test_health_is_that_of_the_stack_monitor(ros, tmp_path):
    file = tmp_path / "state"
    assert health(file).returncode == 1  # nobody has said anything
    parameters = {"expected": ["stack_monitor"], "state_file": str(file)}
    monitor = ros.process("kin_monitor", "stack_monitor", parameters, "/ward")
    wait_until(lambda: health(file).returncode == 0, 60.0, "healthy")
    assert health(file).stdout.startswith("ready: 1 of 1 nodes ready")
    monitor.terminate()
    assert monitor.wait(20) == 0
    assert not file.exists()


@pytest.mark.stack
def test_a_missing_node_is_unhealthy(ros, tmp_path):
    file = tmp_path / "state"
    parameters = {"expected": ["stack_monitor", "kin_solvers"], "state_file": str(file)}
    monitor = ros.process("kin_monitor", "stack_monitor", parameters)
    wait_until(file.exists, 60.0, "a state")
    sick = health(file)
    assert sick.returncode == 1
    assert "kin_solvers is missing" in sick.stdout
    # A monitor that was killed says nothing any more, whatever it said last.
    monitor.kill()
    file.write_text("ready: 2 of 2 nodes ready\n")
    assert health(file).returncode == 0
    os.utime(file, (1.0, 1.0))
    silent = health(file)
    assert silent.returncode == 1
    assert "silent" in silent.stdout
