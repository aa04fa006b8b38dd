"""Removes what dead processes have left of Fast DDS in the machine's shared memory.

A process that is killed leaves its segment and its ports in /dev/shm, half a megabyte each time,
for ever. Each of them has a lock file, on which its owner holds an flock(2) for as long as it
lives; so does Fast DDS tell the living from the dead. Nothing is removed that

- belongs to another user, or is not a file of Fast DDS,
- is locked, or is mapped or open in any process that can be seen,
- is a port that somebody is opening at this moment: opening takes the port's semaphore, and so
  does removing,
- was touched in the last two seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

__all__ = ["remove_leftovers"]

_FOLDER = Path("/dev/shm")  # noqa: S108 (looked at, never written to)
#: Files that were touched so short ago may belong to a process that is just starting [s].
_AGE = 2.0

_SEGMENT = re.compile(r"fastrtps_(port\d+|[0-9a-f]{16})(_el|_sl)?\Z")
_SEMAPHORE = re.compile(r"sem\.(fastrtps_port\d+)_mutex\Z")

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.sem_open.restype = ctypes.c_void_p
_LIBC.sem_open.argtypes = [ctypes.c_char_p, ctypes.c_int]
for _name in ("sem_trywait", "sem_post", "sem_close"):
    getattr(_LIBC, _name).argtypes = [ctypes.c_void_p]


def remove_leftovers(
    folder: Path = _FOLDER, age: float = _AGE, *, used: Collection[str] | None = None
) -> list[str]:
    """Remove the files of Fast DDS of this user's dead processes.

    Args:
        folder: Where the system keeps shared memory.
        age: Files that were touched since so long are left alone [s].
        used: Names that a process has mapped or open; None: what can be seen of that here.

    Returns:
        The names of the removed files.
    """
    groups = _groups(folder, time.time() - age)
    if not groups:
        return []
    held = set(_used(folder) if used is None else used)
    removed: list[str] = []
    for base, names in sorted(groups.items()):
        if held.isdisjoint(names):
            removed += _remove(folder, base, names)
    return removed


def _groups(folder: Path, before: float) -> dict[str, set[str]]:
    """Names by segment or port, of those whose files are all ours and all old enough [s]."""
    groups: dict[str, set[str]] = {}
    spared = set()
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return {}
    for entry in entries:
        found = _SEGMENT.match(entry.name) or _SEMAPHORE.match(entry.name)
        if found is None:
            continue
        is_semaphore = entry.name.startswith("sem.")
        base = found.group(1) if is_semaphore else f"fastrtps_{found.group(1)}"
        groups.setdefault(base, set()).add(entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            spared.add(base)
            continue
        ours = status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode)
        if not ours or status.st_mtime > before:
            spared.add(base)
    return {base: names for base, names in groups.items() if base not in spared}


def _used(folder: Path) -> set[str]:
    """Names of files below ``folder`` that a process has mapped or open, as far as can be seen."""
    prefix = f"{folder}/"
    used: set[str] = set()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text(errors="replace").splitlines():
                _, _, path = line.partition(prefix)
                if path:
                    used.add(path)
        with contextlib.suppress(OSError):
            for descriptor in os.scandir(process / "fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(descriptor.path)
                    if target.startswith(prefix):
                        used.add(target.removeprefix(prefix))
    return used


def _remove(folder: Path, base: str, names: set[str]) -> list[str]:
    """Remove one segment or port with its lock files, unless its owner lives."""
    semaphore = f"sem.{base}_mutex"
    with contextlib.ExitStack() as held:
        if semaphore in names and not held.enter_context(_semaphore(f"/{base}_mutex", folder)):
            return []
        for lock in (f"{base}_el", f"{base}_sl"):
            if lock in names and not held.enter_context(_locked(folder / lock)):
                return []
        removed = []
        # The lock files last: while they are there, nobody takes the rest for his own.
        for name in sorted(names, key=lambda name: name.endswith(("_el", "_sl"))):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
                removed.append(name)
        return removed


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file that nobody else holds; False if somebody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _semaphore(name: str, folder: Path) -> Iterator[bool]:
    """Hold a named semaphore that nobody else holds; False if somebody does.

    One whose holder was killed stays held. Its port is left to Fast DDS, which mends it.
    """
    if folder != _FOLDER:  # semaphores live there alone
        yield True
        return
    handle = _LIBC.sem_open(name.encode(), 0)
    if not handle:
        yield False
        return
    try:
        if _LIBC.sem_trywait(handle) != 0:
            yield False
            return
        try:
            yield True
        finally:
            _LIBC.sem_post(handle)
    finally:
        _LIBC.sem_close(handle)
