"""The command ``kin_solvers``: solve a mechanism, write JSON and a picture."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kin_core.errors import KinError
from kin_core.task import Progress, Task
from kin_solvers import library
from kin_solvers.components import Component
from kin_solvers.mechanism import Mechanism
from kin_solvers.mechanism_yaml import load_mechanism
from kin_solvers.settings import Settings
from kin_solvers.solve import solve

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Solve a mechanism; returns 0 if the answer is complete, 1 if not, 2 on an error."""
    parser = argparse.ArgumentParser(
        prog="kin_solvers", description="All configurations of a closed mechanism."
    )
    parser.add_argument(
        "mechanism", help="a mechanism file (YAML), or one of: " + ", ".join(library.NAMES)
    )
    parser.add_argument("--sigma", type=float, default=0.1, help="side of a solution box [rad, m]")
    parser.add_argument("--rho", type=float, default=0.8, help="volume ratio above which to split")
    parser.add_argument("--method", choices=("fast", "paper"), default="fast")
    parser.add_argument("--threads", type=int, default=0, help="0: one per processor")
    parser.add_argument("--timeout", type=float, default=None, help="time allowed [s]")
    parser.add_argument("--max-boxes", type=int, default=50_000_000)
    parser.add_argument("--json", metavar="FILE", help="write the answer; - for the terminal")
    parser.add_argument("--plot", metavar="FILE", help="write a picture (png, svg, pdf)")
    parser.add_argument("--show", nargs=3, metavar="VARIABLE", help="variables of the projection")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except KinError as error:
        print(f"kin_solvers: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    mechanism = _mechanism(options.mechanism)
    settings = Settings(
        sigma=options.sigma,
        rho=options.rho,
        method=options.method,
        threads=options.threads,
        max_boxes=options.max_boxes,
    )

    def report(progress: Progress) -> None:
        if not options.quiet and sys.stderr.isatty():
            print(
                f"\r{100.0 * progress.fraction:6.2f} %  {progress.message}", end="", file=sys.stderr
            )

    manifold = solve(mechanism, settings, task=Task(options.timeout, report))
    if not options.quiet:
        end = "\n" if sys.stderr.isatty() else ""
        print(
            f"{end}{mechanism.name}: {manifold.message} ({1e3 * manifold.solve_time:.1f} ms)",
            file=sys.stderr,
        )
        print(f"  {manifold.summary}", file=sys.stderr)
        for k, c in enumerate(manifold.components[:32]):
            print(f"  component {k}: {_described(c)}", file=sys.stderr)
    if options.json:
        text = json.dumps(manifold.as_dict())
        if options.json == "-":
            print(text)
        else:
            Path(options.json).write_text(text + "\n", encoding="utf-8")
    if options.plot:
        from kin_solvers.plot import plot_manifold

        plot_manifold(manifold, Path(options.plot), names=options.show)
    return 0 if manifold.complete else 1


def _described(component: Component) -> str:
    """One component in words."""
    boxes = f"{len(component.boxes)} box{'es' if len(component.boxes) != 1 else ''}"
    if component.dimension == 1:
        samples = sum(len(c) for c in component.curves)
        return f"a{' closed' * component.closed_curve} curve, {samples} samples, {boxes}"
    known = "proven" if component.proven else "estimated"
    if component.dimension == 0:
        return f"an isolated solution ({known}), {boxes}"
    return f"dimension {component.dimension} ({known}), {boxes}"


def _mechanism(name: str) -> Mechanism:
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        return load_mechanism(path)
    return library.get(name)


if __name__ == "__main__":
    sys.exit(main())
