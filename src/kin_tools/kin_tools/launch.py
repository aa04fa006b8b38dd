"""``python -m kin_tools.launch``: run a ROS 2 launch file, also without ``ros2 launch``."""

from __future__ import annotations

import kin_core.interrupts  # isort: skip  # noqa: F401 (before all else)
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kin_tools.claims import NameTaken, claim_names
from kin_tools.errors import ArgumentProblem, ToolError
from kin_tools.guard import Front
from kin_tools.native import native_launcher, run_native
from kin_tools.options import launch_parser

if TYPE_CHECKING:
    from kin_tools.launch_xml import Argument, LaunchPlan

__all__ = ["main", "parse_launch_arguments"]


def parse_launch_arguments(words: Sequence[str]) -> dict[str, str]:
    """Read ``name:=value`` words; the last of a name wins.

    Raises:
        ArgumentProblem: A word is not of that form.
    """
    arguments = {}
    for word in words:
        name, found, value = word.partition(":=")
        if not found or not name or not value:
            raise ArgumentProblem(word, "expected name:=value")
        arguments[name] = value
    return arguments


def find_launch_file(words: list[str]) -> tuple[Path, list[str]]:
    """The launch file that ``FILE ...`` or ``PACKAGE FILE ...`` names, and the other words.

    Raises:
        ArgumentProblem: There is none.
    """
    if len(words) >= 2 and ":=" not in words[1] and not Path(words[0]).is_file():
        package, name = words[0], words[1]
        from kin_tools.substitution import SubstitutionError, find_share

        try:
            share = Path(find_share(package))
        except SubstitutionError as error:
            raise ArgumentProblem("", str(error)) from None
        matches = sorted(path for path in share.rglob(name) if path.is_file())
        if not matches:
            raise ArgumentProblem(name, f"package '{package}' has no such launch file")
        return matches[0], words[2:]
    file = Path(words[0])
    if not file.is_file():
        raise ArgumentProblem(words[0], "there is no such file")
    return file, words[1:]


def arguments_text(arguments: Sequence[Argument]) -> str:
    """The list of arguments for ``--show-args``."""
    lines = ["Arguments (pass arguments as '<name>:=<value>'):"]
    for argument in arguments:
        mark = "*" if argument.conditional else ""
        lines += ["", f"    '{argument.name}':{mark}"]
        lines.append(f"        {argument.description or 'no description given'}")
        if argument.default is not None:
            lines.append(f"        (default: '{argument.default}')")
    if not arguments:
        lines += ["", "  No arguments."]
    elif any(argument.conditional for argument in arguments):
        lines += ["", "* argument(s) which are only used if specific conditions occur"]
    return "\n".join(lines)


def warn(plan: LaunchPlan) -> None:
    """Say what is allowed but probably not meant."""
    for name in plan.unused:
        print(f"[launch] warning: no launch file reads the argument '{name}'", file=sys.stderr)
    for warning in plan.warnings:
        print(f"[launch] warning: {warning}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = launch_parser().parse_args(argv)
    log_root: Path | None = options.log_dir
    ros2 = native_launcher()
    if ros2 is not None:
        if log_root is not None:
            os.environ["ROS_LOG_DIR"] = str(log_root.absolute())
        words = [*options.words, *(["--show-args"] if options.show_args else [])]
        return Front(lambda lifeline: run_native(ros2, words, lifeline)).finish()
    from kin_tools.launch_xml import load_launch_file, show_arguments
    from kin_tools.runner import make_supervisor

    try:
        file, rest = find_launch_file(options.words)
        if options.show_args:
            print(arguments_text(show_arguments(file)))
            return 0
        plan = load_launch_file(file, parse_launch_arguments(rest))
    except ToolError as error:
        print(f"[launch] {error}", file=sys.stderr)
        return 2
    warn(plan)
    try:
        with claim_names(plan.node_names):
            return Front(lambda end: make_supervisor(plan.processes, end, log_root).run()).finish()
    except NameTaken as error:
        print(f"[launch] {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
