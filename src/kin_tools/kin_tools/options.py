"""What can be said on the command line, apart from the doing of it.

``./kinstack up --help`` must answer before anything is installed: this file needs the standard
library alone, and is run as a script by the shell command for help.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["bag_parser", "call_parser", "launch_parser", "up_parser"]


def up_parser() -> argparse.ArgumentParser:
    """The words of ``./kinstack up``."""
    parser = argparse.ArgumentParser(
        prog="kinstack up",
        description="Start the full stack and print a line for each node as it becomes active. "
        "Ctrl-C ends every process.",
        epilog="Exit code: 0 if all ended well (with --check: if every node answered SUCCESS), 1 "
        "if a node failed, 2 for arguments that cannot be used.",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="name:=value",
        help="arguments of launch/full_stack.launch.xml, such as namespace:=robot1 or cuik:=false",
    )
    parser.add_argument(
        "--check", action="store_true", help="ask every node one real question, then stop"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show all that the nodes write, not only errors"
    )
    parser.add_argument("--show-args", action="store_true", help="list the arguments and stop")
    parser.add_argument(
        "--launch-file",
        metavar="FILE",
        help="start another launch file instead (XML)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="with --check: longest time until all nodes are active [s]",
    )
    return parser


def call_parser() -> argparse.ArgumentParser:
    """The words of ``./kinstack call``."""
    parser = argparse.ArgumentParser(
        prog="kinstack call",
        description="Call a service of a running stack and print the answer as YAML.",
        epilog="Example: ./kinstack call /stack_monitor/check_ready kin_interfaces/srv/CheckReady "
        "'{wait: 5.0}'. Exit code: 0 answered (and its status, if it has one, is SUCCESS); 1 no "
        "service, no answer or another status; 2 a request that cannot be understood.",
    )
    parser.add_argument(
        "service", metavar="SERVICE", help="name, such as /stack_monitor/check_ready"
    )
    parser.add_argument("type", metavar="TYPE", help="such as kin_interfaces/srv/CheckReady")
    parser.add_argument(
        "request",
        metavar="YAML",
        nargs="?",
        default="{}",
        help="fields of the request; @FILE reads them from a file, - from the standard input",
    )
    parser.add_argument("--full", action="store_true", help="print long arrays in full")
    parser.add_argument(
        "--wait", type=float, default=5.0, metavar="S", help="time for the service to appear [s]"
    )
    parser.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="time for the answer [s]"
    )
    return parser


def launch_parser() -> argparse.ArgumentParser:
    """The words of ``./kinstack launch``."""
    parser = argparse.ArgumentParser(
        prog="kinstack launch",
        description="Run a ROS 2 XML launch file on a machine without ros2 launch.",
        epilog="Ctrl-C ends every process: SIGINT, then SIGTERM, then SIGKILL. The exit code is 0 "
        "if all processes ended well, 1 if one failed, 2 for a launch file or argument that "
        "cannot be used.",
    )
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[PACKAGE] FILE [name:=value ...]",
        help="a launch file, or a package and the name of a launch file in it; then arguments",
    )
    parser.add_argument(
        "-s", "--show-args", action="store_true", help="list the arguments of the file and stop"
    )
    parser.add_argument(
        "--log-dir", type=Path, metavar="DIR", help="keep logs in a folder below DIR"
    )
    return parser


def _remap(text: str) -> tuple[str, str]:
    old, found, new = text.partition(":=")
    if not found or not old.startswith("/") or not new.startswith("/"):
        raise argparse.ArgumentTypeError(f"expected /old:=/new, got {text}")
    return old, new


def _not_negative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number that is not negative, got {text}")
    return value


def bag_parser() -> argparse.ArgumentParser:
    """The words of ``./kinstack bag``."""
    parser = argparse.ArgumentParser(
        prog="kinstack bag",
        description="rosbag2 bags: record, look at, replay, and regression by replay.",
        epilog="Exit code: 0 all well, 1 a change or no answer, 2 what cannot be understood.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _record_parser(commands.add_parser("record", help="record topics of a running graph"))
    info = commands.add_parser("info", help="say what is in a bag")
    info.add_argument("bag", type=Path, metavar="BAG")
    _replay_parser(commands.add_parser("replay", help="play a bag to whoever listens"))
    _regress_parser(commands.add_parser("regress", help="replay in lock step and compare"))
    ask = commands.add_parser("ask", help="call services and keep requests and answers in a bag")
    ask.add_argument("bag", type=Path, metavar="BAG", help="folder to make")
    ask.add_argument(
        "questions",
        type=Path,
        metavar="QUESTIONS",
        help="YAML: a list of {service: /n/s, type: p/srv/T, request: {...}}, or action: instead "
        "of service:, or {topic: /t, type: p/msg/T, message: {...}, outputs: {/o: p/msg/T}}",
    )
    _core_options(ask)
    ask.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap")
    repair = commands.add_parser("repair", help="make a bag readable whose recorder was killed")
    repair.add_argument("bag", type=Path, metavar="BAG")
    golden = commands.add_parser("golden", help="the golden bags of the systems")
    golden.add_argument("what", choices=("check", "make"))
    golden.add_argument("systems", nargs="*", metavar="SYSTEM", help="systems; none: all")
    return parser


def _record_parser(record: argparse.ArgumentParser) -> None:
    record.add_argument("topics", nargs="*", metavar="TOPIC", help="topics; none: all")
    record.add_argument("-o", "--output", type=Path, metavar="BAG", help="folder to make")
    record.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap")
    record.add_argument("--compress", action="store_true", help="compress with zstd")
    record.add_argument("--exclude", default="", metavar="REGEX", help="leave these topics out")
    record.add_argument("--hidden", action="store_true", help="also topics that begin with _")
    record.add_argument(
        "--split-size", type=_not_negative, default=0, metavar="MB", help="new file after [MB]"
    )
    record.add_argument(
        "--split-duration", type=_not_negative, default=0, metavar="S", help="new file after [s]"
    )
    record.add_argument("--duration", type=_not_negative, metavar="S", help="stop after [s]")


def _selection_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bag", type=Path, metavar="BAG")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="only these")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="TOPIC", help="not these")
    parser.add_argument(
        "--remap", nargs="+", type=_remap, default=[], metavar="/OLD:=/NEW", help="new names"
    )
    parser.add_argument("--start", type=_not_negative, default=0.0, metavar="S", help="begin [s]")
    parser.add_argument("--end", type=_not_negative, metavar="S", help="end [s] after the begin")
    parser.add_argument("--clock", action="store_true", help="publish /clock with the bag's time")


def _core_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--core",
        nargs="+",
        metavar="NODE",
        help="hand messages straight to these nodes in this process, PACKAGE or MODULE:CLASS, "
        "instead of to running ones",
    )
    parser.add_argument("--params", type=Path, metavar="FILE", help="parameters of these nodes")
    parser.add_argument("--namespace", default="", help="namespace of these nodes")
    parser.add_argument(
        "--patience", type=_not_negative, default=20.0, metavar="S", help="wait for answers [s]"
    )


def _replay_parser(replay: argparse.ArgumentParser) -> None:
    _selection_options(replay)
    replay.add_argument(
        "--rate", type=_not_negative, default=1.0, help="speed; 0: as fast as possible"
    )
    replay.add_argument(
        "--wait", type=_not_negative, default=4.0, metavar="S", help="wait for listeners [s]"
    )
    replay.add_argument(
        "--lock-step",
        action="store_true",
        help="send one message at a time and wait for what the bag holds as the answer to it; "
        "topics that a running node publishes are answers",
    )
    replay.add_argument(
        "-o", "--output", type=Path, metavar="NEW_BAG", help="keep what came back (--lock-step)"
    )
    _core_options(replay)


def _regress_parser(regress: argparse.ArgumentParser) -> None:
    _selection_options(regress)
    regress.add_argument("tolerances", type=Path, metavar="TOLERANCES", help="YAML file")
    _core_options(regress)
    regress.add_argument(
        "--accept", action="store_true", help="make what comes the new expectation"
    )
    regress.add_argument("--plot", type=Path, metavar="PNG", help="draw expected against got")


def main(words: list[str]) -> int:
    """Print the help of the command that the first word names."""
    parsers = {"up": up_parser, "call": call_parser, "launch": launch_parser, "bag": bag_parser}
    parsers[words[0]]().parse_args(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
