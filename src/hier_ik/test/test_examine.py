"""What is said of a linkage, against mechanisms whose mobility is known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, examine, frame, tower
from hier_ik.command import main

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import stewart
from small_mechanisms import five_bar, four_bar
from test_assembly import four_bars

ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"


@pytest.mark.parametrize(
    ("make", "mobility", "rows", "rank"),
    [
        (lambda: four_bar(np.random.default_rng(1)), 1, 5, 2),
        (lambda: five_bar(np.random.default_rng(1)), 2, 5, 2),
        (lambda: four_bars(1.2, 1.0, 0.9, 0.8), 1, 5, 2),
        (lambda: stewart()[0], 6, 15, 15),
        (lambda: tower(1), 2, 30, 12),
    ],
)
def test_mobility_is_that_of_the_textbook(make, mobility, rows, rank):
    linkage = make()
    for name in list(linkage.goals):
        linkage.remove_goal(name)
    found = examine(linkage)
    assert found.assembly.closed
    assert found.mobility == mobility
    if "tower" not in linkage.name:
        assert sum(s.rows for s in found.loops) == rows
    assert sum(s.rank for s in found.loops) == rank
    assert not found.singular


def test_a_flat_parallelogram_is_a_singular_start():
    """Where all bars lie in one line its two branches meet, and a row is lost."""
    linkage = Linkage("parallelogram")
    for name in ("g", "a", "b", "c"):
        linkage.add_link(name)
    linkage.add_joint("1", "revolute", "g", "a", closure=False)
    linkage.add_joint("2", "revolute", "a", "c", xyz=(0.5, 0, 0), closure=False)
    linkage.add_joint("3", "revolute", "g", "b", xyz=(1, 0, 0), closure=False)
    linkage.add_joint(
        "4", "revolute", "c", "b", xyz=(1, 0, 0), child_origin=frame((0.5, 0, 0)), closure=True
    )  # fmt: skip
    linkage.set_actuated(["1"])
    found = examine(linkage)
    assert found.mobility == 1
    (loops,) = found.singular
    assert (loops.rank_here, loops.rank) == (1, 2)
    assert not found.good
    assert any(s.startswith("singular start: 4") for s in found.sentences())
    assert "do not determine" in found.motors


def test_a_closure_that_others_hold_is_named_redundant():
    linkage = four_bars(1.2, 1.0, 0.9, 0.8, **{"1": 1.0})
    assert not examine(linkage).loops[0].redundant
    linkage.add_joint("again", "planar", "c", "g", closure=True)  # the plane holds anyway
    (loops,) = examine(linkage).loops
    assert loops.redundant == ("again",)
    assert loops.rows - loops.rank == 6
    assert "redundant closures" in "\n".join(examine(linkage).sentences())


def test_what_cannot_be_closed_is_said_and_nothing_more():
    found = examine(four_bars(3.0, 1.0, 0.5, 0.5))
    said = list(found.sentences())
    assert not found.good
    assert said[-1].startswith("open: '4' by 1")


@pytest.mark.parametrize(("name", "mobility", "passive"), [("biped", 12, 16), ("head", 6, 15)])
def test_the_command_says_draws_and_writes(tmp_path, capsys, name, mobility, passive):
    picture, graph = tmp_path / "a.png", tmp_path / "b.svg"
    again = tmp_path / "again.yaml"
    arguments = [str(ROBOTS / f"{name}.urdf"), "--plot", str(picture), "--write", str(again)]
    assert main([*arguments, "--graph", str(graph)]) == 0
    said = capsys.readouterr().out
    assert f"mobility {mobility}: " in said
    assert f"the motors determine the {passive} passive freedoms" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in graph.read_bytes()[:2000]
    assert main([str(again)]) == 0
    assert f"mobility {mobility}: " in capsys.readouterr().out
    assert main([str(again), "--actuated", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err


def test_the_command_finds_all_assemblies_and_refuses_in_one_line(tmp_path, capsys):
    from hier_ik import dump_linkage

    linkage = four_bars(1.2, 1.0, 0.9, 0.8, **{"1": 1.0})
    linkage.set_actuated(["1"])
    file = tmp_path / "four.yaml"
    file.write_text(dump_linkage(linkage))
    assert main([str(file), "--all"]) == 0
    assert "4: 2 assemblies" in capsys.readouterr().out
    for bad in (tmp_path / "none.urdf", tmp_path / "four.txt"):
        assert main([str(bad)]) == 2
        assert capsys.readouterr().err.startswith("linkage: ")
    assert main([str(file), "--write", str(tmp_path / "a.txt")]) == 2
