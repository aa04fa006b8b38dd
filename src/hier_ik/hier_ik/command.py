"""The command ``linkage``: read a model, check it, say what it is, draw it, write it otherwise."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hier_ik.assembly import all_assemblies
from hier_ik.decompose import decompose
from hier_ik.examine import Findings, examine
from hier_ik.files import dump_linkage
from hier_ik.sources import linkage_from_file
from hier_ik.urdf import dump_urdf
from kin_core.errors import InvalidInput, KinError
from kin_core.task import Task

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Check a model; returns 0 if it is in order, 1 if not, 2 on an error."""
    parser = argparse.ArgumentParser(
        prog="linkage", description="What a model with closed loops is, and whether it closes."
    )
    parser.add_argument("model", type=Path, help=".urdf, .yaml or .xml (MJCF)")
    parser.add_argument(
        "--closures", type=Path, metavar="FILE",
        help="loops of a URDF; NAME.closures.yaml beside it if not given",
    )  # fmt: skip
    parser.add_argument("--actuated", nargs="+", metavar="JOINT", help="joints with a motor")
    parser.add_argument("--plot", metavar="FILE", help="draw its posture (png, svg, pdf)")
    parser.add_argument("--graph", metavar="FILE", help="draw its links and joints as a graph")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write it as .yaml or .urdf")
    parser.add_argument(
        "--all", action="store_true", help="find all assemblies of small loops (kin_solvers)"
    )
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (KinError, OSError) as error:
        print(f"linkage: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    linkage = linkage_from_file(options.model, options.closures)
    if options.actuated:
        linkage.set_actuated(options.actuated)
    found = examine(linkage)
    for sentence in found.sentences():
        print(sentence)
    if options.all:
        for assemblies in all_assemblies(found.linkage, task=Task(60.0)):
            loops = ", ".join(assemblies.closures[:4])
            count = f"{len(assemblies.postures)} assemblies" if assemblies.complete else "unknown"
            print(f"{loops}: {count} ({assemblies.message})")
    _draw(options, found)
    if options.write:
        _write(options.write, found)
    return 0 if found.good else 1


def _draw(options: argparse.Namespace, found: Findings) -> None:
    if options.plot:
        from hier_ik.pictures import draw_posture

        draw_posture(found.linkage, options.plot)
    if options.graph:
        from hier_ik.pictures import draw_graph

        draw_graph(found.linkage, options.graph, decompose(found.linkage))


def _write(file: Path, found: Findings) -> None:
    writers = {".yaml": dump_linkage, ".urdf": dump_urdf}
    if file.suffix not in writers:
        raise InvalidInput("--write", f"only .yaml and .urdf are written, got {file.name!r}")
    file.write_text(writers[file.suffix](found.linkage), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
