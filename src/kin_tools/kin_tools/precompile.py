"""Compile the nodes' kernels before the stack or the tests start, so that they start in seconds.

Each node compiles by itself when it must. But seven nodes that compile at once, some of which run
already and need the processors, take far longer than one for each processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from ament_index_python.packages import get_package_prefix

from kin_tools.guard import die_with_parent
from kin_tools.setup_workspace import Step

__all__ = ["compile_kernels", "kernel_programs", "main"]

#: Packages whose kernels take longest, longest first: begun last, one of them would be waited for.
_LONGEST = ("kin_solvers", "continuum_ik", "ft_controller", "hier_ik", "gpu_kinematics")


def kernel_programs() -> list[str]:
    """The programs of all nodes that have kernels; each knows ``--compile``."""
    return [
        str(program)
        for package in _LONGEST
        for program in sorted(Path(get_package_prefix(package), "lib", package).glob("*_node"))
    ]


def compile_kernels(programs: Iterable[str]) -> None:
    """Have every node compile that has not since its package changed.

    A node that cannot is left to say so when it is started.

    Args:
        programs: Programs of nodes; each knows ``--compile``.
    """
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    waiting = [program for program in sorted(set(programs), key=_rank) if _stale(cache, program)]
    if not waiting or cache == Path():
        return
    cache.mkdir(parents=True, exist_ok=True)
    plural = "s" if len(waiting) > 1 else ""
    with Step(f"compiling the kernels of {len(waiting)} node{plural} (once)") as step:
        _compile(cache, waiting, step)


def _compile(cache: Path, waiting: list[str], step: Step) -> None:
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    parent = os.getpid()
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                program = waiting.pop(0)
                running[program] = subprocess.Popen(
                    [program, "--compile"],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C comes to us alone, and we end it
                    preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 (no threads)
                )
                step.show(", ".join(Path(name).name for name in running))
            time.sleep(0.05)
            for program, process in list(running.items()):
                if process.poll() is not None:
                    del running[program]
                    if process.returncode == 0:
                        _stamp(cache, program).write_text(_digest(cache, program))
    finally:
        for process in running.values():
            process.kill()  # a compiler holds nothing that must be put away
            process.wait()


def _rank(program: str) -> tuple[int, bool, str]:
    """Where a program stands in the order: a package's node before its simulators."""
    path = Path(program)
    package = path.parent.name
    place = _LONGEST.index(package) if package in _LONGEST else len(_LONGEST)
    return place, path.name != f"{package}_node", path.name


def _stamp(cache: Path, program: str) -> Path:
    # The wheels and a ROS installation may have different Pythons, each with kernels of its own.
    return cache / f"{Path(program).name}.{sys.implementation.cache_tag}.compiled"


def _digest(cache: Path, program: str) -> str:
    """What set-up knows of the sources that the program's kernels come from; empty: nothing."""
    try:
        return (cache.parent / "numba-stamps" / Path(program).parent.name).read_text()
    except OSError:
        return ""


def _stale(cache: Path, program: str) -> bool:
    """Whether the program is to compile; one that set-up does not know is not asked to."""
    digest = _digest(cache, program)
    try:
        return bool(digest) and _stamp(cache, program).read_text() != digest
    except OSError:
        return True


def main() -> int:
    """Compile what the full stack needs, as ``./kinstack test`` does before the tests."""
    try:
        compile_kernels(kernel_programs())
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
