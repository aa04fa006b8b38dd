"""What can be said on the command line, apart from the doing of it.

``./kinstack up --help`` must answer before anything is installed: this file needs the standard
library alone, and is run as a script by the shell command for help.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["call_parser", "launch_parser", "up_parser"]


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


def main(words: list[str]) -> int:
    """Print the help of the command that the first word names."""
    parsers = {"up": up_parser, "call": call_parser, "launch": launch_parser}
    parsers[words[0]]().parse_args(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
