"""Where a delta robot can go, and how well it moves there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gpu_kinematics.call import Call, Group, HostArray
from gpu_kinematics.delta import Delta
from gpu_kinematics.errors import DeltaInput, DeltaLimit
from kin_core import checks
from kin_core.task import Task

__all__ = ["Workspace", "largest_cube", "map_workspace"]


@dataclass(frozen=True)
class Workspace:
    """A map over a grid of positions; arrays have the index [z, y, x].

    Attributes:
        x: Grid coordinates [m], shape (nx,).
        y: Grid coordinates [m], shape (ny,).
        z: Grid coordinates [m], shape (nz,).
        status: Status masks, shape (nz, ny, nx).
        dexterity: 1 / condition number, 0 where unreachable, shape (nz, ny, nx).
        usable: Reachable, within limits, and under the bound of the condition number.
        volume: Usable points times the volume of a cell [m^3].
        cube_side: Side of the largest axis-aligned cube of usable points [m]; 0 if the cells
            are not cubes or nothing is usable.
        cube_centre: Centre of that cube [m], NaN without one.
    """

    x: HostArray
    y: HostArray
    z: HostArray
    status: NDArray[np.uint16]
    dexterity: HostArray
    usable: NDArray[np.bool_]
    volume: float
    cube_side: float
    cube_centre: NDArray[np.float64]


def largest_cube(usable: NDArray[np.bool_]) -> tuple[int, tuple[int, int, int]]:
    """Edge, in points, of the largest cube of true values, and its lowest corner.

    Sums over boxes by inclusion and exclusion; then bisection on the edge, since a cube contains
    all smaller ones.
    """
    if usable.ndim != 3 or not usable.any():
        return 0, (0, 0, 0)
    total = np.zeros(tuple(n + 1 for n in usable.shape), dtype=np.int64)
    total[1:, 1:, 1:] = usable.astype(np.int64).cumsum(0).cumsum(1).cumsum(2)

    def find(edge: int) -> tuple[int, int, int] | None:
        hi, lo = slice(edge, None), slice(None, -edge)
        inside = (
            total[hi, hi, hi]
            - total[lo, hi, hi]
            - total[hi, lo, hi]
            - total[hi, hi, lo]
            + total[lo, lo, hi]
            + total[lo, hi, lo]
            + total[hi, lo, lo]
            - total[lo, lo, lo]
        )
        hits = np.argwhere(inside == edge**3)
        return None if hits.size == 0 else (int(hits[0][0]), int(hits[0][1]), int(hits[0][2]))

    best, corner, low, high = 1, find(1), 1, min(usable.shape)
    while low < high:
        middle = (low + high + 1) // 2
        hit = find(middle)
        if hit is None:
            high = middle - 1
        else:
            low = best = middle
            corner = hit
    return best, corner or (0, 0, 0)


def map_workspace(
    delta: Delta,
    lower: ArrayLike,
    upper: ArrayLike,
    cells: ArrayLike,
    *,
    max_condition: float = math.inf,
    max_points: int = 50_000_000,
    dtype: DTypeLike = np.float64,
    task: Task | None = None,
) -> Workspace:
    """Map reachability and dexterity over a box.

    Points are never stored: a slice is one turn of the kernel's outer axis, and x, y and z are
    read with strides of zero.

    Args:
        delta: The robot; one geometry.
        lower: Corner of the box [m], shape (3,).
        upper: Opposite corner [m], shape (3,).
        cells: Number of points along x, y, z.
        max_condition: Condition number beyond which a point is not usable.
        max_points: Budget.
        dtype: Precision.
        task: May cancel between slices, and hears of progress.
    """
    low, high, numbers = _box(lower, upper, cells, max_points)
    if delta.geometry.count not in (None, 1):
        raise DeltaInput("geometry", "a map is of one robot")
    if not max_condition >= 1.0:
        raise DeltaInput("max_condition", f"must be at least 1, got {max_condition}")
    kind = np.dtype(dtype)
    x, y, z = (np.linspace(low[i], high[i], numbers[i], dtype=kind) for i in range(3))
    nx, ny, nz = numbers
    plane = nx * ny
    points = np.empty((3, plane), kind)
    points[0], points[1] = np.tile(x, ny), np.repeat(y, nx)
    status = np.empty((nz, ny, nx), np.uint16)
    dexterity = np.empty((nz, ny, nx), kind)
    measure = np.empty((8, plane), kind)
    head = delta.head(kind, plane)
    for k in range(nz):
        if task is not None:
            task.check()
            task.progress(k / nz, "mapping", points=float(k * plane))
        points[2] = z[k]
        call = Call(
            *("dexterity", kind, 1, plane),
            (*head, Group(points, plane, 1)),
            (Group(measure, plane, 1),),
            Group(status[k], 0, 1),
        )
        delta.run(call)
        dexterity[k] = (1.0 / measure[0]).reshape(ny, nx)
    np.nan_to_num(dexterity, copy=False, nan=0.0)
    usable = (status == 0) & (
        dexterity * max_condition >= 1.0 if math.isfinite(max_condition) else True
    )
    steps = [(high[i] - low[i]) / max(1, numbers[i] - 1) for i in range(3)]
    side, centre = 0.0, np.full(3, np.nan)
    if min(steps) > 0.0 and max(steps) - min(steps) < 1e-6 * max(steps):
        edge, (iz, iy, ix) = largest_cube(usable)
        if edge > 0:
            side = (edge - 1) * steps[0]
            centre = np.array([x[ix], y[iy], z[iz]], np.float64) + 0.5 * side
    return Workspace(
        *(x, y, z, status, dexterity, usable),
        volume=float(usable.sum()) * float(np.prod(steps)),
        cube_side=side,
        cube_centre=centre,
    )


def _box(
    lower: ArrayLike, upper: ArrayLike, cells: ArrayLike, max_points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    """The corners of a box and its number of points along x, y, z, checked."""
    low = checks.shape("lower", lower, (3,))
    high = checks.shape("upper", upper, (3,))
    if (high < low).any():
        raise DeltaInput("upper", f"must not be below lower, got {high} and {low}")
    numbers = [int(n) for n in np.asarray(cells).reshape(-1)]
    if len(numbers) != 3 or min(numbers) < 1:
        raise DeltaInput("cells", f"must be three numbers of at least 1, got {numbers}")
    if math.prod(numbers) > max_points:
        raise DeltaLimit(f"cells: {math.prod(numbers)} points are more than {max_points}")
    return low, high, numbers
