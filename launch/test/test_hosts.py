"""Two hosts and a cable: network namespaces joined by a veth pair.

Each host has its own network, loopback and shared memory, made here and gone with the processes
that hold them; nothing outside of them is touched.
"""

import os
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack, contextmanager, suppress

import psutil
import pytest

from kin_testing.fixtures import wait_until

pytestmark = [pytest.mark.stack, pytest.mark.slow]

DOMAIN = 7
SYSTEMS = ("cuik", "ft", "continuum", "hier", "robots", "dashboard")
WITH_DELTA = [*(f"{system}:=false" for system in SYSTEMS), "delta_fleet:=0"]
ONLY_MONITOR = [*WITH_DELTA, "delta:=false"]

#: A private /dev/shm keeps DDS from talking through memory that two hosts would not share.
HOLD = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo ready && exec cat"


class Host:
    """One network namespace, held by a process that waits for the end of its input."""

    def __init__(self, prefix, *, new_user):
        options = ["--user", "--map-root-user"] if new_user else []
        self._holder = subprocess.Popen(
            [*prefix, "unshare", *options, "--net", "--mount", "sh", "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._holder.stdout.readline().strip() != "ready":
            self._holder.stdin.close()
            reason = self._holder.stderr.read().strip() or "no reason given"
            self._holder.wait()
            raise PermissionError(reason)
        self.pid = self._holder.pid
        self.address = ""

    def enter(self, *spaces):
        """The words that run a command on this host."""
        return ["nsenter", "-t", str(self.pid), "--preserve-credentials", *spaces, "--"]

    def command(self, *words):
        return [*self.enter("--user", "--net", "--mount"), *words]

    def run(self, *words, **options):
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=90, **options
        )

    def start(self, *words, **options):
        return psutil.Popen(self.command(*words), **options)

    def end(self):
        self._holder.stdin.close()
        self._holder.wait(10)


class Pair:
    """Two hosts and the cable between them."""

    def __init__(self, stack):
        self.one = Host([], new_user=True)
        stack.callback(self.one.end)
        self.two = Host(self.one.enter("--user"), new_user=False)
        stack.callback(self.two.end)
        cable = ("link", "add", "cable0", "type", "veth", "peer", "name", "cable1")
        self._ip(self.one, *cable, "netns", str(self.two.pid))
        for number, host in enumerate((self.one, self.two)):
            host.address = f"10.213.0.{number + 1}"
            self._ip(host, "address", "add", f"{host.address}/24", "dev", f"cable{number}")
            self._ip(host, "link", "set", f"cable{number}", "up", "multicast", "on")
            self._ip(host, "route", "add", "224.0.0.0/4", "dev", f"cable{number}")

    def _ip(self, host, *words):
        done = host.run("ip", *words)
        if done.returncode:
            raise PermissionError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def cut(self):
        self._ip(self.two, "link", "set", "cable1", "down")

    def mend(self):
        self._ip(self.two, "link", "set", "cable1", "up")
        self._ip(self.two, "route", "replace", "224.0.0.0/4", "dev", "cable1")


@pytest.fixture(scope="module")
def pair():
    with ExitStack() as stack:
        try:
            made = Pair(stack)
        except (PermissionError, FileNotFoundError) as error:
            pytest.skip(f"network namespaces are not allowed here: {error}")
        yield made


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    log = tmp_path_factory.mktemp("hosts") / "log"
    values = {**os.environ, "ROS_DOMAIN_ID": str(DOMAIN), "ROS_LOG_DIR": str(log)}
    values.pop("ROS_AUTOMATIC_DISCOVERY_RANGE", None)
    return values


@contextmanager
def launched(host, environment, discovery, words):
    """A stack on a host; it ends with the block and leaves no process.

    What it says is shown with a test that fails.
    """
    process = host.start(
        *(sys.executable, "-m", "kin_tools.launch", "kin_bringup", "full_stack.launch.xml"),
        *words,
        env={**environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": discovery},
    )
    try:
        yield process
    finally:
        family = process.children(recursive=True) if process.poll() is None else []
        with suppress(psutil.NoSuchProcess):
            process.terminate()
        process.wait(60)
        _, alive = psutil.wait_procs(family, timeout=60.0)
        assert not alive


@pytest.fixture(scope="module")
def stack(pair, environment):
    """The monitor and the delta robots on host one, to be found from beyond it."""
    with launched(pair.one, environment, "SUBNET", WITH_DELTA) as process:
        yield process


def trouble(host, environment, discovery, wait=20.0, timeout=20.0):
    """What somebody on a host hears of the stack: nothing if it is ready."""
    question = f"{{wait: {min(timeout - 2.0, 50.0)}}}"
    done = host.run(
        *(sys.executable, "-m", "kin_tools.call", "--wait", str(wait), "--timeout", str(timeout)),
        *("/stack_monitor/check_ready", "kin_interfaces/srv/CheckReady", question),
        env={**environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": discovery},
    )
    return "" if done.returncode == 0 else done.stderr


#: Asks again and again and says what came; lives through a cut cable.
CALLER = """
import sys, time
from kin_interfaces.srv import CheckReady, SolveDelta
from kin_ros.client import open_client
from kin_core.errors import KinError

# Inverse kinematics on the axis, below the base: three equal angles.
robot = SolveDelta.Request(operation=SolveDelta.Request.INVERSE, count=1, data=[0.0, 0.0, -0.06])
with open_client("caller") as client:
    while True:
        try:
            client.call("/stack_monitor/check_ready", CheckReady, CheckReady.Request(),
                        wait=1.0, timeout=3.0)
            answer = client.call("/gpu_kinematics/solve_delta", SolveDelta, robot,
                                 wait=1.0, timeout=3.0)
            assert answer.status.code == 0, answer.status
            assert max(answer.data) - min(answer.data) < 1e-9, answer.data
            print("answer", flush=True)
        except KinError:
            print("nothing", flush=True)
        time.sleep(0.1)
"""

#: Noise on every port that DDS may listen to, half of it with the header of RTPS; then messages
#: that are none on a topic that the stack listens to.
NOISE = """
import random, socket, sys
from diagnostic_msgs.msg import DiagnosticArray
from kin_ros.client import open_client
from kin_testing.fuzz import fuzz_topic

target, domain = sys.argv[1], int(sys.argv[2])
chance = random.Random(5)
ports = [7400 + 250 * domain + offset for offset in (0, 1, *range(10, 30))]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[3]))
    for number in range(4000):
        size = chance.choice((0, 1, 4, 20, 64, 300, 1400))
        body = chance.randbytes(size)
        if number % 2:
            # Header, then submessages with a real kind and a length that lies.
            body = (b"RTPS\\x02\\x03\\x01\\x0f" + chance.randbytes(12)
                    + bytes([chance.choice((6, 7, 8, 9, 0x0e, 0x15, 0x16))]) + body)
        for address in (target, "239.255.0.1"):
            out.sendto(body, (address, chance.choice(ports)))
with open_client("noise") as client:
    fuzz_topic(client, "/diagnostics", DiagnosticArray, 300, seed=5)
print("sent", flush=True)
"""


def test_discovery_stays_on_the_host_unless_asked(pair, environment):
    with launched(pair.one, environment, "LOCALHOST", ONLY_MONITOR):
        assert not trouble(pair.one, environment, "LOCALHOST", wait=40.0)
        assert trouble(pair.two, environment, "SUBNET", wait=4.0)


def test_services_across_a_cable_that_is_cut_and_mended(pair, environment, stack):
    assert not trouble(pair.one, environment, "SUBNET", wait=60.0, timeout=60.0)
    caller = pair.two.start(
        sys.executable,
        "-c",
        CALLER,
        stdout=subprocess.PIPE,
        env={**environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"},
    )
    try:

        def hear(word):
            line = ""
            deadline = time.monotonic() + 90.0
            while line != word and time.monotonic() < deadline:
                line = caller.stdout.readline().decode().strip()
            assert line == word

        hear("answer")
        pair.cut()
        hear("nothing")
        assert not trouble(pair.one, environment, "SUBNET")  # the stack's own host does not care
        pair.mend()
        hear("answer")
        assert not trouble(pair.two, environment, "SUBNET")  # nor does a newcomer
    finally:
        caller.kill()
        caller.communicate()


def test_noise_from_another_host(pair, environment, stack):
    assert not trouble(pair.two, environment, "SUBNET", wait=60.0, timeout=60.0)
    before = sorted(child.pid for child in stack.children(recursive=True))
    done = pair.two.run(
        *(sys.executable, "-c", textwrap.dedent(NOISE)),
        *(pair.one.address, str(DOMAIN), pair.two.address),
        env={**environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"},
    )
    assert done.stdout.strip() == "sent", done.stderr
    assert not trouble(pair.one, environment, "SUBNET")
    assert not trouble(pair.two, environment, "SUBNET")
    assert sorted(child.pid for child in stack.children(recursive=True)) == before


def test_the_hosts_leave_nothing_behind():
    before = set(os.listdir("/sys/class/net"))
    with ExitStack() as stack:
        try:
            made = Pair(stack)
        except (PermissionError, FileNotFoundError) as error:
            pytest.skip(f"network namespaces are not allowed here: {error}")
        assert set(os.listdir("/sys/class/net")) == before
        names = made.one.run("ip", "-o", "link").stdout
        assert "cable0" in names
        pids = (made.one.pid, made.two.pid)
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), 60.0, "the holders to end")
    assert set(os.listdir("/sys/class/net")) == before
