"""The map of the house in the README shows the tree: every folder, and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Made by builds and benchmarks, not part of the house.
MADE = {"__pycache__", "bench-results", "build", "install", "log", "site"}
MADE |= {"build-native", "install-native"}


def folders(place):
    found = [path for path in (ROOT / place).iterdir() if path.is_dir()]
    named = {path.relative_to(ROOT).as_posix() for path in found if path.name not in MADE}
    return {name for name in named if not Path(name).name.startswith(".")}


def drawn():
    """What the map names: the words before the explanation, which stands after two spaces."""
    text = (ROOT / "README.md").read_text()
    section = text.split("## How the house is laid out", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^    (\S.*)$", section, re.MULTILINE)
    return [name for row in rows for name in re.split(r" {2,}", row)[0].split(", ")]


def test_every_folder_is_in_the_map_once_and_nothing_else():
    names = drawn()
    assert len(names) == len(set(names))
    assert set(names) == (folders(".") - {"src"}) | folders("src") | {"kinstack"}
    assert (ROOT / "kinstack").is_file()
