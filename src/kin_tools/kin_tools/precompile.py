"""Compile the nodes' kernels before the stack or the tests start, so that they start in seconds.

The stack waits for the kernels that every run and the first requests need; those of rarer requests
are compiled beside it, with what it leaves of the processors.

Each node compiles by itself when it must. But seven nodes that compile at once, some of which run
already and need the processors, take far longer than one for each processor.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ament_index_python.packages import get_package_prefix

from kin_core.kernels import LATER
from kin_tools.guard import die_with_parent
from kin_tools.setup_workspace import Step

__all__ = ["compile_kernels", "compiled_beside", "kernel_programs", "main"]

#: Packages whose kernels take longest, longest first: begun last, one of them would be waited for.
_LONGEST = ("kin_solvers", "continuum_ik", "ft_controller", "hier_ik", "gpu_kinematics")


def kernel_programs() -> list[str]:
    """The programs of all nodes that have kernels; each knows ``--compile``."""
    return [
        str(program)
        for package in _LONGEST
        for program in sorted(Path(get_package_prefix(package), "lib", package).glob("*_node"))
    ]


def compile_kernels(programs: Iterable[str], *, first: bool = False) -> None:
    """Have every node compile that has not since its package changed.

    A node that cannot is left to say so when it is started.

    Args:
        programs: Programs of nodes; each knows ``--compile``.
        first: Only what every run and the first requests need.
    """
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    waiting = _waiting(cache, programs, first)
    if not waiting or cache == Path():
        return
    cache.mkdir(parents=True, exist_ok=True)
    plural = "s" if len(waiting) > 1 else ""
    with Step(f"compiling the kernels of {len(waiting)} node{plural} (once)") as step:
        _compile(cache, waiting, step, first)


@contextlib.contextmanager
def compiled_beside(programs: Iterable[str]) -> Iterator[None]:
    """Compile what is still missing for as long as the block runs, at the lowest priority.

    Programs that are started in the block leave the kernels of rarer requests to it.

    Args:
        programs: Programs of nodes; each knows ``--compile``.
    """
    cache = Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    waiting = _waiting(cache, programs, first=False)
    if not waiting or cache == Path():
        yield
        return
    parent = os.getpid()

    def before() -> None:
        die_with_parent(parent)
        os.nice(19)

    words = [sys.executable, "-m", "kin_tools.precompile", "--beside", *waiting]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509 (no threads)
    ) as compiler:
        os.environ[LATER] = "1"
        try:
            yield
        finally:
            del os.environ[LATER]
            compiler.kill()  # what it has started ends with it


def _compile(cache: Path, waiting: list[str], step: Step, first: bool, most: int = 0) -> None:
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    environment.pop(LATER, None)
    if first:
        environment[LATER] = "1"
    parent = os.getpid()
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < (most or os.cpu_count() or 1):
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
                        _stamp(cache, program, first).write_text(_digest(cache, program))
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


def _waiting(cache: Path, programs: Iterable[str], first: bool) -> list[str]:
    """The programs that are to compile, those that take longest first."""
    return [each for each in sorted(set(programs), key=_rank) if _stale(cache, each, first)]


def _stamp(cache: Path, program: str, first: bool) -> Path:
    # The wheels and a ROS installation may have different Pythons, each with kernels of its own.
    done = "begun" if first else "compiled"
    return cache / f"{Path(program).name}.{sys.implementation.cache_tag}.{done}"


def _digest(cache: Path, program: str) -> str:
    """What set-up knows of the sources that the program's kernels come from; empty: nothing."""
    try:
        return (cache.parent / "numba-stamps" / Path(program).parent.name).read_text()
    except OSError:
        return ""


def _stale(cache: Path, program: str, first: bool) -> bool:
    """Whether the program is to compile; one that set-up does not know is not asked to."""
    digest = _digest(cache, program)
    if not digest:
        return False
    stamps = [_stamp(cache, program, False), *([_stamp(cache, program, True)] if first else [])]
    return all(not stamp.is_file() or stamp.read_text() != digest for stamp in stamps)


def main(arguments: list[str] | None = None) -> int:
    """Compile what the full stack needs, as ``./kinstack test`` does before the tests.

    Args:
        arguments: None, or ``--beside`` and programs, for :func:`compiled_beside`.
    """
    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["--beside"]:
            cache = Path(os.environ["NUMBA_CACHE_DIR"])
            _compile(cache, words[1:], Step("compiling"), first=False, most=1)
        else:
            compile_kernels(kernel_programs())
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
