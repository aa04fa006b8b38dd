"""``python -m kin_tools.up``: start the full stack and say what becomes of it."""

from __future__ import annotations

import kin_core.interrupts  # isort: skip  # noqa: F401 (before all else)
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from kin_core.errors import InvalidInput
from kin_tools.check import Question, read_questions
from kin_tools.claims import NameTaken, claim_names
from kin_tools.errors import ArgumentProblem
from kin_tools.guard import Front
from kin_tools.launch import find_launch_file, parse_launch_arguments
from kin_tools.launch_xml import LaunchPlan, load_launch_file, show_arguments
from kin_tools.options import up_parser
from kin_tools.precompile import compile_kernels
from kin_tools.runner import make_supervisor

__all__ = ["main"]


def _refuse_unused(plan: LaunchPlan, file: Path) -> None:
    known = [argument.name for argument in show_arguments(file)]
    for name in plan.unused:
        close = get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ArgumentProblem(name, f"is not an argument{hint} (there are {', '.join(known)})")


def _native_launcher() -> str | None:
    """``ros2`` of a sourced ROS 2, if the wheels are not asked for."""
    if not os.environ.get("ROS_DISTRO") or os.environ.get("KINSTACK_WHEELS") == "1":
        return None
    return shutil.which("ros2")


def _run_native(ros2: str, file: Path, words: Sequence[str], lifeline: int, quiet: bool) -> int:
    """Have ``ros2 launch`` do it, under the same guard as our own runner."""
    from kin_tools.process_spec import ProcessSpec

    # ros2 launch gives its nodes 5 s until SIGTERM and 5 s more until SIGKILL.
    spec = ProcessSpec(
        "ros2",
        (ros2, "launch", str(file), *words),
        output="screen",
        sigterm_timeout=12.0,
        sigkill_timeout=5.0,
    )
    return make_supervisor([spec], lifeline, quiet=quiet).run()


def _say_who_can_see() -> None:
    """Warn where the nodes can be seen from other machines: a sourced ROS 2 asks for that."""
    reach = (os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE") or "SUBNET").upper()
    if reach not in ("LOCALHOST", "OFF"):
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
    try:
        words = (
            [options.launch_file]
            if options.launch_file
            else ["kin_bringup", "full_stack.launch.xml"]
        )
        file, _ = find_launch_file(words)
        if options.show_args:
            from kin_tools.launch import arguments_text

            print(arguments_text(show_arguments(file)))
            return 0
        plan = load_launch_file(file, parse_launch_arguments(options.words))
        _refuse_unused(plan, file)
        folder = file.parent / "config" / "check"
        questions = read_questions(folder, plan.node_names) if options.check else []
    except InvalidInput as error:
        print(f"kinstack: {error}", file=sys.stderr)
        return 2
    ros2 = _native_launcher()
    if not options.launch_file:
        try:
            compile_kernels(plan.processes, lambda line: print(f"kinstack: {line}", flush=True))
        except KeyboardInterrupt:
            print("kinstack: interrupted", file=sys.stderr)
            return 130
    _say_who_can_see()
    quiet = not options.verbose

    def supervise(lifeline: int) -> int:
        if ros2 is None:
            return make_supervisor(plan.processes, lifeline, quiet=quiet).run()
        return _run_native(ros2, file, options.words, lifeline, quiet)

    try:
        with _own_domain(options.check), claim_names(plan.node_names):
            started = time.monotonic()
            front = Front(supervise)
            try:
                if options.check:
                    return _check(front, plan, questions, started, options.timeout)
                return _watch(front, plan, started)
            except BaseException:
                front.send(signal.SIGINT)
                front.finish()
                raise
    except NameTaken as error:
        print(f"kinstack: {error}", file=sys.stderr)
        return 1


def _watch(front: Front, plan: LaunchPlan, started: float) -> int:
    from kin_ros.client import open_client
    from kin_tools.progress import Reporter

    with open_client("up") as client:
        reporter = Reporter(client, plan.node_names, started)
        while front.wait(0.0) is None and not front.signalled:
            reporter.turn()
        reporter.close()
    return front.finish()


def _check(
    front: Front, plan: LaunchPlan, questions: list[Question], started: float, timeout: float
) -> int:
    from kin_ros.client import open_client
    from kin_tools.check import ask_all, table
    from kin_tools.progress import Reporter

    def stopped() -> bool:
        return bool(front.signalled) or front.poll() is not None

    good = False
    with open_client("check") as client:
        reporter = Reporter(client, plan.node_names, started)
        while not reporter.ready and not stopped() and time.monotonic() - started < timeout:
            reporter.turn()
        if reporter.ready:
            answers = ask_all(client, questions, stopped)
            good = all(answer.good for answer in answers)
            print(table(answers), flush=True)
        elif not front.signalled:
            print(f"kinstack: not ready: {reporter.message}", file=sys.stderr)
        reporter.close()
    if front.poll() is None and not front.signalled:
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
