"""The image and the plain way: how long they take from nothing, and what they cost at rest.

The image is built without a cache in a real engine (one of its own where none runs and it may be
started), on a base that is there already. The plain way is measured in a temporary copy of this
tree with empty caches of pip and of the kernels. Both have the machine to themselves; all of it
takes some ten minutes.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil
from domain_coordinator import domain_id

from benchmarks.harness import Bench
from kin_testing.container_engine import (
    BASE,
    Engine,
    NoEngine,
    install_engine,
    make_base,
    open_engine,
)

ROOT = Path(__file__).resolve().parents[1]
#: The file whose edit the rebuild is for: a node, as most edits are of code without kernels.
EDITED = "src/kin_solvers/kin_solvers/node.py"
IMAGE = "kinstack-bench"
#: How long the stack at rest is watched [s].
WATCHED = 20.0


def main(bench: Bench) -> None:
    """Measure the image, then the plain way."""
    folder = Path(tempfile.mkdtemp(prefix="kinstack-bench-", dir="/var/tmp"))
    try:
        tree = copy_tree(folder / "tree")
        try:
            if os.geteuid() == 0 and not shutil.which("docker"):
                install_engine()
            with open_engine(folder / "engine", start=True) as engine:
                if not engine.has_image(BASE) and engine.run("pull", BASE, check=False).returncode:
                    bench.say("making the base image ...")
                    make_base(engine, folder)
                image(bench, engine, tree)
        except NoEngine as error:
            bench.say(f"the image is not measured: {error}")
        plain(bench, tree, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_tree(target: Path) -> Path:
    """A copy of the files of this tree, as a fresh clone would have them."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)
    return target


# The image ---------------------------------------------------------------------------------------


def image(bench: Bench, engine: Engine, tree: Path) -> None:
    """Build, build again after an edit, start, rest, stop."""
    bench.say("building the image without a cache ...")
    built = engine.build(IMAGE, context=tree, target="default", cache=False)
    bench.result("build_s", built, "s", "default target, empty cache, the base is there")
    bench.result("image_mb", engine.inspect(IMAGE, "Size") / 1e6, "MB", "default target")
    file = tree / EDITED
    file.write_text(file.read_text() + "\n# An edit.\n")
    bench.say("building it again after an edit ...")
    again = engine.build(IMAGE, context=tree, target="default")
    bench.result("rebuild_s", again, "s", f"after an edit of {Path(EDITED).name}")
    starts, stops = [], []
    repeats = 1 if bench.quick else 3
    for turn in range(repeats):
        bench.say(f"starting a container ({turn + 1} of {repeats}) ...")
        with container(engine) as (name, started):
            wait_ready(engine, name)
            starts.append(time.monotonic() - started)
            if turn == repeats - 1:
                rest(bench, engine, name)
            begun = time.monotonic()
            engine.run("stop", name)
            stops.append(time.monotonic() - begun)
            code = engine.inspect(name, "State.ExitCode")
            if code != 0:
                raise RuntimeError(f"the container ended with {code}")
    bench.result("start_to_ready_s", median(starts), "s", "all nodes ready")
    bench.result("stop_s", median(stops), "s", "docker stop, exit code 0")


@contextlib.contextmanager
def container(engine: Engine) -> Iterator[tuple[str, float]]:
    """The stack as the README starts it; its name and when it was started [s]."""
    name = f"{IMAGE}-{uuid.uuid4().hex[:8]}"
    with domain_id() as domain:
        options = ("--detach", "--network", "host", "--env", f"ROS_DOMAIN_ID={domain}")
        started = time.monotonic()
        engine.run("run", *options, "--name", name, IMAGE)
        try:
            yield name, started
        finally:
            engine.run("rm", "--force", "--volumes", name, check=False)


def wait_ready(engine: Engine, name: str, timeout: float = 300.0) -> None:
    """Wait until the stack monitor says that every node is ready, by the health check itself."""
    end = time.monotonic() + timeout
    check = ("exec", name, "/opt/kinstack/docker/healthcheck.sh")
    while engine.run(*check, check=False).returncode != 0:
        if time.monotonic() > end:
            raise TimeoutError(engine.run("logs", name).stdout[-2000:])
        time.sleep(0.1)


def rest(bench: Bench, engine: Engine, name: str) -> None:
    """What the stack uses when nobody asks anything."""
    time.sleep(5.0)
    family = [int(line.split()[1]) for line in engine.run("top", name).stdout.splitlines()[1:]]
    processes = [psutil.Process(pid) for pid in family if psutil.pid_exists(pid)]

    def used() -> float:
        times = [process.cpu_times() for process in processes if process.is_running()]
        return sum(each.user + each.system for each in times)

    before, begun = used(), time.monotonic()
    time.sleep(WATCHED)
    share = (used() - before) / (time.monotonic() - begun)
    bench.result("idle_cpu_share", share, "", "of one core, with the demos running")
    memory = sum(process.memory_full_info().pss for process in processes if process.is_running())
    bench.result("idle_pss_mb", memory / 1e6, "MB", "proportional set size of all processes")


# The plain way -----------------------------------------------------------------------------------


def plain(bench: Bench, tree: Path, folder: Path) -> None:
    """``./kinstack up --check`` from nothing, and the next start."""
    home = folder / "home"
    home.mkdir()
    drop = ("VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "AMENT_PREFIX_PATH", "NUMBA_CACHE_DIR")
    drop += ("_ROS_WHEELS_BOOTSTRAP_COMPLETE", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH")
    environment = {key: value for key, value in os.environ.items() if key not in drop}
    own = str(Path(os.environ.get("VIRTUAL_ENV", "/none")) / "bin")
    path = [part for part in environment["PATH"].split(":") if part != own]
    environment |= {"PATH": ":".join(path), "PIP_CACHE_DIR": str(home / "pip")}
    environment |= {"XDG_CACHE_HOME": str(home / "cache"), "UV_CACHE_DIR": str(home / "uv")}
    bench.say("./kinstack up --check from nothing ...")
    begun = time.monotonic()
    done = run(tree, environment, "up", "--check")
    took = time.monotonic() - begun
    if done.returncode != 0:
        raise RuntimeError(f"up --check failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    bench.result("setup_cold_s", took, "s", "up --check, fresh copy, empty caches")
    starts, ends = zip(
        *(start(tree, environment) for _ in range(1 if bench.quick else 3)), strict=True
    )
    bench.result("up_warm_s", median(starts), "s", "up, from the command to all nodes active")
    bench.result("up_stop_s", median(ends), "s", "from Ctrl-C to the end of every process")


def start(tree: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Time from ``./kinstack up`` to the line that all are active, and from SIGINT to the end."""
    with domain_id() as domain:
        begun = time.monotonic()
        with subprocess.Popen(
            [str(tree / "kinstack"), "up"],
            cwd=tree,
            env={**environment, "ROS_DOMAIN_ID": str(domain)},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            active = math.nan
            try:
                for line in process.stdout or ():
                    if " active after " in line:
                        active = time.monotonic() - begun
                        break
            finally:
                asked = time.monotonic()
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60.0)
            if math.isnan(active):
                raise RuntimeError("./kinstack up ended before all nodes were active")
            return active, time.monotonic() - asked


def run(tree: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run ./kinstack in a tree."""
    return subprocess.run(
        [str(tree / "kinstack"), *words],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
