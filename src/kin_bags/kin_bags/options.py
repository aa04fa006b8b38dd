"""What can be said on the command line of ``./kinstack bag``, apart from the doing of it.

``./kinstack bag --help`` must answer before anything is installed: this file needs the standard
library alone, and is run as a script by the shell command for help.
"""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["bag_parser"]


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


if __name__ == "__main__":
    bag_parser().parse_args()
