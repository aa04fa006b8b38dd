"""Makes a fresh clone able to run: virtual environment, repaired wheels, colcon build.

Runs before anything is installed, so it uses the standard library alone. Every step leaves a stamp
(a digest of what it was made from) when it is finished, and only then: a step that was cut short is
done again, a step whose inputs are unchanged is skipped without touching the network.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Space that a first set-up needs [bytes]: environment, pip's cache, build.
SPACE_NEEDED = 3 * 1024**3
SUPPORTED = ((3, 11), (3, 13))
#: How many pips install at the same time.
_PIPS = 4

#: Parts of the lock file that a sourced ROS 2 brings itself.
_FROM_ROS = re.compile(r"^(ros-|colcon-|empy==|lark-parser==|catkin-pkg==|cmake==)")
#: Where the wheels' builder kept its Python; CMake files in the wheels still name it.
_BUILDER_INCLUDE = re.compile(r"/opt/python/cp\d+-cp\d+/include/python3\.\d+")
_BUILDER_NUMPY = re.compile(
    r"/opt/python/cp\d+-cp\d+/lib/python3\.\d+/site-packages/numpy/(?:_core|core)/include"
)


class SetupError(Exception):
    """Something a person must put right; the message says what to do."""


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
            self._after_a_move()
            self._environment()
            self._packages()
            self._compiled_kernels()

    def _drop_abandoned(self) -> None:
        """Remove what is kept for clones, in folders with odd names, that are there no more."""
        if self.root.name != "clone" or not self.root.is_symlink():
            return
        for link in [folder / "clone" for folder in self.root.parent.parent.iterdir()]:
            if link.is_symlink() and not link.exists():
                _say(f"the clone in {os.readlink(link)} is gone: removing what was built from it")
                shutil.rmtree(link.parent, ignore_errors=True)

    # A clone that was moved --------------------------------------------------------------------

    def _after_a_move(self) -> None:
        """Mend what names the folder that the clone was in before it was moved or renamed."""
        self._move_environment()
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

    def _environment(self) -> None:
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
        self._need_tools()
        self._make_venv()
        self._install([lock for lock, _, _ in stale])
        if not self.native:
            self._repair_wheels()
        for _, stamp, digest in stale:
            stamp.write_text(digest)

    def _python_works(self) -> bool:
        """Whether the environment has a Python that starts, of the version of this one."""
        target = self.venv / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return target.exists() and os.access(self.python, os.X_OK)

    def _need_tools(self) -> None:
        """Refuse a machine that lacks what the build needs, before anything is downloaded."""
        self._need_compiler()
        include = sysconfig.get_path("include")
        if not Path(include, "Python.h").exists():
            raise SetupError(
                f"the Python headers are missing ({include}/Python.h): install them (Debian,"
                " Ubuntu: apt install python3-dev)"
            )

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
        _say("making the virtual environment")
        if self.venv.is_symlink():
            self.venv.unlink()
        shutil.rmtree(self.venv, ignore_errors=True)
        options = ["--system-site-packages"] if self.native else []
        made = subprocess.run(
            [sys.executable, "-m", "venv", *options, str(self.venv)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            shutil.rmtree(self.venv, ignore_errors=True)
            if "No space left" in made.stderr + made.stdout:
                raise SetupError("the disk is full: free some space and run this again")
            raise SetupError(
                "this Python cannot make virtual environments: install its venv module (Debian,"
                f" Ubuntu: apt install python3-venv). It said: {_last(made.stdout + made.stderr)}"
            )
        _replace(self.venv / ".clone", str(self.venv))

    def _install(self, locks: list[Path]) -> None:
        """Install what the locks name, by several pips: each mostly waits for the index."""
        entries: dict[str, str] = {}
        for lock in locks:
            text = lock.read_text()
            entries.update(lock_entries(without_ros(text) if self.native else text))
        names = " and ".join(lock.name for lock in locks)
        _say(f"installing {len(entries)} packages from {names} (a minute or more the first time)")
        # The lock is complete, so nothing is resolved anew: older pips would look up a dependency
        # with extras afresh, find a newer release than the lock's and refuse it.
        command = [str(self.python), "-m", "pip", "install", "--progress-bar", "off"]
        # Of two thousand megabytes a tenth is ever imported: Python compiles that by itself.
        command += ["--disable-pip-version-check", "--no-deps", "--no-compile"]
        command += ["--require-hashes", "-r"]
        environment = {**os.environ, "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1"}
        environment.pop("PYTHONPATH", None)
        pips: list[subprocess.Popen[str]] = []
        logs: list[list[str]] = []
        with _killing(pips):
            for number, share in enumerate(shares(entries, _PIPS)):
                chosen = self.cache / f"chosen-{number}.lock"
                chosen.write_text("".join(entries[name] for name in share))
                pips.append(
                    subprocess.Popen(
                        [*command, str(chosen)],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        env=environment,
                        cwd=self.root,
                    )
                )
                logs.append([])
            self._follow(pips, logs, len(entries))
        log = self.cache / "pip.log"
        log.write_text("".join(line for lines in logs for line in lines))
        for pip, lines in zip(pips, logs, strict=True):
            if pip.returncode != 0:
                raise SetupError(_explain_pip("".join(lines), log))

    def _follow(self, pips: list[subprocess.Popen[str]], logs: list[list[str]], total: int) -> None:
        """Keep what several pips say, show how far they are, and wait for them."""
        seen: list[str] = []  # some packages of the locks are not for this Python
        shown = threading.Lock()

        def read(pip: subprocess.Popen[str], lines: list[str]) -> None:
            for line in pip.stdout or ():
                lines.append(line)
                if line.startswith(("Collecting ", "Requirement already satisfied")):
                    words = line.removeprefix("Requirement already satisfied: ").split()
                    with shown:
                        seen.append(words[words[0] == "Collecting"].split("==")[0])
                        _progress(0.9 * len(seen) / max(total, 1), seen[-1])
            pip.wait()

        readers = [
            threading.Thread(target=read, args=pair, daemon=True)
            for pair in zip(pips, logs, strict=True)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        if all(pip.returncode == 0 for pip in pips):
            _progress(1.0, "installed")
        _progress_end()

    def _repair_wheels(self) -> None:
        """Point the wheels' CMake files at this machine's Python and numpy headers."""
        asked = subprocess.run(
            [
                str(self.python),
                "-c",
                "import sysconfig, numpy; print(sysconfig.get_path('include'));"
                " print(numpy.get_include())",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode != 0:
            raise SetupError(f"numpy does not start: {_last(asked.stderr)}")
        include, numpy_include = asked.stdout.split("\n")[:2]
        for path in sorted((self.venv / "share").rglob("*.cmake")):
            text = path.read_text()
            if "/opt/python/" in text:
                text = _BUILDER_NUMPY.sub(numpy_include, text)
                _replace(path, _BUILDER_INCLUDE.sub(include, text))

    # The packages ------------------------------------------------------------------------------

    def _packages(self) -> None:
        stamps = self.install / ".kinstack"
        changed = []
        for folder in self._package_folders():
            name = package_name(folder)
            digest = source_digest(folder) + self._environment_key()
            installed = (self.install / name / "share" / name / "package.xml").exists()
            if _read(stamps / name) != digest or not installed:
                changed.append((name, digest))
        if not changed:
            return
        names = [name for name, _ in changed]
        if {"kin_interfaces", *(folder.name for folder in self._interop())} & set(names):
            self._need_compiler()
        stamps.mkdir(parents=True, exist_ok=True)
        for name in names:
            (stamps / name).unlink(missing_ok=True)
        _say(f"building {', '.join(names)}")
        self._colcon(names)
        for name, digest in changed:
            _replace(stamps / name, digest)

    def _package_folders(self) -> list[Path]:
        found = sorted(path.parent for path in (self.root / "src").glob("*/package.xml"))
        if (self.root / "launch" / "package.xml").exists():
            found.append(self.root / "launch")
        return [*self._interop(), *found]

    def _interop(self) -> list[Path]:
        """Standard interfaces that no wheel has; a ROS installation has the real ones."""
        manifests = sorted((self.root / "src" / "interop").glob("*/package.xml"))
        return [] if self.native else [path.parent for path in manifests]

    def _environment_key(self) -> str:
        return f"{sys.version_info[:2]}{os.environ.get('ROS_DISTRO', '') if self.native else ''}"

    def _need_compiler(self) -> None:
        missing = []
        if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
            missing.append(("no C++ compiler", "g++"))
        if not any(shutil.which(name) for name in ("make", "gmake")):
            missing.append(("no make", "make"))
        if missing:
            what = " and ".join(what for what, _ in missing)
            packages = " ".join(package for _, package in missing)
            raise SetupError(
                f"{what} was found: install it (Debian, Ubuntu: apt install {packages})"
            )

    def _colcon(self, names: list[str]) -> None:
        environment = dict(os.environ)
        # Said outright, because colcon would have the build wait whenever the machine is busy.
        environment.setdefault("MAKEFLAGS", f"-j{os.cpu_count() or 1}")
        if not self.native:
            venv = str(self.venv)
            for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
                environment[variable] = venv
            environment["PATH"] = f"{venv}/bin:{environment.get('PATH', '')}"
            environment["VIRTUAL_ENV"] = venv
            environment.pop("PYTHONPATH", None)
            colcon = [str(self.python), "-m", "colcon"]
        else:
            if shutil.which("colcon") is None:
                raise SetupError(
                    "colcon was not found: apt install python3-colcon-common-extensions"
                )
            colcon = ["colcon"]
        command = [*colcon, "--log-base", str(self.cache / "colcon-log"), "build"]
        # The folder of the standard interfaces tells colcon and rosdep to pass it by.
        folders = [self.root / "src", self.root / "launch", *self._interop()]
        command += ["--base-paths", *map(str, folders)]
        command += ["--build-base", str(self.build), "--install-base", str(self.install)]
        command += ["--symlink-install", "--packages-select", *names]
        command += [
            "--event-handlers",
            "console_direct-",
            "console_cohesion-",
            "desktop_notification-",
        ]
        command += ["--cmake-args", "-DBUILD_TESTING=OFF", f"-DPython3_EXECUTABLE={self.python}"]
        if not self.native:
            command += ["-DKIN_INTERFACES_FOR_WHEELS=ON"]
        log = self.cache / "colcon.log"
        with (
            open(log, "w") as out,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
                cwd=self.root,
            ) as colcon_process,
            _killing([colcon_process]),
        ):
            assert colcon_process.stdout is not None  # noqa: S101
            done = 0
            for line in colcon_process.stdout:
                out.write(line)
                if line.startswith("Finished <<<"):
                    done += 1
                    _progress(done / len(names), line[len("Finished <<<") :].strip())
        _progress_end()
        if colcon_process.returncode != 0:
            raise SetupError(_explain_colcon(log, self.cache / "colcon-log" / "latest"))

    def _compiled_kernels(self) -> None:
        """Drop compiled kernels whose sources have changed."""
        folders = {}
        for folder in self._package_folders():
            name = package_name(folder)
            if (folder / name).is_dir():
                folders[name] = folder / name
        script = Path(__file__).with_name("kernel_sources.py")
        if folders:
            runpy.run_path(str(script))["drop_stale_kernels"](self.cache, folders)

    # Locking -----------------------------------------------------------------------------------

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


def _need_ros() -> None:
    """Refuse a ROS 2 that this Python cannot load, before minutes are spent on it."""
    distro = os.environ.get("ROS_DISTRO", "")
    asked = subprocess.run(
        [sys.executable, "-c", "import rclpy"], capture_output=True, text=True, check=False
    )
    if asked.returncode == 0:
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


def lock_entries(lock_text: str) -> dict[str, str]:
    """Return the lines of each package in a lock file, by its name."""
    entries: dict[str, str] = {}
    name = ""
    for line in lock_text.splitlines(keepends=True):
        if "==" in line and not line[0].isspace() and not line.startswith("#"):
            name = re.split(r"[=\[]", line)[0].strip()
        if name and line.strip() and not line.lstrip().startswith("#"):
            entries[name] = entries.get(name, "") + line
    return entries


def shares(names: Iterable[str], count: int) -> list[list[str]]:
    """Divide packages among so many pips at most, as evenly as may be.

    Packages whose names begin with the same word stay together: they may hold the same files.
    """
    families: dict[str, list[str]] = {}
    for name in sorted(names):
        families.setdefault(name.split("-")[0], []).append(name)
    divided: list[list[str]] = [[] for _ in range(count)]
    for family in sorted(families.values(), key=len, reverse=True):
        min(divided, key=len).extend(family)
    return [share for share in divided if share]


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
        inner = path.relative_to(folder)
        if any(part.startswith(".") or part in _NO_SOURCE for part in inner.parts):
            continue
        if any(part.endswith(".egg-info") for part in inner.parts) or not path.is_file():
            continue
        if python and path.suffix in (".py", ".pyc", ".md") and path.name != "setup.py":
            continue
        files.append(path)
    return files


def source_digest(folder: Path) -> str:
    """Return a digest of what a package's build depends on."""
    return _digest(build_inputs(folder), base=folder)


_NO_SOURCE = {"test", "__pycache__", "build", "install", "log"}


def _digest(files: list[Path], *, base: Path | None = None, extra: str = "") -> str:
    sha = hashlib.sha256(extra.encode())
    for path in files:
        sha.update(str(path.relative_to(base) if base else path.name).encode() + b"\0")
        sha.update(path.read_bytes() + b"\0")
    return sha.hexdigest()


def _venv_of_scripts(venv: Path) -> str:
    """The folder of the environment that its pip's first lines name; empty: none."""
    for line in _read(venv / "bin" / "pip").splitlines()[:3]:
        found = re.search(r"(/\S.*?)/bin/python", line)
        if found:
            return found[1]
    return ""


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


def _explain_pip(log: str, path: Path) -> str:
    if "No space left on device" in log:
        return "the disk is full: free some space and run this again; it goes on where it stopped"
    if any(word in log for word in ("CERTIFICATE_VERIFY_FAILED", "SSLError")):
        return (
            "the package index was reached, but its certificate was not accepted: check this"
            " machine's clock and certificates (apt install ca-certificates; behind a proxy name"
            " its certificate in PIP_CERT) and run this again; it goes on where it stopped"
        )
    offline = (
        "NameResolutionError",
        "Failed to establish a new connection",
        "Max retries exceeded",
    )
    # Without a network pip finds no version at all of the first package.
    if any(word in log for word in (*offline, "ConnectTimeoutError", "(from versions: none)")):
        return (
            "the package index cannot be reached: check the network (or pip's proxy and index"
            " settings) and run this again; it goes on where it stopped"
        )
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in log:
        return f"a package differs from the one that was locked; see {path}"
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    missing = [line for line in errors if "No matching distribution" in line]
    if missing:
        return (
            f"{missing[0].removeprefix('ERROR: ')}: the package index does not have it for this"
            " machine; kinstack needs Linux x86_64 with Python 3.11 to 3.13"
        )
    return f"pip failed: {errors[0] if errors else _last(log)} (all of it: {path})"


def _explain_colcon(log: Path, latest: Path) -> str:
    text = _read(log)
    failed = re.findall(r"^Failed\s+<<<\s+(\S+)", text, flags=re.MULTILINE)
    words = _read(latest / failed[0] / "stderr.log") if failed else text
    if "No space left on device" in words:
        return "the disk is full: free some space and run this again"
    tail = "\n".join(words.splitlines()[-25:])
    return f"the build of {failed[0] if failed else 'the workspace'} failed:\n{tail}"


def _say(text: str) -> None:
    print(f"kinstack: {text}", file=sys.stderr, flush=True)


_progress_shown = 0.0
_progress_step = -1


def _progress(fraction: float, what: str) -> None:
    """Show how far a step is: one moving line on a terminal, a line each 20 % elsewhere."""
    global _progress_shown, _progress_step  # noqa: PLW0603
    fraction = min(fraction, 1.0)
    if sys.stderr.isatty():
        now = time.monotonic()
        if now - _progress_shown > 0.1 or fraction == 1.0:
            _progress_shown = now
            bar = "#" * round(24 * fraction)
            print(f"\r  [{bar:<24}] {fraction:4.0%} {what[:40]:<40}", end="", file=sys.stderr)
            sys.stderr.flush()
    elif int(fraction * 5) > _progress_step:
        _progress_step = int(fraction * 5)
        print(f"  {fraction:4.0%} {what}", file=sys.stderr, flush=True)


def _progress_end() -> None:
    global _progress_step  # noqa: PLW0603
    _progress_step = -1
    if sys.stderr.isatty():
        print(file=sys.stderr)


@contextlib.contextmanager
def _killing(processes: list[subprocess.Popen[str]]) -> Iterator[None]:
    """End the children, also ones that are added, if this process is interrupted."""
    try:
        yield
    except BaseException:
        for process in processes:
            process.kill()
        raise


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
        _progress_end()
        _say(str(error))
        return 1
    except OSError as error:
        if error.errno == 28:
            _say("the disk is full: free some space and run this again")
        else:
            _say(f"{error.filename or ''} {error.strerror}")
        return 1
    except KeyboardInterrupt:
        _progress_end()
        _say("interrupted; the next run goes on where this one stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
