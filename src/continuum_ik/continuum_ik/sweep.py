"""Which poses of a grid can be reached: a flood from pose to neighbouring pose.

Each pose is solved by continuation from a solved neighbour, so that all solutions lie on the branch
that is connected with home, and poses outside the workspace are looked at only along its edge.
Unless the solver allows unstable solutions, the flood does not go through them: no platform could.
"""

from __future__ import annotations

import io
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from continuum_ik.analysis import fold_margin
from continuum_ik.layout import ENTRY, duplicate, named, record
from continuum_ik.path import copy_entry
from continuum_ik.pose import make_pose
from continuum_ik.reasons import NONE, SUCCESS
from continuum_ik.rod import KERNEL, LENGTH, RODS, Array
from continuum_ik.solver import ContinuumSolver
from continuum_ik.stability import CLOSE_STABLE, STABLE
from continuum_ik.tracking import hop
from kin_core import checks
from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Task

#: Most poses of one sweep: each needs half a kilobyte.
POSES_LIMIT = 200_000
#: Poses tried from home when the flood has come to its end, in search of separate parts.
SEEDS = 24
#: The edge of the workspace is found to this part of the grid's spacing.
SMALLEST = 0.02
#: Steps along the arc after which the way from one neighbour is given up. A fold or a sharp bend
#: takes some 10; where branches cross, up to thousands, and there are other neighbours.
ARC_BUDGET = 25


@dataclass(frozen=True, eq=False)
class Sweep:
    """A swept grid; arrays have the grid's shape (nz, ny, nx), so x is fastest.

    Attributes:
        x, y, z: Coordinates of the grid [m].
        rotation: Of the platform at every pose, (3, 3).
        codes: Status codes: SUCCESS or UNREACHABLE.
        lengths: (nz, ny, nx, 6) [m]; NaN where not reached.
        fold_margin: Smallest singular value of the scaled equations; NaN where not reached.
        stable: Whether the solution is a minimum of energy; False where there is none.
        seconds: Time it took [s].
    """

    x: Array
    y: Array
    z: Array
    rotation: Array
    codes: NDArray[np.uint8]
    lengths: Array
    fold_margin: Array
    stable: NDArray[np.bool_]
    seconds: float

    @property
    def total(self) -> int:
        """Poses of the grid."""
        return int(self.codes.size)

    @property
    def reachable(self) -> int:
        """Poses that were reached."""
        return int(np.count_nonzero(self.codes == StatusCode.SUCCESS))

    @property
    def volume(self) -> float:
        """Reachable part [m^3]; an area or a length if the grid is flat or thin."""
        cell = 1.0
        for axis in (self.x, self.y, self.z):
            if len(axis) > 1:
                cell *= abs(float(axis[1] - axis[0]))
        return cell * self.reachable

    @property
    def poses_per_second(self) -> float:
        """Poses decided in a second."""
        return self.total / self.seconds


@njit(**KERNEL)
def _spread(
    state: Array,
    entries: Array,
    sources: Array,
    cells: Array,
    targets: Array,
    codes: Array,
    margins: Array,
    flag: Array,
) -> int:
    """Solve cells, each from its source's entry; fill entries, codes and margins."""
    w = record(state)
    for k in range(len(cells)):
        if flag[0] != 0:
            return k
        cell = cells[k]
        if codes[cell] == SUCCESS:
            continue
        source = sources[k]
        copy_entry(entries[source] if source >= 0 else w.home, w.start)
        if hop(w, targets[cell]) == NONE:
            copy_entry(w.answer, entries[cell])
            codes[cell] = SUCCESS
            margins[cell] = fold_margin(w)
    return len(cells)


def _axis(name: str, low: float, high: float, count: int) -> Array:
    if count == 1:
        return np.array([0.5 * (low + high)])
    if not high > low:
        raise InvalidInput(
            "upper", f"must be above lower along {name}, {high:g} is not above {low:g}"
        )
    return np.linspace(low, high, count)


def sweep_workspace(
    solver: ContinuumSolver,
    lower: ArrayLike,
    upper: ArrayLike,
    counts: tuple[int, int, int],
    rotation: ArrayLike | None = None,
    *,
    threads: int = 2,
    task: Task | None = None,
) -> Sweep:
    """Find out which positions of a grid the platform can reach.

    Args:
        solver: Its robot and tolerance are used; its state stays.
        lower: Corner of the grid, (3) [m].
        upper: Opposite corner, (3) [m].
        counts: Positions along x, y, z; 1 for the middle only.
        rotation: Of the platform; level if None.
        threads: Threads to use.
        task: To cancel, limit the time, and see the progress.

    Raises:
        InvalidInput: Not finite, or an empty grid.
        LimitExceeded: More than 200,000 poses.
    """
    begin = time.perf_counter()
    low, high = checks.shape("lower", lower, (3,)), checks.shape("upper", upper, (3,))
    nx, ny, nz = (int(c) for c in counts)
    for name, count in zip("xyz", (nx, ny, nz), strict=True):
        if count < 1:
            raise InvalidInput("counts", f"must be at least 1 along {name}, got {count}")
    checks.count("counts", nx * ny * nz, POSES_LIMIT)
    xs, ys, zs = (
        _axis("xyz"[k], float(low[k]), float(high[k]), n) for k, n in enumerate((nx, ny, nz))
    )
    R = make_pose((0.0, 0.0, 0.0), rotation)[3:]
    total = nx * ny * nz
    targets = np.empty((total, 12))
    targets[:, 3:] = R
    grid = np.meshgrid(zs, ys, xs, indexing="ij")
    targets[:, 2], targets[:, 1], targets[:, 0] = (g.reshape(-1) for g in grid)
    task = task or Task()
    flood = _Flood(solver, targets, (nz, ny, nx), max(1, threads), task)
    with task:
        flood.run()
    task.check()
    solved = flood.codes == SUCCESS
    stable = solved & np.isin(flood.entries["stable"], (STABLE, CLOSE_STABLE))
    lengths = np.where(solved[:, None], flood.entries["y"][:, LENGTH, :RODS], np.nan)
    task.progress(1.0, "done", done=total, reachable=flood.reached())
    return Sweep(
        x=xs,
        y=ys,
        z=zs,
        rotation=R.reshape(3, 3).copy(),
        codes=flood.codes.reshape(nz, ny, nx),
        lengths=lengths.reshape(nz, ny, nx, 6),
        fold_margin=np.where(solved, flood.margins, np.nan).reshape(nz, ny, nx),
        stable=stable.reshape(nz, ny, nx),
        seconds=time.perf_counter() - begin,
    )


class _Flood:
    """The state of a sweep: what is solved, and what is to be tried from where."""

    def __init__(
        self,
        solver: ContinuumSolver,
        targets: Array,
        shape: tuple[int, int, int],
        threads: int,
        task: Task,
    ) -> None:
        n = len(targets)
        self.targets = targets
        self.shape = shape
        self.task = task
        self.entries = np.zeros(n, ENTRY)
        self.codes = np.full(n, int(StatusCode.UNREACHABLE), dtype=np.uint8)
        self.margins = np.full(n, np.nan)
        self.attempted = np.zeros(n, dtype=bool)
        self.arrays = [duplicate(solver.state) for _ in range(threads)]
        for w in map(named, self.arrays):
            w.smallest, w.arc_budget = SMALLEST, ARC_BUDGET
        self.pool = ThreadPoolExecutor(max_workers=threads)
        self.home = named(solver.state).home.pose[0].copy()

    def reached(self) -> int:
        """Poses solved so far."""
        return int(np.count_nonzero(self.codes == SUCCESS))

    def run(self) -> None:
        """Flood from the pose nearest to home, then from others that are not yet reached."""
        distance = np.linalg.norm(self.targets[:, :3] - self.home, axis=1)
        with self.pool:
            self._seed(np.argsort(distance, kind="stable"))
            # Separate parts, which this grid does not connect: from home to poses spread over it.
            rest = np.flatnonzero(~self.attempted)
            self._seed(rest[:: max(1, len(rest) // SEEDS)])

    def _seed(self, cells: NDArray[np.int64]) -> None:
        """Try to reach cells from home, as many as SEEDS, and flood from those that are."""
        tried = 0
        for cell in cells:
            if tried > SEEDS or self.task.stopped:
                return
            if not self.attempted[cell]:
                tried += 1
                self._solve(np.array([-1]), np.array([cell]))
                if self.codes[cell] == SUCCESS:
                    self._flood(np.array([cell]))

    def _flood(self, front: NDArray[np.int64]) -> None:
        while front.size and not self.task.stopped:
            sources, cells = self._neighbours(front)
            self._solve(sources, cells)
            solved = np.unique(cells[self.codes[cells] == SUCCESS])
            front = solved
            share = np.count_nonzero(self.attempted) / len(self.targets)
            self.task.progress(
                0.99 * share,
                "sweeping",
                done=float(np.count_nonzero(self.attempted)),
                reachable=float(self.reached()),
                poses_per_second=float(np.count_nonzero(self.attempted)) / self.task.elapsed(),
            )

    def _neighbours(self, front: NDArray[np.int64]) -> tuple[Any, Any]:
        """Return sources and unsolved neighbouring cells, each pair once."""
        nz, ny, nx = self.shape
        z, y, x = np.unravel_index(front, self.shape)
        sources, cells = [], []
        for dz, dy, dx in ((0, 0, 1), (0, 0, -1), (0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0)):
            a, b, c = z + dz, y + dy, x + dx
            inside = (a >= 0) & (a < nz) & (b >= 0) & (b < ny) & (c >= 0) & (c < nx)
            cell = np.ravel_multi_index((a[inside], b[inside], c[inside]), self.shape)
            unsolved = self.codes[cell] != SUCCESS
            sources.append(front[inside][unsolved])
            cells.append(cell[unsolved])
        return np.concatenate(sources), np.concatenate(cells)

    def _solve(self, sources: NDArray[np.int64], cells: NDArray[np.int64]) -> None:
        order = np.argsort(cells, kind="stable")  # all attempts at one pose in one thread
        sources, cells = sources[order], cells[order]
        self.attempted[cells] = True
        edges = [0]
        for k in range(1, len(self.arrays)):
            at = k * len(cells) // len(self.arrays)
            while 0 < at < len(cells) and cells[at] == cells[at - 1]:
                at += 1
            edges.append(max(at, edges[-1]))
        edges.append(len(cells))

        def work(k: int) -> None:
            part = slice(edges[k], edges[k + 1])
            _spread(
                self.arrays[k],
                self.entries,
                sources[part],
                cells[part],
                self.targets,
                self.codes,
                self.margins,
                self.task.flag,
            )

        if len(cells) < 32:
            for k in range(len(self.arrays)):
                work(k)
        else:
            list(self.pool.map(work, range(len(self.arrays))))


def draw_sweep(sweep: Sweep, title: str = "") -> bytes:
    """Return a PNG image: slices at up to six heights, coloured by the distance to the fold."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = min(6, len(sweep.z))
    chosen = np.unique(np.linspace(0, len(sweep.z) - 1, count).round().astype(int))
    columns = min(3, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure = Figure(figsize=(4.2 * columns + 0.9, 3.9 * rows + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    finite = sweep.fold_margin[np.isfinite(sweep.fold_margin)]
    top = float(finite.max()) if finite.size else 1.0
    half = [0.5 * float(a[1] - a[0]) if len(a) > 1 else 0.005 for a in (sweep.x, sweep.y)]
    extent = (
        float(sweep.x[0]) - half[0],
        float(sweep.x[-1]) + half[0],
        float(sweep.y[0]) - half[1],
        float(sweep.y[-1]) + half[1],
    )
    image = None
    for panel, axis in enumerate(axes.flat):
        if panel >= len(chosen):
            axis.set_visible(False)
            continue
        k = chosen[panel]
        axis.set_facecolor("0.92")
        image = axis.imshow(
            np.ma.masked_invalid(sweep.fold_margin[k]),
            origin="lower",
            extent=extent,
            vmin=0.0,
            vmax=top,
            cmap="viridis",
            interpolation="nearest",
            aspect="equal",
        )
        share = float(np.mean(sweep.codes[k] == StatusCode.SUCCESS))
        axis.set_title(f"z = {sweep.z[k]:.3f} m, {100.0 * share:.0f} % reachable", fontsize=10)
        axis.set_xlabel("x [m]")
        axis.set_ylabel("y [m]")
    if image is not None:
        figure.colorbar(
            image, ax=list(axes.flat), label="distance to the fold (smallest sing. value)"
        )
    figure.suptitle(
        title
        or f"{sweep.reachable} of {sweep.total} poses reachable, "
        f"{sweep.poses_per_second:.0f} poses/s"
    )
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()
