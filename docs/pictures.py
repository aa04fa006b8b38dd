"""Where every picture of the documentation comes from.

    ./kinstack shell python docs/pictures.py          draws those that are drawn, into docs/images

Screenshots are taken by a test, charts of measurements by benchmarks; both are listed here, so that
no picture is without its maker. A test holds the lists against the folder, and draws them all anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

IMAGES = Path(__file__).parent / "images"

#: Screenshots of the dashboard, dashboard_NAME.png:
#: KINSTACK_PICTURES=docs/images ./kinstack test launch/test/test_stack_shown.py
SCREENSHOTS = ("all", "cuik", "arm", "delta", "rods", "tower", "phone")

#: Pictures of ./kinstack bench NAME: the benchmark's file, and the words that draw it there.
CHARTS = {
    "continuum_ladder": ("bench_continuum.py", 'chart("ladder")'),
    "continuum_workspace": ("bench_continuum.py", '"continuum_workspace.png"'),
    "cuik_versions": ("bench_cuik.py", 'chart("bennett")'),
    "delta_batch": ("bench_delta.py", 'chart("batch")'),
    "delta_workspace": ("bench_delta.py", 'chart("workspace")'),
    "ft_coverage": ("bench_ft.py", 'chart(f"coverage{key}")'),
    "hier_blocks": ("bench_hier.py", 'chart("blocks")'),
}


def cuik_bennett(path: Path) -> None:
    """The Bennett linkage and its boxes."""
    from kin_solvers import Settings, library, solve
    from kin_solvers.plot import plot_manifold

    plot_manifold(solve(library.get("bennett"), Settings(sigma=0.1)), path)


def hier_tower(path: Path) -> None:
    """The tower of 15 blocks, pulled by its top, and as it was before."""
    from hier_ik import Solver, tower
    from hier_ik.pictures import draw_posture

    pulled = tower(15)
    solver = Solver(pulled)
    solver.set_goal("drag", (2.5, 0.0, 10.2))
    solver.solve()
    draw_posture(solver.linkage, path, ghosts=(tower(15),))


def hier_graph(path: Path) -> None:
    """Links and joints of one block."""
    from hier_ik import decompose, tower
    from hier_ik.pictures import draw_graph

    block = tower(1)
    draw_graph(block, path, decompose(block))


def hier_hierarchy(path: Path) -> None:
    """Sublinkages of one block."""
    from hier_ik import decompose, tower
    from hier_ik.pictures import draw_hierarchy

    block = tower(1)
    draw_hierarchy(block, path, decompose(block))


DRAWN: dict[str, Callable[[Path], None]] = {
    draw.__name__: draw for draw in (cuik_bennett, hier_tower, hier_graph, hier_hierarchy)
}


def main() -> int:
    """Draw what can be drawn without a browser or a benchmark."""
    for name, draw in DRAWN.items():
        draw(IMAGES / f"{name}.png")
        print(f"wrote {IMAGES / name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
