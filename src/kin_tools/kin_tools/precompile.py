"""Compile the nodes' kernels before the stack or the tests start, so that they start in seconds.

Each node compiles by itself when it must. But seven nodes that compile at once, some of which run
already and need the processors, take far longer than two at a time with the machine to themselves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ament_index_python.packages import get_package_prefix

from kin_tools.guard import die_with_parent

__all__ = ["compile_kernels", "kernel_programs", "main"]

#: Programs that compile at the same time; a compiler uses one processor.
_AT_ONCE = 2

#: Packages whose kernels take longest, longest first: begun last, one of them would be waited for.
_LONGEST = ("continuum_ik", "ft_controller", "kin_solvers", "hier_ik", "gpu_kinematics")


def kernel_programs() -> list[str]:
    """The programs of all nodes that have kernels; each knows ``--compile``."""
    return [
        str(program)
        for package in _LONGEST
        for program in sorted(Path(get_package_prefix(package), "lib", package).glob("*_node"))
    ]


def compile_kernels(programs: Iterable[str], say: Callable[[str], None]) -> None:
    """Have every node compile that has not since its package changed.

    A node that cannot is left to say so when it is started.

    Args:
        programs: Programs of nodes; each knows ``--compile``.
        say: Prints a line.
    """
    cache = os.environ.get("NUMBA_CACHE_DIR", "")
    if not cache:
        return
    ordered = sorted(set(programs), key=_rank)
    waiting = [program for program in ordered if not _compiled(Path(cache), program)]
    if not waiting:
        return
    say("compiling the kernels (minutes; once after each change of a package)")
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    parent = os.getpid()
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    with _ended(running):
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                program = waiting.pop(0)
                process = subprocess.Popen(
                    [program, "--compile"],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C comes to us alone, and we end it
                    preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 (no threads)
                )
                running[program] = (process, time.monotonic())
            time.sleep(0.05)
            for program, (process, since) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[program]
                if process.returncode == 0:
                    Path(cache).mkdir(parents=True, exist_ok=True)  # it may have no kernels
                    _stamp(Path(cache), program).write_text(_digest(Path(cache), program))
                took = time.monotonic() - since
                if took > 5.0:
                    say(f"  {Path(program).name} [{took:.0f} s]")


def _rank(program: str) -> tuple[int, bool, str]:
    """Where a program stands in the order: a package's node before its simulators."""
    path = Path(program)
    package = path.parent.name
    place = _LONGEST.index(package) if package in _LONGEST else len(_LONGEST)
    return place, path.name != f"{package}_node", path.name


@contextmanager
def _ended(running: dict[str, tuple[subprocess.Popen[bytes], float]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process, _ in running.values():
            process.send_signal(signal.SIGKILL)  # a compiler holds nothing that must be put away
            process.wait()


def _stamp(cache: Path, program: str) -> Path:
    # The wheels and a ROS installation may have different Pythons, each with kernels of its own.
    return cache / f"{Path(program).name}.{sys.implementation.cache_tag}.compiled"


def _digest(cache: Path, program: str) -> str:
    """What set-up knows of the sources that the program's kernels come from; empty: nothing."""
    try:
        return (cache.parent / "numba-stamps" / Path(program).parent.name).read_text()
    except OSError:
        return ""


def _compiled(cache: Path, program: str) -> bool:
    """Whether the program has compiled; a program that set-up does not know is not asked to."""
    digest = _digest(cache, program)
    try:
        return not digest or _stamp(cache, program).read_text() == digest
    except OSError:
        return False


def main() -> int:
    """Compile what the full stack needs, as ``./kinstack test`` does before the tests."""
    try:
        compile_kernels(kernel_programs(), lambda line: print(f"kinstack: {line}", flush=True))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
