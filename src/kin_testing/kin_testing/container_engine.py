"""A Docker engine for tests and benchmarks: the one that runs, or one of our own beside it.

An engine of our own lives in one folder, needs no service, bridge or firewall rule, and ends with
the block that started it. Nothing can be pulled into it where there is no registry, so it can be
given a base image that is made from the machine's own package archive.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "BASE",
    "REAL_TIME_GROUPS",
    "Engine",
    "NoEngine",
    "install_engine",
    "make_base",
    "open_engine",
]

#: The image that the Dockerfile begins with.
BASE = "debian:bookworm-slim"
_SUITE = "bookworm"
#: Debian packages that an engine of our own needs.
_PACKAGES = ("docker.io", "docker-compose", "runc", "iptables", "debootstrap", "iproute2")
#: Kernels that divide real time among groups of processes (cgroup v1) have this file.
REAL_TIME_GROUPS = Path("/sys/fs/cgroup/cpu/cpu.rt_runtime_us")
_ROOT = Path(__file__).resolve().parents[3]


class NoEngine(Exception):
    """There is no engine and none can be started; the message says why."""


@dataclass(frozen=True)
class Engine:
    """One engine and the programs to talk to it.

    Attributes:
        docker: The command line client.
        host: Address of the engine; empty for that of the environment.
        own: Whether it was started here and ends with us.
    """

    docker: str
    host: str = ""
    own: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """The environment of clients."""
        host = {"DOCKER_HOST": self.host} if self.host else {}
        return {**os.environ, **host, "DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}

    def run(
        self, *words: str | Path, timeout: float = 120.0, check: bool = True, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of the client.

        Raises:
            AssertionError: It failed, and that was not expected.
        """
        return self.execute([self.docker, *words], timeout=timeout, check=check, **options)

    def execute(
        self, words: Sequence[str | Path], *, timeout: float, check: bool = True, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that talks to the engine, such as the compose tool."""
        environment = {**self.environment, **options.pop("env", {})}
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
            **options,
        )
        if check and done.returncode != 0:
            shown = " ".join(str(word) for word in words)
            raise AssertionError(f"{shown}: exit code {done.returncode}\n{_tail(done)}")
        return done

    def build(self, tag: str, context: Path = _ROOT, **options: Any) -> float:
        """Build an image from a tree; the time that it took [s].

        Args:
            tag: Name of the image.
            context: The tree; the Dockerfile is at docker/Dockerfile in it.
            options: ``target``, ``arguments`` (a mapping), ``cache`` (False for none), ``file``.
        """
        words: list[str | Path] = ["build", "--network", "host", "--tag", tag]
        words += ["--file", options.get("file", context / "docker" / "Dockerfile")]
        if options.get("target"):
            words += ["--target", options["target"]]
        for name, value in options.get("arguments", {}).items():
            words += ["--build-arg", f"{name}={value}"]
        if not options.get("cache", True):
            words += ["--no-cache"]
        started = time.monotonic()
        self.run(*words, context, timeout=1500.0)
        return time.monotonic() - started

    def inspect(self, name: str, what: str = "") -> Any:
        """What the engine knows about a container or an image."""
        (found,) = json.loads(self.run("inspect", name).stdout)
        for key in filter(None, what.split(".")):
            found = found[key]
        return found

    def has_image(self, tag: str) -> bool:
        """Whether an image is there."""
        return self.run("image", "inspect", tag, check=False).returncode == 0


def _tail(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((done.stdout + done.stderr).splitlines()[-60:])


def _client() -> str:
    """A client that can build with BuildKit: an old one by itself, a new one with its plugin."""
    found = [shutil.which("docker"), "/usr/bin/docker"]
    for program in dict.fromkeys(path for path in found if path and Path(path).exists()):
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"version (\d+)", shown.stdout)
        plugin = subprocess.run([program, "buildx", "version"], capture_output=True, check=False)
        if plugin.returncode == 0 or (version and int(version[1]) < 23):
            return program
    raise NoEngine("there is no docker client that can build (with its buildx plugin)")


@contextlib.contextmanager
def open_engine(folder: Path, *, start: bool) -> Iterator[Engine]:
    """The engine of this machine, or one of our own.

    Args:
        folder: Where one of our own keeps everything.
        start: Whether one may be started.

    Raises:
        NoEngine: There is none.
    """
    try:
        client = _client()
        running = Engine(client)
        if running.run("info", check=False, timeout=20.0).returncode == 0:
            yield running
            return
        reason = "no Docker engine answers here"
    except NoEngine as error:
        client, reason = "", str(error)
    if not start:
        raise NoEngine(f"{reason}; as root, './kinstack test -m container' starts one of its own")
    missing = [name for name in ("dockerd", "runc") if not shutil.which(name)]
    if os.geteuid() != 0:
        raise NoEngine(f"{reason}, and only root can start one")
    if missing or not client:
        raise NoEngine(f"{reason}, and {' and '.join(missing) or 'docker'} is not installed")
    with _started(folder, client) as engine:
        yield engine


def install_engine() -> None:
    """Install what an engine of our own needs, from Debian's archive.

    Raises:
        NoEngine: That failed.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", *_PACKAGES]):
        done = subprocess.run(
            ["apt-get", "-q", *words], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode != 0:
            raise NoEngine(f"apt-get {words[0]} failed: {_tail(done)}")


@contextlib.contextmanager
def _started(folder: Path, client: str) -> Iterator[Engine]:
    """An engine of our own, for as long as the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    address = f"unix://{folder}/docker.sock"
    words = ["dockerd", "--data-root", folder / "data", "--exec-root", folder / "exec"]
    words += ["-H", address, "-p", folder / "docker.pid", "--bridge=none"]
    words += ["--iptables=false", "--ip6tables=false", "--storage-driver", "overlay2"]
    # The hard limit of open files may be lower than what the engine asks for by itself.
    words += ["--default-ulimit", "nofile=1024:1024"]
    if REAL_TIME_GROUPS.exists():  # no container may ask for real time unless the engine may
        words += ["--cpu-rt-runtime", "900000"]
    engine = Engine(client, address, own=True)
    with (
        open(folder / "dockerd.log", "w") as log,
        subprocess.Popen([str(word) for word in words], stdout=log, stderr=log) as daemon,
    ):
        try:
            deadline = time.monotonic() + 60.0
            while engine.run("info", check=False, timeout=20.0).returncode != 0:
                if daemon.poll() is not None or time.monotonic() > deadline:
                    said = (folder / "dockerd.log").read_text().splitlines()[-5:]
                    raise NoEngine("an engine of our own does not start: " + " ".join(said))
                time.sleep(0.2)
            yield engine
        finally:
            containers = engine.run("ps", "-aq", check=False).stdout.split()
            if containers:
                engine.run("rm", "-f", "-v", *containers, check=False)
            daemon.terminate()
            try:
                daemon.wait(60.0)
            except subprocess.TimeoutExpired:
                daemon.kill()
    shutil.rmtree(folder, ignore_errors=True)


def make_base(engine: Engine, folder: Path, tag: str = BASE) -> None:
    """Make the base image from the machine's own package archive.

    It carries the machine's certificates and pip's settings, so that a build reaches the index.

    Args:
        engine: Where to.
        folder: For the files on the way.
        tag: Name of the image.

    Raises:
        NoEngine: This machine has no archive to make it from.
    """
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    archive = dict(line.split(maxsplit=1) for line in targets.stdout.splitlines() if " " in line)
    if _SUITE not in archive or not shutil.which("debootstrap"):
        raise NoEngine(f"no {BASE} is here, and no archive of Debian {_SUITE} to make it from")
    root = folder / "base"
    words = ["debootstrap", "--variant=minbase", "--include=ca-certificates", _SUITE]
    engine.execute([*words, root, archive[_SUITE]], timeout=600.0)
    for name in ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale"):
        shutil.rmtree(root / name, ignore_errors=True)
    for name in ("var/cache/apt", "var/lib/apt/lists", "var/log"):
        for path in (root / name).glob("*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(
        "".join(f"path-exclude /usr/share/{name}/*\n" for name in ("doc", "man", "info", "locale"))
    )
    bundle = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
    shutil.copy(bundle, root / "etc/ssl/certs/ca-certificates.crt")
    (root / "etc/pip.conf").write_text(_pip_settings())
    with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as packing:
        engine.run("import", "-", tag, stdin=packing.stdout, timeout=300.0)
    shutil.rmtree(root)


def _pip_settings() -> str:
    """This machine's settings of pip that mean something in a container."""
    shown = subprocess.run(["pip", "config", "list"], capture_output=True, text=True, check=False)
    settings = dict(re.findall(r"^\S*?\.?([\w-]+)='(.*)'$", shown.stdout, re.MULTILINE))
    lines = ["[global]", "cert = /etc/ssl/certs/ca-certificates.crt"]
    for name in ("index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout"):
        addresses = [word for word in settings.get(name, "").split() if "file:" not in word]
        if addresses:
            lines.append(f"{name} = {' '.join(addresses)}")
    return "\n".join(lines) + "\n"
