"""Pictures of a linkage: its kinematic graph, its hierarchy, and its posture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from hier_ik.decompose import Decomposition
from hier_ik.linkage import Linkage

__all__ = ["draw_graph", "draw_hierarchy", "draw_posture"]

_DISPOSITION = {"driving": "#d95f02", "driven": "#1b9e77", "simultaneous": "#7570b3"}


def draw_graph(
    linkage: Linkage, path: str | Path, decomposition: Decomposition | None = None
) -> None:
    """Draw links as dots and joints as edges, closures dashed, components in colours.

    Args:
        linkage: Roles assigned; up to some hundred links stay readable.
        path: Picture file (.png or .svg).
        decomposition: If given, edges of one component share a colour.
    """
    colour: dict[str, Any] = {}
    if decomposition is not None:
        shades = matplotlib.colormaps["tab20"]
        for k, c in enumerate(decomposition.components):
            for name in (*c.closures, *c.joints):
                colour[name] = shades(k % 20)
    graph = nx.MultiGraph()
    graph.add_nodes_from(linkage.links)
    for j in linkage.joints.values():
        graph.add_edge(j.parent, j.child)
    place = nx.kamada_kawai_layout(nx.Graph(graph)) if len(graph) < 400 else _by_depth(linkage)
    figure = Figure(figsize=(10, 10 if len(graph) > 30 else 7), layout="constrained")
    axes = figure.add_subplot()
    for j in linkage.joints.values():
        a, b = place[j.parent], place[j.child]
        rigid = j.type == "fixed" and not j.closure
        axes.plot(
            [a[0], b[0]], [a[1], b[1]], color=colour.get(j.name, "0.75" if rigid else "0.35"),
            linestyle="--" if j.closure else "-", linewidth=1.0 if rigid else 2.2, zorder=1,
        )  # fmt: skip
        if len(graph) <= 40 and not rigid:
            axes.annotate(
                j.name, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), fontsize=6, color="0.3",
                ha="center",
            )  # fmt: skip
    for l in linkage.links.values():
        x, y = place[l.name]
        axes.scatter(
            x, y, s=60, zorder=2, color="white" if l.virtual else "black", edgecolors="black",
            marker="s" if l.name == linkage.root else "o",
        )  # fmt: skip
        if len(graph) <= 40:
            axes.annotate(l.name, (x, y), xytext=(5, 5), textcoords="offset points", fontsize=7)
    axes.set_title(
        f"{linkage.name}: {len(linkage.links)} links, {len(linkage.tree_joints())} tree joints, "
        f"{len(linkage.closure_joints())} closures (dashed); virtual links are white"
    )
    axes.set_axis_off()
    figure.savefig(path, dpi=120)


def draw_hierarchy(linkage: Linkage, path: str | Path, decomposition: Decomposition) -> None:
    """Draw the sublinkages as nested boxes with disposition, SCC and round."""
    children: dict[str | None, list[str]] = {}
    for s in linkage.sublinkages.values():
        children.setdefault(s.parent, []).append(s.name)
    links: dict[str, list[str]] = {}
    for l in linkage.links.values():
        links.setdefault(l.sublinkage, []).append(l.name)
    width: dict[str, float] = {}
    depth: dict[str, int] = {}
    order: list[str] = [linkage.top]
    for name in order:
        order += children.get(name, [])
    for name in reversed(order):
        kids = children.get(name, [])
        width[name] = max(3.0, sum(width[k] for k in kids) + 0.3 * (len(kids) + 1))
        depth[name] = 1 + max((depth[k] for k in kids), default=0)
    figure = Figure(
        figsize=(min(40.0, 2 + 0.8 * width[linkage.top]), 1.5 + 0.9 * depth[linkage.top]),
        layout="constrained",
    )
    axes = figure.add_subplot()
    stack: list[tuple[str, float, float]] = [(linkage.top, 0.0, 0.0)]
    while stack:
        name, x, y = stack.pop()
        s = linkage.sublinkages[name]
        tone = _DISPOSITION[s.disposition] if s.parent is not None else "black"
        height = 0.9 * depth[name]
        axes.add_patch(
            FancyBboxPatch(
                (x, y), width[name], height, boxstyle="round,pad=0,rounding_size=0.15",
                facecolor=tone, edgecolor=tone, alpha=1.0, linewidth=1.5, fill=False,
            )
        )  # fmt: skip
        kind = "top level" if s.parent is None else s.disposition
        axes.text(
            x + 0.1, y + height - 0.12,
            f"{name} ({kind})\nSCC {decomposition.scc[name]}, round {decomposition.rounds[name]}, "
            f"{len(links.get(name, []))} links",
            fontsize=7, va="top", color=tone,
        )  # fmt: skip
        at = x + 0.3
        for k in children.get(name, []):
            stack.append((k, at, y + 0.1))
            at += width[k] + 0.3
    axes.set_xlim(-0.2, width[linkage.top] + 0.2)
    axes.set_ylim(-0.2, 0.9 * depth[linkage.top] + 0.2)
    axes.set_axis_off()
    figure.savefig(path, dpi=110)


def draw_posture(
    linkage: Linkage, path: str | Path, *, axes_shown: str = "xz", ghosts: tuple[Linkage, ...] = ()
) -> None:
    """Draw the posture as bars between joint origins: real thick, virtual thin.

    Args:
        linkage: Its values are drawn.
        path: Picture file.
        axes_shown: Which two axes of the root frame.
        ghosts: Other postures of the same linkage, in grey.
    """
    i, k = ("xyz".index(c) for c in axes_shown)
    figure = Figure(figsize=(6, 9), layout="constrained")
    axes = figure.add_subplot()
    for shown in (*ghosts, linkage):
        ghost = shown is not linkage
        poses = shown.link_poses()
        ends: dict[str, list[np.ndarray[Any, Any]]] = {}
        for j in shown.joints.values():
            for link, T in ((j.parent, j.origin), (j.child, j.child_origin)):
                ends.setdefault(link, []).append((poses[link] @ T)[:3, 3])
        for name, points in ends.items():
            virtual = shown.links[name].virtual
            if ghost and virtual:
                continue
            P = np.array(points)
            P = P[np.lexsort((P[:, i], P[:, k]))]
            axes.plot(
                P[:, i], P[:, k], color="0.8" if ghost else ("#7570b3" if virtual else "black"),
                linewidth=1.0 if virtual else 2.5, alpha=0.6 if virtual else 1.0,
                marker=None if virtual or ghost else "o", markersize=3,
            )  # fmt: skip
        for g in () if ghost else shown.goals.values():
            p = (poses[g.reference] @ g.target)[:3, 3]
            axes.plot(p[i], p[k], "x", color="#d95f02", markersize=10, markeredgewidth=2)
    axes.set_aspect("equal")
    axes.set_xlabel(f"{axes_shown[0]} [m]")
    axes.set_ylabel(f"{axes_shown[1]} [m]")
    axes.set_title(f"{linkage.name}: real links black, virtual links violet, goals x")
    figure.savefig(path, dpi=110)


def _by_depth(linkage: Linkage) -> dict[str, tuple[float, float]]:
    """Links in rows by their distance from the root."""
    depth = {linkage.root: 0}
    for j in linkage.tree_order():
        depth[j.child] = depth[j.parent] + 1
    seen: dict[int, int] = {}
    place = {}
    for name, d in depth.items():
        place[name] = (float(seen.get(d, 0)), -float(d))
        seen[d] = seen.get(d, 0) + 1
    return place
