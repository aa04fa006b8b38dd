"""The images, built and attacked in a real engine."""

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import yaml

from kin_testing.container_engine import REAL_TIME_GROUPS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.container,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

#: What the compose files ask for, in the words of `docker run`.
HARDENED = (
    *("--read-only", "--tmpfs", "/tmp:mode=1777,size=1g", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges:true", "--memory", "3g", "--pids-limit", "512"),
)
#: Discovery and transports as ROS has them without the image's profile.
PLAIN = (
    *("--env", "FASTRTPS_DEFAULT_PROFILES_FILE="),
    *("--env", "ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"),
)
READY = ("/stack_monitor/check_ready", "kin_interfaces/srv/CheckReady")
#: ROS domains for containers on the host's network.
DOMAINS = itertools.count(81)
#: A stack that starts quickly, where a test is not about the nodes.
SMALL = [f"{name}:=false" for name in ("cuik", "ft", "continuum", "hier", "dashboard")]


class Container:
    """One container; it is removed with its volumes when the block ends."""

    def __init__(self, engine, name):
        self.engine, self.name = engine, name

    def execute(self, *words, check=True, timeout=120.0):
        return self.engine.run("exec", self.name, *words, check=check, timeout=timeout)

    def kinstack(self, *words, **options):
        return self.execute("kinstack", *words, **options)

    def health(self):
        return self.engine.inspect(self.name, "State.Health.Status")

    def logs(self):
        shown = self.engine.run("logs", self.name)
        return shown.stdout + shown.stderr

    def wait(self, condition, timeout, what):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"not within {timeout} s: {what}\n{self.logs()[-4000:]}"
            time.sleep(0.3)

    def wait_healthy(self, timeout=120.0):
        self.wait(lambda: self.health() == "healthy", timeout, "healthy")
        return self

    def stop(self, grace=10):
        """Stop it as `docker stop` does; its exit code."""
        self.engine.run("stop", "-t", str(grace), self.name, timeout=grace + 30.0)
        return self.engine.inspect(self.name, "State.ExitCode")

    @property
    def pid(self):
        return self.engine.inspect(self.name, "State.Pid")


@contextlib.contextmanager
def container(engine, image, *words, options=()):
    name = f"kinstack-test-{uuid.uuid4().hex[:8]}"
    engine.run("run", "--detach", "--name", name, *options, image, *words)
    try:
        yield Container(engine, name)
    finally:
        engine.run("rm", "--force", "--volumes", name, check=False)


def once(engine, image, *words, options=(), check=True, timeout=180.0):
    """Run one command in a container that ends with it, away from the host's network."""
    return engine.run(
        *("run", "--rm", "--network", "none", *options, image, *words),
        check=check,
        timeout=timeout,
    )


def outside(*words, domain, check=True, **variables):
    """Call a service from the host, as this user."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), **variables}
    return subprocess.run(
        [sys.executable, "-m", "kin_tools.call", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=check,
    )


@pytest.fixture(scope="module")
def stack(engine, image):
    """The whole stack, hardened, in a network of its own; tests leave it as they find it."""
    with container(engine, image, options=("--network", "none", *HARDENED)) as running:
        yield running.wait_healthy()


# What is in the image -----------------------------------------------------------------------------


def test_the_image_is_small_and_holds_no_tools(engine, image):
    assert engine.inspect(image, "Size") <= 900e6
    tools = "gcc g++ cc c++ ld as make cmake ninja pip pip3 colcon git curl wget ruff pytest"
    found = once(engine, image, "sh", "-c", f"for t in {tools}; do command -v $t; done; true")
    assert found.stdout.split() == []
    shown = once(
        *(engine, image, "sh", "-c"),
        "find /opt/kinstack -name '*.h' -o -name '*.hpp' -o -name '*.a' -o -name CMakeCache.txt"
        " -o -path '*/test/*' -name 'test_*.py'",
    )
    assert shown.stdout.split() == []


def test_the_image_holds_no_secret_and_no_cache(engine, image):
    words = (
        "find / -xdev \\( -path /proc -o -path /sys \\) -prune -o -type f \\("
        " -name '*.key' -o -name 'id_*sa' -o -name .netrc -o -name .env -o -name '*.p12'"
        " -o -name 'pip.log' -o -path '*/.cache/*' -o -path '*/.git/*' -o -path '*/keystore/*'"
        " -o -path '/var/lib/apt/lists/*_*' -o -path '/var/cache/apt/*.bin' \\) -print;"
        " grep -rlI -- '-----BEGIN [A-Z ]*PRIVATE KEY' /opt /etc /home /root /data /usr/local; true"
    )
    found = once(engine, image, "sh", "-c", words, options=("--user", "0"))
    assert found.stdout.split() == []
    # Nothing of the machine that built it, beyond what its base brought.
    history = engine.run("history", "--no-trunc", "--format", "{{.CreatedBy}}", image).stdout
    assert str(ROOT) not in history
    assert (
        str(ROOT)
        not in once(engine, image, "sh", "-c", "grep -rlI /work /opt/kinstack/docker; env").stdout
    )


def test_the_image_says_what_it_is_and_what_is_in_it(engine, image):
    config = engine.inspect(image, "Config")
    labels = config["Labels"]
    assert labels["org.opencontainers.image.version"] == (ROOT / "VERSION").read_text().strip()
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["User"] == "1000:1000"
    bill = json.loads(once(engine, image, "cat", labels["org.kinstack.sbom"]).stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    listed = {part["purl"] for part in bill["components"]}
    program = (
        "import importlib.metadata as m, re; print('\\n'.join('pkg:pypi/%s@%s' % "
        "(re.sub(r'[-_.]+', '-', d.metadata['Name']).lower(), d.version) for d in "
        "m.distributions(path=[p for p in __import__('sys').path if '.venv' in p])"
        " if d.read_text('WHEEL')))"
    )
    there = set(once(engine, image, "shell", "python", "-c", program).stdout.split())
    assert there == {purl for purl in listed if purl.startswith("pkg:pypi/")}
    lock = (ROOT / "requirements.lock").read_text()
    for part in bill["components"]:
        if part["purl"].startswith("pkg:pypi/"):
            assert part["hashes"], part["name"]
            assert all(f"sha256:{each['content']}" in lock for each in part["hashes"])
    packages = once(engine, image, "dpkg-query", "-W", "-f", "${Package}\\n").stdout.split()
    assert set(packages) == {
        part["name"] for part in bill["components"] if part["purl"].startswith("pkg:deb/")
    }


def test_an_edit_of_a_node_compiles_no_kernel_again(engine, image, tmp_path):
    """What the engine reuses is what layers.py promises, for files that no kernel depends on."""
    tree = tmp_path / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    for name in ("continuum_ik/continuum_ik/node.py", "kin_ros/kin_ros/node.py"):
        (tree / "src" / name).write_text((tree / "src" / name).read_text() + "\nEDITED = True\n")
    built = engine.run(
        *("build", "--network", "host", "--tag", "kinstack-test:edited", "--target", "default"),
        *("--file", tree / "docker" / "Dockerfile", tree),
        timeout=1500.0,
    )
    said = built.stdout + built.stderr
    steps = dict(re.findall(r"^#(\d+) (\[.*)$", said, re.MULTILINE))
    cached = set(re.findall(r"^#(\d+) CACHED", said, re.MULTILINE))
    again = {text for number, text in steps.items() if number not in cached and "RUN" in text}
    assert [text for text in again if "layers.py" not in text] == []
    asked = "import continuum_ik.node as n, kin_ros.node as k; print(n.EDITED, k.EDITED)"
    shown = once(engine, "kinstack-test:edited", "python", "-c", asked)
    assert shown.stdout.split() == ["True", "True"]


# What it does -------------------------------------------------------------------------------------


def test_every_node_answers(engine, image):
    """As a user whom the image does not know, with nothing but memory to write to."""
    checked = once(
        engine, image, "check", options=(*HARDENED, "--user", "1234567:0"), timeout=300.0
    )
    assert "every node answered" in checked.stdout


def test_nothing_is_written_but_to_tmp_and_data_and_no_kernel_is_compiled(engine, image):
    with container(engine, image, "check", options=("--network", "none")) as running:
        engine.run("wait", running.name, timeout=300.0)
        assert "every node answered" in running.logs()
        changed = [
            line.split(maxsplit=1)[1]
            for line in engine.run("diff", running.name).stdout.splitlines()
        ]
        assert [path for path in changed if not path.startswith("/tmp")] == []
        shipped = once(
            engine, image, "find", "/opt/kinstack/kernels", "-name", "*.nbc"
        ).stdout.split()
        cached = {
            path.removeprefix("/tmp/kinstack/numba/") for path in changed if path.endswith(".nbc")
        }
        assert cached == {path.removeprefix("/opt/kinstack/kernels/") for path in shipped}


def test_the_words_of_kinstack_are_those_of_the_image(engine, image, stack):
    assert "usage" in once(engine, image, "up", "--help").stdout
    assert once(engine, image, "sh", "-c", "exit 7", check=False).returncode == 7
    assert once(engine, image, "shell", "python", "-c", "import rclpy").returncode == 0
    refused = once(engine, image, "call", "/nobody", READY[1], "{}", "--wait", "0.2", check=False)
    assert (refused.returncode, "no service /nobody" in refused.stderr) == (1, True)
    refused = once(engine, image, "shell", "kinstack", "test", check=False)
    assert refused.returncode == 2
    assert "needs a clone" in refused.stderr
    network = ("--network", f"container:{stack.name}")
    answer = engine.run("run", "--rm", *network, image, "call", *READY, "{wait: 30.0}")
    assert yaml.safe_load(answer.stdout)["ready"] is True
    golden = once(engine, image, "bag", "golden", "check", "hier", "continuum", timeout=300.0)
    assert golden.returncode == 0


def test_limits_fit_and_the_health_check_costs_little(stack):
    read = stack.execute(
        "sh",
        "-c",
        "cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes"
        " /sys/fs/cgroup/pids/pids.current 2>/dev/null || cat /sys/fs/cgroup/memory.peak"
        " /sys/fs/cgroup/pids.current",
    )
    memory, tasks = map(int, read.stdout.split())
    assert memory < 3e9 / 1.5
    assert tasks < 512 / 1.5
    check = "/opt/kinstack/docker/healthcheck.sh >/dev/null"
    words = f"i=0; while [ $i -lt 20 ]; do {check}; i=$((i+1)); done; times"
    used = stack.execute("sh", "-c", words).stdout.splitlines()[1]
    seconds = sum(60.0 * float(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", used))
    assert seconds / 20 < 0.05


def test_hardening_holds(stack):
    status = stack.execute("cat", "/proc/self/status").stdout
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    assert stack.execute("id", "-u").stdout.strip() == "1000"
    for place in ("/opt/kinstack/x", "/usr/x", "/etc/x", "/opt/kinstack/.venv/x"):
        assert stack.execute("touch", place, check=False).returncode != 0, place
    stack.execute("touch", "/data/x")


def node_pid(running, node):
    """The process id of a node inside its container; None while there is none."""
    program = (
        "import glob\n"
        "for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "  try:\n"
        f"    if b'__node:={node}' in open(name, 'rb').read().split(b'\\0'):\n"
        "      print(name.split('/')[2])\n"
        "  except OSError: pass\n"
    )
    found = running.execute("python3", "-c", program).stdout.split()
    return found[0] if found else None


def test_a_node_that_dies_for_good_is_unhealthy_and_the_end_is_in_good_order(engine, image):
    options = ("--network", "none", *HARDENED)
    with container(engine, image, *SMALL, options=options) as running:
        running.wait_healthy()
        # Killed once it comes back; killed at each birth it does not.
        program = (
            "import os, pathlib, signal, time\n"
            "while True:\n"
            "  for p in pathlib.Path('/proc').iterdir():\n"
            "    try:\n"
            "      if b'__node:=gpu_kinematics' in (p / 'cmdline').read_bytes().split(b'\\0'):\n"
            "        os.kill(int(p.name), signal.SIGKILL)\n"
            "    except (OSError, ValueError): pass\n"
            "  time.sleep(0.2)\n"
        )
        first = node_pid(running, "gpu_kinematics")
        running.execute("sh", "-c", f"kill -9 {first}")
        running.wait(
            lambda: (
                re.match(
                    r"ready: (\d+) of \1\b", running.execute("cat", "/tmp/kinstack/state").stdout
                )
                and node_pid(running, "gpu_kinematics") != first
            ),
            120.0,
            "back again",
        )
        engine.run("exec", "--detach", running.name, "python3", "-c", program)
        running.wait(lambda: running.health() == "unhealthy", 90.0, "unhealthy")
        said = engine.inspect(running.name, "State.Health.Log")[-1]["Output"]
        assert "gpu_kinematics" in said


def test_sigterm_ends_everything_and_leaves_no_shared_memory(engine, image):
    """With the host's memory, where anything that stays would stay for ever."""
    domain, user = next(DOMAINS), 123456

    def memory():
        found = set()
        for path in Path("/dev/shm").iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_uid == user:
                    found.add(path.name)
        # The tracing library of ROS keeps one page for each user, whatever runs.
        return {name for name in found if not name.startswith("lttng-ust")}

    options = ("--network", "host", "--ipc", "host", "--env", f"ROS_DOMAIN_ID={domain}", *PLAIN)
    with container(engine, image, options=(*options, "--user", f"{user}:{user}")) as running:
        running.wait_healthy()
        assert memory()
        # Another user: shared memory carries nothing, and `call` says so instead of waiting on.
        lost = outside(*READY, "{}", "--timeout", "7", domain=domain, check=False)
        assert lost.returncode == 1
        assert "share no memory" in lost.stderr
        assert str(user) in lost.stderr
        advice = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}
        advice |= {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
        told = outside(*READY, "{wait: 30.0}", "--wait", "60", domain=domain, **advice)
        assert yaml.safe_load(told.stdout)["ready"] is True
        assert running.stop() == 0
        assert "supervisor was ended" not in running.logs()
        assert memory() == set()


def test_a_client_outside_gets_answers(engine, image):
    """The whole instruction: `docker run --rm --network host kinstack`."""
    domain = next(DOMAINS)
    options = ("--rm", "--network", "host", "--env", f"ROS_DOMAIN_ID={domain}")
    with container(engine, image, options=options) as running:
        running.wait_healthy()
        answer = outside(*READY, "{wait: 20.0}", domain=domain)
        assert yaml.safe_load(answer.stdout)["ready"] is True
        request = "{poses: [{position: {y: 0.02, z: 0.48}, orientation: {w: 1.0}}]}"
        kind = "kin_interfaces/srv/SolveContinuumIK"
        solved = outside("/continuum_ik/solve_ik", kind, request, domain=domain)
        assert yaml.safe_load(solved.stdout)["status"]["code"] == 0


def test_two_networks_find_each_other_only_when_asked_to(engine, image):
    if os.geteuid() != 0 or not shutil.which("nsenter") or not Path("/proc/self/ns/net").exists():
        pytest.skip("only root can lay a cable between two containers")
    options = ("--network", "none", *HARDENED)
    names = [f"/{name}" for name in ("here", "there")]

    def join(first, second):
        def ip(pid, *words):
            subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", *words], check=True)

        one, two = first.pid, second.pid
        cable = ("link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns")
        ip(one, *cable, str(two))
        for pid, address in ((one, "10.214.0.1"), (two, "10.214.0.2")):
            ip(pid, "address", "add", f"{address}/24", "dev", "cable")
            ip(pid, "link", "set", "cable", "up")

    def hears(running, name):
        question = (f"{name}/stack_monitor/check_ready", READY[1], "{}", "--wait", "8")
        return running.kinstack("call", *question, check=False).returncode == 0

    for peers, found in (((), False), (("10.214.0.2", "10.214.0.1"), True)):
        extra = [(*PLAIN, "--env", f"ROS_STATIC_PEERS={peer}") for peer in peers] or [(), PLAIN]
        with (
            container(engine, image, "sleep", "600", options=(*options, *extra[0])) as first,
            container(engine, image, "sleep", "600", options=(*options, *extra[1])) as second,
        ):
            join(first, second)  # the nodes look for interfaces when they start
            for running, name in zip((first, second), names, strict=True):
                words = ("kinstack", "up", *SMALL, f"namespace:={name}")
                engine.run("exec", "--detach", running.name, *words)
            for running, name in zip((first, second), names, strict=True):
                running.wait(lambda running=running, name=name: hears(running, name), 60.0, name)
            assert hears(first, "/there") is found
            assert hears(second, "/here") is found


def test_bags_outlive_the_container_that_recorded_them(engine, image):
    options = ("--network", "none", *HARDENED)
    with container(engine, image, *SMALL, options=options) as running:
        running.wait_healthy()
        running.kinstack("bag", "record", "-o", "kept", "/stack_state", "--duration", "3")
        assert running.stop() == 0
        engine.run("start", running.name)
        running.wait_healthy()
        told = running.kinstack("bag", "info", "/data/kept").stdout
        assert "/stack_state" in told


def test_real_time_priority_is_an_option(engine, image):
    """For root with that one capability; a user who is not root does not get it."""
    allowed = (*HARDENED, "--cap-add", "SYS_NICE")
    if REAL_TIME_GROUPS.exists():
        share = REAL_TIME_GROUPS.parent / "docker" / REAL_TIME_GROUPS.name
        if not share.exists() or int(share.read_text()) == 0:
            pytest.skip("the engine was started without --cpu-rt-runtime")
        allowed += ("--cpu-rt-runtime", "400000")
    program = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))"
    words = ("python3", "-c", program)
    assert once(engine, image, *words, options=(*HARDENED, "--user", "0"), check=False).returncode
    assert once(engine, image, *words, options=allowed, check=False).returncode
    allowed += ("--user", "0")
    assert once(engine, image, *words, options=allowed).returncode == 0
    words = ("run", "ft_controller", "arm_simulator_node")
    words += ("--ros-args", "-p", "realtime_priority:=20")
    policies = "cut -d')' -f2- /proc/[0-9]*/task/*/stat 2>/dev/null | cut -d' ' -f40"
    with container(engine, image, *words, options=("--network", "none", *allowed)) as running:
        fifo = str(os.SCHED_FIFO)
        running.wait(
            lambda: fifo in running.execute("sh", "-c", policies).stdout.split(), 60.0, "SCHED_FIFO"
        )


# The other images ---------------------------------------------------------------------------------


def test_the_ros_image_starts_its_nodes_by_ros2_launch(engine, native_image):
    with container(engine, native_image, options=("--network", "none", *HARDENED)) as running:
        running.wait_healthy(240.0)
        commands = running.execute("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
        assert "/opt/ros/jazzy/bin/ros2 launch" in commands
        ranges = running.execute("sh", "-c", "cat /proc/[0-9]*/environ | tr '\\0' '\\n'").stdout
        assert "ROS_AUTOMATIC_DISCOVERY_RANGE=SYSTEM_DEFAULT" in ranges
        assert "ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET" not in ranges
        answer = engine.run(
            *("run", "--rm", "--network", f"container:{running.name}", native_image),
            *("call", *READY, "{wait: 30.0}"),
        )
        assert yaml.safe_load(answer.stdout)["ready"] is True
        inside = running.execute("kinstack", "call", *READY, "{wait: 30.0}")
        assert yaml.safe_load(inside.stdout)["ready"] is True
        assert running.stop(20) == 0
    words = ("ros2", "launch", "kin_bringup", "full_stack.launch.xml", "-s")
    assert "namespace" in once(engine, native_image, *words).stdout


def test_the_gpu_image_compiles_its_kernels_and_says_that_no_device_is_there(engine, gpu_image):
    program = (
        "import cupy; from cupy_backends.cuda.libs import nvrtc\n"
        "from gpu_kinematics.cuda import options, source\n"
        "p = nvrtc.createProgram(source('float64'), 'delta.cu', [], [])\n"
        "nvrtc.compileProgram(p, ['--gpu-architecture=sm_90', *options('strict')])\n"
        "print(nvrtc.getCUBIN(p)[:4])\n"
        "from gpu_kinematics.delta import Delta; from gpu_kinematics.geometry import Geometry\n"
        "print(Delta(Geometry(0.0105, 0.04, 0.068)).fallback)\n"
    )
    shown = once(engine, gpu_image, "python", "-c", program).stdout.splitlines()
    assert shown[0] == str(b"\x7fELF")
    if "no CUDA device" not in shown[1]:
        assert shown[1] in ("", "None"), "neither a device nor a sentence"


# Compose ------------------------------------------------------------------------------------------


def test_compose_one_host(engine, compose):
    compose(["compose.yaml"], "up", "-d", "stack")
    name = compose(["compose.yaml"], "ps", "-q", "stack").stdout.strip()
    running = Container(engine, name).wait_healthy()
    told = outside(*READY, "{wait: 20.0}", domain=77)
    assert yaml.safe_load(told.stdout)["ready"] is True
    compose(["compose.yaml"], "stop", "-t", "15")
    assert engine.inspect(running.name, "State.ExitCode") == 0


def test_compose_two_hosts(engine, compose):
    """Both on this machine, which is its own peer."""
    files, peers = ["compose.two-hosts.yaml"], {"KINSTACK_PEERS": "127.0.0.1"}
    profiles = ("--profile", "solvers", "--profile", "control")
    refused = compose(files, *profiles, "config", check=False)
    assert refused.returncode != 0
    assert "address of the other host" in refused.stderr
    compose(files, *profiles, "up", "-d", **peers)
    names = {
        service: compose(files, *profiles, "ps", "-q", service, **peers).stdout.strip()
        for service in ("solvers", "control")
    }
    for name in names.values():
        Container(engine, name).wait_healthy()
    far = ("/control/stack_monitor/check_ready", READY[1], "{wait: 30.0}")
    solvers, control = (Container(engine, name) for name in names.values())
    assert yaml.safe_load(solvers.kinstack("call", *far).stdout)["ready"] is True
    pose = "{position: {x: 0.4, y: 0.15, z: 0.3}, orientation: {w: 1.0}}"
    request = f"{{arm: puma560, target: {{pose: {pose}}}}}"
    kind = "kin_interfaces/srv/SolveAllIK"
    solved = control.kinstack("call", "/kin_solvers/solve_all_ik", kind, request)
    assert yaml.safe_load(solved.stdout)["status"]["code"] == 0


@pytest.mark.parametrize("changed", [False, True], ids=["the same", "changed"])
def test_compose_replay_exits_with_the_result(compose, tmp_path, changed):
    bags = tmp_path / "bags"
    shutil.copytree(ROOT / "src/kin_bags/golden/delta", bags / "before")
    tolerances = yaml.safe_load((ROOT / "src/kin_bags/golden/delta.tolerances.yaml").read_text())
    if changed:  # the time that a solve took is never the same
        for topic in tolerances.values():
            topic["fields"].pop("status.solve_time")
    (bags / "tolerances.yaml").write_text(yaml.safe_dump(tolerances))
    for path in [tmp_path, bags, *bags.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    done = compose(
        ["compose.yaml"],
        *("--profile", "replay", "run", "--rm", "replay"),
        check=False,
        KINSTACK_BAGS=str(bags),
        KINSTACK_CORE="gpu_kinematics",
    )
    assert done.returncode == (1 if changed else 0), done.stdout + done.stderr


def test_compose_files_of_the_gpu_and_of_security_are_understood(compose, tmp_path):
    shown = compose(["compose.yaml"], "--profile", "gpu", "config").stdout
    assert "capabilities" in shown
    files = ["compose.two-hosts.yaml", "compose.security.yaml"]
    options = {"KINSTACK_PEERS": "127.0.0.1", "KINSTACK_KEYSTORE": str(tmp_path / "none")}
    shown = yaml.safe_load(compose(files, "--profile", "control", "config", **options).stdout)
    control = shown["services"]["control"]
    assert control["image"] == "kinstack:native"
    assert control["environment"]["ROS_SECURITY_STRATEGY"] == "Enforce"
    # A keystore that is not there is refused, and not made by root.
    options["KINSTACK_NATIVE_IMAGE"] = "kinstack-test:default"
    failed = compose(
        files, "--profile", "control", "up", "-d", "--no-build", check=False, **options
    )
    assert failed.returncode != 0
    assert not (tmp_path / "none").exists()
