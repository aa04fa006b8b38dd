"""Makes a fresh clone able to run: virtual environment, repaired wheels, colcon build.

Runs before anything is installed, so it uses the standard library alone. Every step leaves a stamp
(a digest of what it was made from) when it is finished, and only then: a step that was cut short is
done again, a step whose inputs are unchanged is skipped without touching the network.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

#: Space that a first set-up needs [bytes]: environment, the installer's cache, build.
SPACE_NEEDED = 3 * 1024**3
SUPPORTED = ((3, 11), (3, 13))

#: Installs a lock in a fifth of pip's time; pip brings it, and does its work where it cannot.
_UV = "uv==0.13.8 --hash=sha256:e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984\n"
#: What uv calls the settings of pip that say where packages come from.
_UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
    "no-cache-dir": "UV_NO_CACHE",
}
#: Settings of pip that change nothing about what is installed here.
_PIP_ONLY = {
    "break-system-packages", "cache-dir", "disable-pip-version-check", "no-color", "no-compile",
    "no-input", "no-python-version-warning", "no-warn-script-location", "prefer-binary",
    "progress-bar", "quiet", "require-virtualenv", "root-user-action", "user", "verbose",
}  # fmt: skip

#: Parts of the lock file that a sourced ROS 2 brings itself.
_FROM_ROS = re.compile(r"^(ros-|colcon-|empy==|lark-parser==|catkin-pkg==|cmake==)")
#: Where the wheels' builder kept its Python; CMake files in the wheels still name it.
_BUILDER_INCLUDE = re.compile(r"/opt/python/cp\d+-cp\d+/include/python3\.\d+")
_BUILDER_NUMPY = re.compile(
    r"/opt/python/cp\d+-cp\d+/lib/python3\.\d+/site-packages/numpy/(?:_core|core)/include"
)
#: Packages of messages that the nodes speak and not every ROS installation has.
_STANDARD = ("control_msgs", "moveit_msgs", "tf2_msgs")
_NO_SOURCE = {"test", "__pycache__", "build", "install", "log"}
_DISK_FULL = "the disk is full: free some space and run this again; it goes on where it stopped"


class SetupError(Exception):
    """Something a person must put right; the message says what to do."""


class Step:
    """One line on the screen: what is being done, how far it is, and in the end how long it took.

    Args:
        what: What is done, for people.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.since = time.monotonic()
        self._write(f"kinstack: {what}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, end="", file=sys.stderr, flush=True)

    def show(self, part: str) -> None:
        """Name what is being worked on, where a line can be written over."""
        if sys.stderr.isatty():
            self._write(f"\r\x1b[Kkinstack: {self.what}: {part[:40]}")

    def __enter__(self) -> Step:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        took = "" if kind else f" [{time.monotonic() - self.since:.0f} s]"
        again = f"\r\x1b[Kkinstack: {self.what}" if sys.stderr.isatty() else ""
        self._write(f"{again}{took}\n")


class Workspace:
    """The folders of one clone, and the steps that prepare them."""

    def __init__(self, root: Path, *, native: bool, dev: bool, keep: Path | None = None) -> None:
        """Name the folders.

        Args:
            root: The clone.
            native: Whether a sourced ROS 2 is used instead of the wheels.
            dev: Whether the tools of the tests are wanted too.
            keep: Folder of what is made from the clone; the clone itself if it is not given.
        """
        keep = keep or root
        self.root = root
        self.native = native
        self.dev = dev
        self.venv = keep / (".venv-native" if native else ".venv")
        self.cache = keep / ".cache"
        self.python = self.venv / "bin" / "python"
        self.install = keep / ("install-native" if native else "install")
        self.build = keep / ("build-native" if native else "build")

    def prepare(self) -> None:
        """Run every step that is not up to date, alone."""
        self.cache.mkdir(exist_ok=True)
        with self._alone():
            self._drop_abandoned()
            self._move_environment()
            self._move_build()
            self._make_environment()
            self.build_packages()
            self._drop_stale_kernels()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the set-up lock; the system drops it with the process, however that ends."""
        with open(self.cache / "setup.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say("another set-up of this clone is running; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # A clone that was moved --------------------------------------------------------------------

    def _drop_abandoned(self) -> None:
        """Remove what is kept for clones, in folders with odd names, that are there no more."""
        if self.root.name != "clone" or not self.root.is_symlink():
            return
        for link in [folder / "clone" for folder in self.root.parent.parent.iterdir()]:
            if link.is_symlink() and not link.exists():
                _say(f"the clone in {os.readlink(link)} is gone: removing what was built from it")
                shutil.rmtree(link.parent, ignore_errors=True)

    def _move_build(self) -> None:
        """Drop what names the folder that the clone was in before it was moved or renamed."""
        where = self.install / ".kinstack" / ".clone"
        before = _read(where)
        if self.install.exists() and before != str(self.root):
            if before:
                _say(f"this clone was in {before}: its packages are built again")
            # Before this file was kept nothing tells where the build was made.
            for folder in (self.build, self.install):
                shutil.rmtree(folder, ignore_errors=True)
        if not where.exists():
            where.parent.mkdir(parents=True, exist_ok=True)
            _replace(where, str(self.root))

    def _move_environment(self) -> None:
        """Name the present folder in the scripts of the environment."""
        where = self.venv / ".clone"
        before = _read(where)
        # An environment behind a link belongs to another clone.
        if not self.venv.is_dir() or self.venv.is_symlink() or before == str(self.venv):
            return
        if not before:
            before = _venv_of_scripts(self.venv) or str(self.venv)
        if before != str(self.venv):
            _say(f"this clone was moved: its environment was in {before}")
            named = [*(self.venv / "bin").iterdir(), self.venv / "pyvenv.cfg"]
            for path in [*named, *(self.venv / "share").rglob("*.cmake")]:
                _rename_inside(path, before, str(self.venv))
        _replace(where, str(self.venv))

    # The virtual environment -------------------------------------------------------------------

    def _make_environment(self) -> None:
        stale = []
        for name in ["requirements.lock"] + (["requirements-dev.lock"] if self.dev else []):
            lock = self.root / name
            if not lock.is_file():
                raise SetupError(f"{name} is missing: the clone is not complete; run 'git status'")
            stamp = self.venv / f".{name}.stamp"
            digest = _digest([lock], extra=f"{sys.version_info[:2]}")
            if _read(stamp) != digest or not self._python_works():
                stale.append((lock, stamp, digest))
        if not stale:
            return
        _need_tools()
        self._make_venv()
        self._install_locks([lock for lock, _, _ in stale])
        if not self.native:
            self._repair_wheels()
        for _, stamp, digest in stale:
            stamp.write_text(digest)

    def _python_works(self) -> bool:
        """Whether the environment has a Python that starts, of the version of this one."""
        target = self.venv / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return target.exists() and os.access(self.python, os.X_OK)

    def _make_venv(self) -> None:
        if self._python_works() and (self.venv / "bin" / "pip").exists():
            return
        if self.native:
            _need_ros()
        free = shutil.disk_usage(self.root).free
        if free < SPACE_NEEDED:
            raise SetupError(
                f"only {free / 1e9:.1f} GB are free in {self.root}; a first set-up needs"
                f" {SPACE_NEEDED / 1e9:.1f} GB. Free some space and run this again."
            )
        if self.venv.is_symlink():
            self.venv.unlink()
        shutil.rmtree(self.venv, ignore_errors=True)
        options = ["--system-site-packages"] if self.native else []
        with Step("making the virtual environment"):
            code, said = self._run([sys.executable, "-m", "venv", *options, str(self.venv)], "venv")
        if code != 0:
            shutil.rmtree(self.venv, ignore_errors=True)
            if "No space left" in said:
                raise SetupError(_DISK_FULL)
            raise SetupError(
                "this Python cannot make virtual environments: install its venv module (Debian,"
                f" Ubuntu: apt install python3-venv). It said: {_last(said)}"
            )
        _replace(self.venv / ".clone", str(self.venv))

    def _install_locks(self, locks: list[Path]) -> None:
        """Install what the locks name: by uv, or by pip where that cannot."""
        text = "\n".join(lock.read_text() for lock in locks)
        chosen = self.cache / "chosen.lock"
        chosen.write_text(without_ros(text) if self.native else text)
        names = {line.split("==")[0] for line in chosen.read_text().splitlines() if "==" in line}
        with Step(f"installing {len(names)} packages") as step:
            if not self._install_by_uv(chosen, step):
                self._install_by_pip(["-r", str(chosen)], step)

    def _install_by_pip(self, words: list[str], step: Step) -> None:
        """Install without looking for more than is named.

        The locks are complete: older pips would look up a dependency with extras afresh, find a
        newer release than the lock's and refuse it. Of two thousand megabytes a tenth is ever
        imported, so nothing is compiled to bytecode before it is.
        """

        def heard(line: str) -> None:
            if line.startswith("Collecting "):
                step.show(line.split()[1].split("==")[0])

        command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check"]
        command += ["--progress-bar", "off", "--no-deps", "--no-compile", "--require-hashes"]
        code, said = self._run([*command, *words], "pip", heard)
        if code != 0:
            raise SetupError(explain_pip(said, self.cache / "pip.log"))

    def _install_by_uv(self, chosen: Path, step: Step) -> bool:
        """Install with pip's settings by uv; False if that is not to be or did not work."""
        if os.environ.get("KINSTACK_INSTALLER") == "pip":
            return False
        code, said = self._run([str(self.python), "-m", "pip", "config", "list"], "pip")
        settings = uv_settings(said) if code == 0 else None
        if settings is None:
            return False
        uv = self.cache / "uv" / "bin" / "uv"
        if not uv.exists():
            wanted = self.cache / "uv.lock"
            wanted.write_text(_UV)
            step.show("uv")
            try:
                where = ["--upgrade", "--target", str(self.cache / "uv")]
                self._install_by_pip([*where, "-r", str(wanted)], step)
            except SetupError:
                return False
        step.show("with uv")
        command = [str(uv), "pip", "install", "--python", str(self.python), "--no-progress"]
        command += ["--no-deps", "--require-hashes", "-r", str(chosen)]
        code, _ = self._run(command, "uv", environment={**settings, **os.environ})
        return code == 0

    def _repair_wheels(self) -> None:
        """Point the wheels' CMake files at this machine's Python and numpy headers."""
        files = sorted((self.venv / "share").rglob("*.cmake"))
        files = [path for path in files if "/opt/python/" in path.read_text()]
        if not files:
            return
        ask = "import sysconfig, numpy; print(sysconfig.get_path('include'))"
        ask += "; print(numpy.get_include())"
        status, said = self._run([str(self.python), "-c", ask], "numpy")
        if status != 0:
            raise SetupError(f"numpy does not start: {_last(said)}")
        include, numpy_include = said.splitlines()[:2]
        for path in files:
            text = _BUILDER_NUMPY.sub(numpy_include, path.read_text())
            _replace(path, _BUILDER_INCLUDE.sub(include, text))

    # The packages ------------------------------------------------------------------------------

    def packages(self) -> list[Path]:
        """The folders of all packages that are built."""
        found = sorted(path.parent for path in (self.root / "src").glob("*/package.xml"))
        if (self.root / "launch" / "package.xml").exists():
            found.append(self.root / "launch")
        return [*self._interop(), *found]

    def _interop(self) -> list[Path]:
        """Standard interfaces that no wheel has; a ROS installation has the real ones."""
        manifests = sorted((self.root / "src" / "interop").glob("*/package.xml"))
        return [] if self.native else [path.parent for path in manifests]

    def build_packages(self) -> None:
        """Build the packages that have changed."""
        stamps = self.install / ".kinstack"
        key = f"{sys.version_info[:2]}{os.environ.get('ROS_DISTRO', '') if self.native else ''}"
        changed = {}
        compiled = False
        for folder in self.packages():
            name = package_name(folder)
            digest = source_digest(folder) + key
            installed = (self.install / name / "share" / name / "package.xml").exists()
            if _read(stamps / name) != digest or not installed:
                changed[name] = digest
                compiled |= (folder / "CMakeLists.txt").exists()
        if not changed:
            return
        if compiled:
            _need_compiler()
        stamps.mkdir(parents=True, exist_ok=True)
        for name in changed:
            (stamps / name).unlink(missing_ok=True)
        few = ", ".join(changed) if len(changed) < 8 else f"{len(changed)} packages"
        with Step(f"building {few}") as step:
            self._colcon(list(changed), step)
        for name, digest in changed.items():
            _replace(stamps / name, digest)

    def _colcon(self, names: list[str], step: Step) -> None:
        environment = {}
        # Said outright, because colcon would have the build wait whenever the machine is busy.
        if "MAKEFLAGS" not in os.environ:
            environment["MAKEFLAGS"] = f"-j{os.cpu_count() or 1}"
        colcon = ["colcon"]
        if not self.native:
            venv = str(self.venv)
            environment |= {"AMENT_PREFIX_PATH": venv, "CMAKE_PREFIX_PATH": venv}
            environment |= {"PATH": f"{venv}/bin:{os.environ.get('PATH', '')}", "VIRTUAL_ENV": venv}
            colcon = [str(self.python), "-m", "colcon"]
        elif shutil.which("colcon") is None:
            raise SetupError("colcon was not found: apt install python3-colcon-common-extensions")
        # The folder of the standard interfaces tells colcon and rosdep to pass it by.
        folders = [self.root / "src", self.root / "launch", *self._interop()]
        command = [*colcon, "--log-base", str(self.cache / "colcon-log"), "build"]
        command += ["--base-paths", *map(str, folders)]
        command += ["--build-base", str(self.build), "--install-base", str(self.install)]
        command += ["--symlink-install", "--packages-select", *names, "--event-handlers"]
        command += ["console_direct-", "console_cohesion-", "desktop_notification-"]
        command += ["--cmake-args", "-DBUILD_TESTING=OFF", f"-DPython3_EXECUTABLE={self.python}"]
        if not self.native:
            command += ["-DKIN_INTERFACES_FOR_WHEELS=ON"]

        def heard(line: str) -> None:
            if line.startswith("Finished <<<"):
                step.show(line.split()[2])

        code, said = self._run(command, "colcon", heard, environment)
        if code != 0:
            raise SetupError(_explain_colcon(said, self.cache / "colcon-log" / "latest"))

    def _drop_stale_kernels(self) -> None:
        """Drop compiled kernels whose sources have changed."""
        named = {package_name(folder): folder for folder in self.packages()}
        folders = {
            name: folder / name for name, folder in named.items() if (folder / name).is_dir()
        }
        script = Path(__file__).with_name("kernel_sources.py")
        if folders:
            runpy.run_path(str(script))["drop_stale_kernels"](self.cache, folders)

    def _run(
        self,
        command: list[str],
        log: str,
        heard: Callable[[str], None] = lambda line: None,
        environment: dict[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run a program in the clone; it ends with us if we are interrupted.

        Args:
            command: The program and its arguments.
            log: Name of the file in the cache that keeps what it writes.
            heard: Is given each line.
            environment: Variables on top of ours.

        Returns:
            Exit code, and all that it wrote.
        """
        variables = {**os.environ, "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1", **(environment or {})}
        if not self.native:
            variables.pop("PYTHONPATH", None)
        lines = []
        with (
            open(self.cache / f"{log}.log", "w") as out,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=variables,
                cwd=self.root,
            ) as process,
        ):
            try:
                for line in process.stdout or ():
                    lines.append(line)
                    out.write(line)
                    heard(line)
            except BaseException:
                process.kill()
                raise
        return process.returncode, "".join(lines)


def uv_settings(pip_settings: str) -> dict[str, str] | None:
    """The environment in which uv looks where pip is told to look.

    Args:
        pip_settings: What ``pip config list`` prints: the environment's, the files'.

    Returns:
        Variables; None if pip has a setting that uv has no word for.
    """
    found: dict[str, tuple[int, str]] = {}
    for line in pip_settings.splitlines():
        matched = re.fullmatch(r"(:env:|global|install)\.([a-z-]+)=('.*'|\".*\")", line.strip())
        if matched is None:
            if re.match(r"(:env:|global|install)\.", line):
                return None
            continue  # a setting of another command, or a warning
        section, name, value = matched.groups()
        rank = ("global", "install", ":env:").index(section)  # the last of them decides
        text = " ".join(str(ast.literal_eval(value)).split())
        if text and rank >= found.get(name, (-1, ""))[0]:
            found[name] = (rank, text)
    if not found.keys() <= _UV_NAMES.keys() | _PIP_ONLY:
        return None
    # As pip: the best version that any of the indexes has, which the hash pins down.
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_CONFIG": "1"}
    for name, (_, text) in found.items():
        if name == "find-links":
            text = text.replace(" ", ",")
        if name in ("no-index", "no-cache-dir"):
            if text.lower() in ("0", "false", "no", "off"):
                continue
            text = "1"
        if name in _UV_NAMES:
            settings[_UV_NAMES[name]] = text
    return settings


def _need_tools() -> None:
    """Refuse a machine that lacks what the build needs, before anything is downloaded."""
    _need_compiler()
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        raise SetupError(
            f"the Python headers are missing ({include}/Python.h): install them (Debian, Ubuntu:"
            " apt install python3-dev)"
        )


def _need_compiler() -> None:
    missing = []
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        missing.append(("no C++ compiler", "g++"))
    if not any(shutil.which(name) for name in ("make", "gmake")):
        missing.append(("no make", "make"))
    if missing:
        what = " and ".join(what for what, _ in missing)
        packages = " ".join(package for _, package in missing)
        raise SetupError(f"{what} was found: install it (Debian, Ubuntu: apt install {packages})")


def _need_ros() -> None:
    """Refuse a ROS 2 that this Python cannot load, before minutes are spent on it."""
    distro = os.environ.get("ROS_DISTRO", "")
    look = "import rclpy, importlib.util as u; print(*(n for n in {} if not u.find_spec(n)))"
    asked = subprocess.run(
        [sys.executable, "-c", look.format(_STANDARD)], capture_output=True, text=True, check=False
    )
    if asked.returncode == 0:
        missing = [f"ros-{distro}-{name.replace('_', '-')}" for name in asked.stdout.split()]
        if missing:
            raise SetupError(f"messages of ROS are missing: apt install {' '.join(missing)}")
        return
    if not os.environ.get("AMENT_PREFIX_PATH"):
        found = f"ROS_DISTRO is {distro}, but no ROS 2 is sourced (AMENT_PREFIX_PATH is empty)"
    else:
        found = f"the ROS 2 that is sourced ({distro}) does not work with {sys.executable}"
    raise SetupError(
        f"{found}: {_last(asked.stderr)}. Source a ROS 2 Jazzy, name its Python in"
        " KINSTACK_PYTHON, or use the wheels instead with KINSTACK_WHEELS=1"
    )


def without_ros(lock_text: str) -> str:
    """Return a lock file's text without the packages that a sourced ROS 2 has of its own."""
    kept: list[str] = []
    keep = True
    for line in lock_text.splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            keep = not _FROM_ROS.match(line)
        if keep:
            kept.append(line)
    return "\n".join(kept) + "\n"


def package_name(folder: Path) -> str:
    """Return the ROS package name in a folder's package.xml."""
    match = re.search(r"<name>\s*([a-z][a-z0-9_]*)\s*</name>", (folder / "package.xml").read_text())
    if match is None:
        raise SetupError(f"{folder}/package.xml has no valid <name>")
    return match[1]


def build_inputs(folder: Path) -> list[Path]:
    """Return the files that a package's build depends on.

    Python modules are linked into the install tree, so an edit of one needs no build; setup.py,
    data files, interfaces and launch files do.
    """
    python = (folder / "setup.py").exists()
    files = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _NO_SOURCE for part in parts):
            continue
        if any(part.endswith(".egg-info") for part in parts) or not path.is_file():
            continue
        if python and path.suffix in (".py", ".pyc", ".md") and path.name != "setup.py":
            continue
        files.append(path)
    return files


def source_digest(folder: Path) -> str:
    """Return a digest of what a package's build depends on."""
    return _digest(build_inputs(folder), base=folder)


def _digest(files: list[Path], *, base: Path | None = None, extra: str = "") -> str:
    sha = hashlib.sha256(extra.encode())
    for path in files:
        sha.update(str(path.relative_to(base) if base else path.name).encode() + b"\0")
        sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()


def _venv_of_scripts(venv: Path) -> str:
    """The folder of the environment that its pip's first lines name; empty: none."""
    found = re.search(r"(/\S.*?)/bin/python", "\n".join(_read(venv / "bin/pip").split("\n")[:3]))
    return found[1] if found else ""


def _rename_inside(path: Path, old: str, new: str) -> None:
    """Write ``new`` for every ``old`` in a text file; programs and links are left alone."""
    if path.is_symlink() or not path.is_file():
        return
    data = path.read_bytes()
    if b"\0" in data[:4096] or old.encode() not in data:
        return
    draft = path.with_name(path.name + ".new")
    draft.write_bytes(data.replace(old.encode(), new.encode()))
    draft.chmod(path.stat().st_mode)
    draft.replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new text, never half of it."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.replace(path)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing"


def explain_pip(said: str, log: Path) -> str:
    """What to do about an installation that failed.

    Args:
        said: What pip wrote.
        log: The file that keeps it.
    """
    if "No space left on device" in said:
        return _DISK_FULL
    if any(word in said for word in ("CERTIFICATE_VERIFY_FAILED", "SSLError")):
        return (
            "the package index was reached, but its certificate was not accepted: check this"
            " machine's clock and certificates (apt install ca-certificates; behind a proxy name"
            " its certificate in PIP_CERT) and run this again; it goes on where it stopped"
        )
    # Without a network pip finds no version at all of the first package.
    offline = ("NameResolutionError", "Failed to establish a new connection", "ConnectTimeoutError")
    if any(word in said for word in (*offline, "Max retries exceeded", "(from versions: none)")):
        return (
            "the package index cannot be reached: check the network (or pip's proxy and index"
            " settings) and run this again; it goes on where it stopped"
        )
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in said:
        return f"a package differs from the one that was locked; see {log}"
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")]
    missing = [line for line in errors if "No matching distribution" in line]
    if missing:
        return (
            f"{missing[0].removeprefix('ERROR: ')}: the package index does not have it for this"
            " machine; kinstack needs Linux x86_64 with Python 3.11 to 3.13"
        )
    return f"pip failed: {errors[0] if errors else _last(said)} (all of it: {log})"


def _explain_colcon(said: str, latest: Path) -> str:
    failed = re.findall(r"^Failed\s+<<<\s+(\S+)", said, flags=re.MULTILINE)
    words = _read(latest / failed[0] / "stderr.log") if failed else said
    if "No space left on device" in words:
        return _DISK_FULL
    tail = "\n".join(words.splitlines()[-25:])
    return f"the build of {failed[0] if failed else 'the workspace'} failed:\n{tail}"


def _say(text: str) -> None:
    print(f"kinstack: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Prepare the workspace; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--dev", action="store_true")
    chosen = parser.parse_args(arguments)
    if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        have = ".".join(map(str, sys.version_info[:2]))
        _say(f"Python 3.11 to 3.13 is needed, this is {have}")
        return 1
    try:
        Workspace(
            chosen.root.absolute(), native=chosen.native, dev=chosen.dev, keep=chosen.keep
        ).prepare()
    except SetupError as error:
        _say(str(error))
        return 1
    except OSError as error:
        full = error.errno == errno.ENOSPC
        _say(_DISK_FULL if full else f"{error.filename or ''} {error.strerror}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted; the next run goes on where this one stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
