"""Linkages from texts, files and folders."""

from __future__ import annotations

import pytest

from hier_ik import dump_linkage, dump_urdf, tower
from hier_ik.sources import (
    linkage_from,
    linkage_from_file,
    linkage_from_folder,
    named_linkage,
)
from kin_core.errors import InvalidInput


def test_a_text_of_each_kind():
    assert linkage_from("yaml", dump_linkage(tower(1))).name == "tower1"
    assert linkage_from("urdf", dump_urdf(tower(1))).links
    assert len(named_linkage("flat_tower", 2).sublinkages) == 1
    with pytest.raises(InvalidInput, match="preset"):
        named_linkage("castle", 2)


def test_files_are_read_by_their_ending_and_only_below_the_folder(tmp_path):
    inside = tmp_path / "linkages"
    inside.mkdir()
    (inside / "a.yaml").write_text(dump_linkage(tower(1)))
    (inside / "a.urdf").write_text(dump_urdf(tower(1)))
    (inside / "a.txt").write_text("nothing")
    (tmp_path / "secret.yaml").write_text(dump_linkage(tower(1)))
    assert linkage_from_file(inside / "a.urdf").links
    assert linkage_from_folder(str(inside), "a.yaml").name == "tower1"
    for folder, path, sentence in (
        (str(inside), "../secret.yaml", "must stay inside"),
        (str(inside), str(tmp_path / "secret.yaml"), "must stay inside"),
        (str(inside), "b.yaml", "there is no file"),
        (str(inside), "a.txt", "only .yaml, .urdf and .xml"),
        ("", "a.yaml", "reading files is off"),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            linkage_from_folder(folder, path)


def test_robots_of_a_folder_by_name_with_their_loops(tmp_path):
    (tmp_path / "a.urdf").write_text(dump_urdf(tower(1), constraints=False))
    assert not named_linkage("a", 1, str(tmp_path)).closure_joints()
    loops = "closures: [{name: c, type: fixed, link_a: P0, link_b: P1}]"
    (tmp_path / "a.closures.yaml").write_text(loops)
    assert [j.name for j in named_linkage("a", 1, str(tmp_path)).closure_joints()] == ["c"]
    for name in ("b", "../a", "/etc/passwd", ""):
        with pytest.raises(InvalidInput, match="preset"):
            named_linkage(name, 1, str(tmp_path))
