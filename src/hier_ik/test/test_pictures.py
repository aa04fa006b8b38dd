"""Pictures: what a linkage holds is drawn, each in its own way."""

from __future__ import annotations

import re

import pytest

from hier_ik import decompose, tower
from hier_ik.pictures import draw_graph, draw_hierarchy, draw_posture


def drawn(path):
    """The text of an SVG picture, as matplotlib writes it into comments beside the glyphs."""
    content = path.read_text()
    assert content.lstrip().startswith("<?xml")
    return content, set(re.findall(r"<!-- (.*?) -->", content))


@pytest.mark.parametrize("coloured", [False, True])
def test_the_graph_names_every_link_and_dashes_closures(tmp_path, coloured):
    linkage = tower(1)
    path = tmp_path / "graph.svg"
    draw_graph(linkage, path, decompose(linkage) if coloured else None)
    content, words = drawn(path)
    assert set(linkage.links) <= words
    assert content.count("stroke-dasharray") >= len(linkage.closure_joints())
    assert len(set(re.findall(r"#[0-9a-f]{6}", content))) > (3 if coloured else 1)


def test_the_hierarchy_has_a_box_for_each_sublinkage(tmp_path):
    linkage = tower(2)
    path = tmp_path / "hierarchy.svg"
    draw_hierarchy(linkage, path, decompose(linkage))
    _, words = drawn(path)
    for s in linkage.sublinkages.values():
        kind = "top level" if s.parent is None else s.disposition
        assert any(w.startswith(f"{s.name} ({kind})") for w in words)


def test_a_posture_is_drawn_with_ghosts_behind_it(tmp_path):
    linkage = tower(1)
    bent = linkage.copy()
    bent.values["C1.tilt"] = bent.values["C1.tilt"] + 0.1
    draw_posture(linkage, tmp_path / "one.svg")
    draw_posture(linkage, tmp_path / "two.svg", ghosts=(bent,))
    alone, ghosted = drawn(tmp_path / "one.svg")[0], drawn(tmp_path / "two.svg")[0]
    assert "#cccccc" not in alone
    assert "#cccccc" in ghosted
