"""Runs the generators of an interface package at once, each definition parsed a single time.

    generate.py ARGUMENTS GENERATOR [ARGUMENTS GENERATOR ...]

ARGUMENTS is the file that CMake writes for a generator, GENERATOR its command, words separated by
``|``. As rosidl's rules are, make starts the generators one after the other, and each parses every
definition anew, which takes most of the time. Whoever runs this before make leaves it nothing to
generate: all outputs are newer than what they are made from. What fails here is left to make.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import runpy
import sys
from pathlib import Path

from rosidl_parser import parser


def run(arguments: str, command: str) -> int:
    """Fork a process that runs one generator; its process id."""
    pid = os.fork()
    if pid == 0:
        script, *words = command.split("|")
        sys.argv = [script, "--generator-arguments-file", arguments, *words]
        code = 1
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            code = 0 if not end.code else 1
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


def main(words: list[str]) -> int:
    """Parse all definitions, then run the generators: the first by itself, the others together."""
    parse = functools.cache(parser.parse_idl_string)
    parser.parse_idl_string = lambda text, png_file=None: copy.deepcopy(parse(text))
    generators = list(zip(words[::2], words[1::2], strict=True))
    for pair in json.loads(Path(generators[0][0]).read_text())["idl_tuples"]:
        parse(Path(*pair.rsplit(":", 1)).read_text(encoding="utf-8"))
    failed = 0
    for group in (generators[:1], generators[1:]):  # type hashes are in what the others write
        for pid in [run(*generator) for generator in group]:
            failed |= os.waitpid(pid, 0)[1]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
