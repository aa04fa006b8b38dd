"""What can be known of the image where no engine runs: it is well formed, and its scripts work."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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


def test_image_is_not_root_and_tells_its_health():
    found = stages()
    runtime = dict(found["runtime"])
    assert runtime["USER"] not in ("root", "0", "")
    assert "healthcheck.sh" in runtime["HEALTHCHECK"]
    assert "entrypoint.sh" in runtime["ENTRYPOINT"]
    assert found["base"][0][1].startswith("${ROS_IMAGE}")
    assert "ros:jazzy-ros-base" in (DOCKER / "Dockerfile").read_text()
    # Nothing after it turns back to root, and the compiler stays in the builder.
    for name in ("runtime", "gpu", "final"):
        assert all(word != "USER" or "{UID}" in rest for word, rest in found[name])
        assert not any("apt-get" in rest for _, rest in found[name])


def test_every_copied_file_exists():
    for stage, lines in stages().items():
        for word, rest in lines:
            if word == "COPY" and "--from=" not in rest:
                *sources, _ = [part for part in rest.split() if not part.startswith("--")]
                for source in sources:
                    assert (ROOT / source).exists(), f"{stage} copies {source}"


def test_builder_stage_prepares_with_what_it_copied_first(tmp_path):
    """The cached layer holds three files: the set-up must not need more to begin."""
    (tmp_path / "src/kin_tools/kin_tools").mkdir(parents=True)
    shutil.copy(ROOT / "kinstack", tmp_path)
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    shutil.copy(
        ROOT / "src/kin_tools/kin_tools/setup_workspace.py", tmp_path / "src/kin_tools/kin_tools"
    )
    # With an environment that is up to date, nothing is left to do: no package, no error.
    check = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "import setup_workspace as s; w = s.Workspace(Path(sys.argv[2]), native=False, dev=False);"
        "w.cache.mkdir(); w.build_packages(); print('ok')"
    )
    done = run(sys.executable, "-c", check, tmp_path / "src/kin_tools/kin_tools", tmp_path)
    assert done.stdout.strip() == "ok", done.stderr


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
        [DOCKER / "entrypoint.sh", "python", "-c", program],
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


def test_keystore_script_says_what_it_needs(tmp_path):
    refused = run(
        DOCKER / "make_keystore.sh", tmp_path / "keys", env=without_ros(PATH="/usr/bin:/bin")
    )
    assert refused.returncode == 1
    assert "source a ROS 2" in refused.stderr
    assert not (tmp_path / "keys").exists()


def test_keystore_script_asks_for_every_enclave(tmp_path):
    """With a stand-in for `ros2` that writes down what it is asked: no ROS with sros2 is here."""
    asked = tmp_path / "asked"
    program = tmp_path / "bin" / "ros2"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    program.chmod(0o755)
    keys = tmp_path / "keys"
    environment = without_ros(PATH=f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
    made = run(DOCKER / "make_keystore.sh", keys, "/", "/control", env=environment)
    assert made.returncode == 0, made.stdout + made.stderr
    assert asked.read_text().splitlines() == [
        f"security create_keystore {keys}",
        f"security generate_artifacts -k {keys} -p {keys}/policy.xml",
    ]
    policy = (keys / "policy.xml").read_text()
    assert '<profile ns="/control" node="ft_controller">' in policy
    assert f"keys of {policy.count('<enclave ')} enclaves" in made.stdout
    assert keys.stat().st_mode & 0o077 == 0  # for nobody else
    # Keys are never overwritten.
    (keys / "private").mkdir()
    again = run(DOCKER / "make_keystore.sh", keys, env=environment)
    assert again.returncode == 1
    assert "already" in again.stderr


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_compose_files_share_memory_only_with_matching_uids(path):
    """Shared memory between different uids shows topics and loses data."""
    for name, service in yaml.safe_load(path.read_text())["services"].items():
        assert service["network_mode"] == "host", name
        transports = service["environment"].get("FASTDDS_BUILTIN_TRANSPORTS")
        if service.get("ipc") == "host":
            assert "UID" in service["build"]["args"], name
        else:
            assert transports == "UDPv4", name


def test_launch_arguments_in_compose_files_exist():
    launch = ROOT / "launch" / "full_stack.launch.xml"
    if not launch.exists():
        pytest.fail("launch/full_stack.launch.xml is missing")
    known = set(re.findall(r'<arg name="(\w+)"', launch.read_text()))
    for path in COMPOSE:
        for service in yaml.safe_load(path.read_text())["services"].values():
            for word in service["command"]:
                if ":=" in word:
                    assert word.split(":=")[0] in known, f"{path.name}: {word}"


@pytest.mark.stack
def test_health_is_that_of_the_stack_monitor(ros):
    environment = without_ros(ROS_DOMAIN_ID=str(ros.domain), KINSTACK_NAMESPACE="/ward")
    assert run(DOCKER / "healthcheck.sh", env=environment).returncode == 1  # nobody answers
    ros.process("kin_monitor", "stack_monitor", {"expected": ["stack_monitor"]}, "/ward")
    ros.wait_active("/ward/stack_monitor")
    healthy = run(DOCKER / "healthcheck.sh", env=environment)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr


@pytest.mark.stack
def test_a_missing_node_is_unhealthy(ros):
    ros.process("kin_monitor", "stack_monitor", {"expected": ["stack_monitor", "kin_solvers"]})
    ros.wait_active("/stack_monitor")
    sick = run(DOCKER / "healthcheck.sh", env=without_ros(ROS_DOMAIN_ID=str(ros.domain)))
    assert sick.returncode == 1
    assert "kin_solvers" in sick.stdout + sick.stderr
