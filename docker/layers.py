"""Sorts the sources by what is made from them, so that an edit of one file rebuilds little.

Below the folder that is named second it writes

- ``interfaces``: what the packages of messages are built from, which takes longest;
- ``build``: what colcon builds from, and for each Python package an empty ``__init__.py``: modules
  are linked into the install tree, so their text does not matter yet;
- ``kernels/PACKAGE``: what ``PACKAGE.warm_up`` imports, directly or not, and so all that the
  package's compiled kernels can depend on, installed by links as colcon does: numba remembers
  through which folder a kernel was imported;
- ``all``: everything.
"""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src/kin_tools/kin_tools"))

from setup_workspace import build_inputs  # noqa: E402 (the line above leads to it)


def packages(root: Path) -> list[Path]:
    """Folders of the ROS packages."""
    return sorted(path.parent for path in root.rglob("package.xml"))


def modules(root: Path) -> dict[str, Path]:
    """Files of all Python modules of the workspace by their full names."""
    found = {}
    for folder in packages(root / "src"):
        for path in folder.glob(f"{folder.name}/**/*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path) -> Iterator[str]:
    """Full names of what a module imports; some may be names in a module."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def closure(start: str, known: dict[str, Path]) -> set[str]:
    """Modules of the workspace that a module imports, directly or not, with their packages."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        parents = [name.rsplit(".", k)[0] for k in range(name.count(".") + 1)]
        for each in parents:
            if each in known and each not in found:
                found.add(each)
                waiting += imports(each, known[each])
    return found


def copy(files: Iterable[Path], root: Path, target: Path) -> None:
    """Copy files to the same places below another folder; links stay links."""
    for path in files:
        there = target / path.relative_to(root)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there, follow_symlinks=False)


def _add_metadata(folder: Path, manifest: Path) -> None:
    """Say which version of a package is installed in a folder; packages ask for their own."""
    described = ElementTree.parse(manifest).getroot()  # noqa: S314 (our own file)
    name, version = described.findtext("name"), described.findtext("version")
    file = folder / f"{name}.dist-info" / "METADATA"
    file.parent.mkdir()
    file.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def main(root: Path, target: Path) -> None:
    """Sort the sources in ``root`` into folders below ``target``."""
    known = modules(root)
    for folder in packages(root):
        inputs = build_inputs(folder)
        copy(inputs, root, target / "build")
        if folder.is_relative_to(root / "src") and not (folder / "setup.py").exists():
            copy(inputs, root, target / "interfaces")
    for layer in ("interfaces", "build"):
        copy(root.rglob("COLCON_IGNORE"), root, target / layer)
    for path in known.values():
        if path.name == "__init__.py":
            empty = target / "build" / path.relative_to(root)
            empty.parent.mkdir(parents=True, exist_ok=True)
            empty.touch()
    for name in known:
        package, _, module = name.partition(".")
        if module == "warm_up":
            found = closure(name, known)
            layer = target / "kernels" / package
            copy((known[each] for each in found), root, layer)
            for each in {name.split(".")[0] for name in found}:
                (layer / "build" / each).mkdir(parents=True)
                (layer / "build" / each / each).symlink_to(f"../../src/{each}/{each}")
                _add_metadata(layer / "build" / each, root / "src" / each / "package.xml")
    shutil.copytree(root, target / "all", symlinks=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
