"""Pictures like Fig. 6 of the paper: the linkage, and the box cover of its solution set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import Constant, Mechanism, rotation, translation

__all__ = ["linkage_points", "plot_manifold"]

Array = NDArray[np.float64]

#: Configurations drawn along a curve, and isolated ones drawn at most.
_POSES, _MOST = 6, 40
#: Smallest side of a box that is drawn, relative to the picture.
_SMALLEST = 0.03


def linkage_points(mechanism: Mechanism, loop: int, q: Array) -> Array:
    """Origins of the frames along a loop at a configuration, shape (P, 3) [m]."""
    frame = np.eye(4)
    points = [frame[:3, 3].copy()]
    for factor in mechanism.loops[loop].factors:
        if isinstance(factor, Constant):
            frame = frame @ factor.matrix
        else:
            move = (
                rotation if mechanism.variables[factor.variable].kind == "rotation" else translation
            )
            frame = frame @ move(factor.axis, factor.sign * q[factor.variable])
        if np.linalg.norm(frame[:3, 3] - points[-1]) > 1e-9:
            points.append(frame[:3, 3].copy())
    return np.array(points)


def plot_manifold(manifold: Manifold, path: Path, names: Sequence[str] | None = None) -> None:
    """Draw the linkage in a few configurations, and the boxes projected on three variables.

    Args:
        manifold: The answer to draw.
        path: File to write.
        names: Three variables; if None those that keep isolated solutions apart, or the first ones.
    """
    from matplotlib.figure import Figure

    mechanism = manifold.mechanism
    axes = [mechanism.index(n) for n in names] if names else _telling(manifold)
    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    _draw_linkage(figure.add_subplot(1, 2, 1, projection="3d"), manifold)
    if len(axes) == 3:
        _draw_boxes(figure.add_subplot(1, 2, 2, projection="3d"), manifold, axes)
    else:
        _draw_boxes_flat(figure.add_subplot(1, 2, 2), manifold, axes)
    figure.suptitle(
        f"{mechanism.name}: {manifold.summary} in {len(manifold.lower)} boxes, "
        f"sigma = {manifold.sigma:g}"
    )
    figure.savefig(path, dpi=130)


def _telling(manifold: Manifold) -> list[int]:
    """Three variables in which isolated solutions are farthest apart; the first ones of a curve."""
    n = len(manifold.mechanism.names)
    if n <= 3 or any(c.dimension for c in manifold.components) or len(manifold.components) < 2:
        return list(range(n))[:3]
    points = np.array([c.point for c in manifold.components[:_MOST]])
    gaps = np.abs(points[:, None] - points[None])[np.triu_indices(len(points), 1)]
    return list(max(combinations(range(n), 3), key=lambda k: float(gaps[:, k].max(axis=1).min())))


def _configurations(manifold: Manifold) -> list[Array]:
    """Some configurations, spread along the first curve, or one for each component."""
    for number, component in enumerate(manifold.components):
        if component.dimension == 1:
            curve, _ = manifold.curve(number)
            return [curve[(k * len(curve)) // _POSES] for k in range(_POSES)]
    return [c.point for c in manifold.components[:_MOST]]


def _draw_linkage(axes: Any, manifold: Manifold) -> None:
    import matplotlib

    shown = _configurations(manifold)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, max(len(shown), 1)))
    drawn: set[bytes] = set()
    for k, q in enumerate(shown):
        for loop in range(len(manifold.mechanism.loops)):
            p = linkage_points(manifold.mechanism, loop, q)
            place = (np.round(p, 6) + 0.0).tobytes()
            # Postures that differ in a wrist only look the same: the second one lies on the first.
            style = {"lw": 1.6, "ms": 3} if place in drawn else {"lw": 3.5, "ms": 5}
            drawn.add(place)
            if manifold.mechanism.target is not None:
                # The way from the tip of an arm back to its base is no link.
                axes.plot(*p[-2:].T, ":", color="0.6", lw=1.0)
                p = p[:-1]
            axes.plot(*p.T, "-o", color=colours[k], **style)
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_zlabel("z [m]")
    isolated = all(c.dimension == 0 for c in manifold.components)
    every = isolated and len(shown) == len(manifold.components)
    axes.set_title(
        f"all {len(shown)} configurations" if every else f"{len(shown)} of its configurations"
    )
    axes.set_aspect("equal", adjustable="datalim")


_FACES = np.array(
    [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
)
_CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


def _draw_boxes(axes: Any, manifold: Manifold, shown: Sequence[int]) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    lower, upper = manifold.lower[:5000, shown], manifold.upper[:5000, shown]
    if len(lower):
        # So that tight boxes can be seen.
        least = _SMALLEST * np.maximum(np.ptp(np.concatenate([lower, upper]), axis=0), 0.1)
        pad = np.maximum(0.0, least - (upper - lower)) * 0.5
        lower, upper = lower - pad, upper + pad
        corners = np.where(_CORNERS[None], upper[:, None, :], lower[:, None, :])
        faces = corners[:, _FACES].reshape(-1, 4, 3)
        colours = np.repeat(
            np.where(manifold.certified[:5000, None], [[0.1, 0.6, 0.2]], [[0.2, 0.4, 0.8]]),
            6,
            axis=0,
        )
        axes.add_collection3d(
            Poly3DCollection(faces, facecolors=colours, edgecolors="0.2", linewidths=0.2, alpha=0.5)
        )
        for set_limit, k in ((axes.set_xlim, 0), (axes.set_ylim, 1), (axes.set_zlim, 2)):
            set_limit(float(lower[:, k].min()) - 0.05, float(upper[:, k].max()) + 0.05)
    _label(axes, manifold, shown)
    axes.set_zlabel(_name(manifold, shown[2]))


def _draw_boxes_flat(axes: Any, manifold: Manifold, shown: Sequence[int]) -> None:
    from matplotlib.patches import Rectangle

    a, b = shown[0], shown[-1]
    for low, high in zip(manifold.lower, manifold.upper, strict=True):
        axes.add_patch(
            Rectangle(
                (low[a], low[b]), high[a] - low[a], high[b] - low[b], fc="tab:blue", alpha=0.5
            )
        )
    axes.autoscale_view()
    _label(axes, manifold, [a, b])


def _label(axes: Any, manifold: Manifold, shown: Sequence[int]) -> None:
    axes.set_xlabel(_name(manifold, shown[0]))
    axes.set_ylabel(_name(manifold, shown[1]))
    axes.set_title("the boxes that hold all solutions")


def _name(manifold: Manifold, k: int) -> str:
    variable = manifold.mechanism.variables[k]
    return f"{variable.name} [{'rad' if variable.kind == 'rotation' else 'm'}]"
