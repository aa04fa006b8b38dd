"""``python -m kin_tools.up``: start the full stack and say what becomes of it."""

from __future__ import annotations

import kin_core.interrupts  # isort: skip  # noqa: F401 (before all else)
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kin_core.errors import InvalidInput
from kin_core.texts import did_you_mean
from kin_tools import launch
from kin_tools.check import read_questions
from kin_tools.claims import NameTaken, claim_names
from kin_tools.errors import ArgumentProblem
from kin_tools.guard import Front
from kin_tools.launch import find_launch_file, parse_launch_arguments
from kin_tools.native import monitored_names, native_launcher, run_native
from kin_tools.options import up_parser
from kin_tools.precompile import compile_kernels, compiled_beside, kernel_programs

if TYPE_CHECKING:
    from kin_ros.client import Client

__all__ = ["main"]


@dataclass(frozen=True)
class _Stack:
    """What is to be started.

    Attributes:
        supervise: Starts it and stays until it has ended; see :class:`Front`.
        claimed: Names of nodes that must not run yet.
        programs: Programs whose kernels are compiled first.
        find_names: Full names of all nodes, as soon as they are known.
    """

    supervise: Callable[[int], int]
    claimed: Sequence[str]
    programs: Iterable[str]
    find_names: Callable[[Client, Callable[[], bool]], list[str]]


def _read_stack(file: Path, arguments: dict[str, str], quiet: bool) -> _Stack:
    """The stack as our own reader of launch files finds it.

    Raises:
        InvalidInput: The file or an argument cannot be used.
    """
    from kin_tools.launch_xml import load_launch_file, show_arguments
    from kin_tools.runner import make_supervisor

    plan = load_launch_file(file, arguments)
    known = [argument.name for argument in show_arguments(file)]
    for name in plan.unused:
        hint = did_you_mean(name, known, "{}")
        raise ArgumentProblem(name, f"is not an argument{hint} (there are {', '.join(known)})")
    return _Stack(
        lambda lifeline: make_supervisor(plan.processes, lifeline, quiet=quiet).run(),
        plan.node_names,
        [spec.program[0] for spec in plan.processes if spec.ros is not None],
        lambda *_: plan.node_names,
    )


def _native_stack(ros2: str, file: Path, arguments: dict[str, str], quiet: bool) -> _Stack:
    """The stack that ``ros2 launch`` starts; its monitor tells which nodes there are."""
    given = arguments.get("namespace", "").strip("/")
    namespace = f"/{given}" if given else ""
    words = [str(file), *(f"{name}:={value}" for name, value in arguments.items())]
    return _Stack(
        lambda lifeline: run_native(ros2, words, lifeline, quiet=quiet),
        [f"{namespace}/stack_monitor"],
        kernel_programs(),
        lambda client, stop: monitored_names(client, namespace, stop),
    )


def warn_if_visible() -> None:
    """Warn where the nodes can be seen from other machines: a sourced ROS 2 asks for that."""
    reach = (os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "SUBNET").upper()
    if reach == "SUBNET":
        print(
            f"kinstack: other machines can find these nodes (discovery range {reach});"
            " ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST keeps them to this one",
            flush=True,
        )


@contextlib.contextmanager
def _own_domain(wanted: bool) -> Iterator[None]:
    """A ROS domain that nobody else on this machine uses, unless the user has chosen one."""
    if not wanted or "ROS_DOMAIN_ID" in os.environ:
        yield
        return
    try:
        from domain_coordinator import domain_id
    except ImportError:
        yield
        return
    with domain_id() as domain:
        os.environ["ROS_DOMAIN_ID"] = str(domain)
        try:
            yield
        finally:
            del os.environ["ROS_DOMAIN_ID"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = up_parser().parse_args(argv)
    ros2 = native_launcher()
    quiet = not options.verbose
    try:
        words = (
            [options.launch_file]
            if options.launch_file
            else ["kin_bringup", "full_stack.launch.xml"]
        )
        file, _ = find_launch_file(words)
        if options.show_args:
            return launch.main([str(file), "--show-args"])
        arguments = parse_launch_arguments(options.words)
        if ros2 is None:
            stack = _read_stack(file, arguments, quiet)
        else:
            stack = _native_stack(ros2, file, arguments, quiet)
        checks = file.parent / "config" / "check" if options.check else None
        if checks:
            read_questions(checks, [])  # what is wrong with them is told before anything starts
    except InvalidInput as error:
        print(f"kinstack: {error}", file=sys.stderr)
        return 2
    if not options.launch_file:
        try:
            compile_kernels(stack.programs, first=True)
        except KeyboardInterrupt:
            print("kinstack: interrupted", file=sys.stderr)
            return 130
    warn_if_visible()
    try:
        programs = [] if options.launch_file else stack.programs
        with (
            _own_domain(options.check),
            claim_names(stack.claimed),
            compiled_beside(programs),
        ):
            started = time.monotonic()
            front = Front(stack.supervise)
            try:
                return _follow(front, stack, started, options.timeout, checks)
            except BaseException:
                front.send(signal.SIGINT)
                front.finish()
                raise
    except NameTaken as error:
        print(f"kinstack: {error}", file=sys.stderr)
        return 1


def _follow(
    front: Front, stack: _Stack, started: float, timeout: float, checks: Path | None
) -> int:
    """Watch the nodes until the end; with a folder of questions ask those, and end it then."""
    from kin_ros.client import open_client
    from kin_tools.check import ask_all, table
    from kin_tools.progress import Reporter

    def stopped() -> bool:
        return bool(front.signalled) or front.poll() is not None

    def over() -> bool:
        return stopped() or (checks is not None and time.monotonic() - started > timeout)

    good = False
    with open_client("up" if checks is None else "check") as client:
        names = stack.find_names(client, over)
        reporter = Reporter(client, names, started)
        while not over() and not (checks and reporter.ready):
            reporter.turn()
        if checks and reporter.ready:
            answers = ask_all(client, read_questions(checks, names), stopped)
            good = all(answer.good for answer in answers)
            print(table(answers), flush=True)
        elif checks and not front.signalled:
            print(f"kinstack: not ready: {reporter.message}", file=sys.stderr)
        reporter.close()
    if checks is None:
        return front.finish()
    if not stopped():
        front.send(signal.SIGINT)
    code = front.finish()
    if code != 0:
        print("kinstack: a process did not end well", file=sys.stderr)
    if front.signalled:
        print("kinstack: interrupted", file=sys.stderr)
        return 130
    if good and code == 0:
        print("kinstack: every node answered")
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
