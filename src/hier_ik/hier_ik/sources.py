"""Linkages from any source: a text, a file, a file below a folder, or by name."""

from __future__ import annotations

from pathlib import Path

from hier_ik.files import load_linkage
from hier_ik.linkage import Linkage
from hier_ik.mjcf import load_mjcf_linkage
from hier_ik.tower import tower
from hier_ik.urdf import load_urdf_linkage
from kin_core import checks
from kin_core.errors import InvalidInput

__all__ = [
    "ENDINGS",
    "TOWERS",
    "linkage_from",
    "linkage_from_file",
    "linkage_from_folder",
    "named_linkage",
]

#: Linkages that are built in.
TOWERS = ("tower", "flat_tower")
#: What files of an ending hold.
ENDINGS = {".yaml": "yaml", ".yml": "yaml", ".urdf": "urdf", ".xml": "mjcf"}


def named_linkage(name: str, blocks: int, folder: str = "") -> Linkage:
    """A tower by the name of its kind, or a robot by that of its URDF in a folder."""
    robots = sorted(file.stem for file in Path(folder).glob("*.urdf")) if folder else []
    checks.one_of("preset", name, [*TOWERS, *robots])
    if name in TOWERS:
        return tower(blocks, flat=name == "flat_tower")
    return linkage_from_file(Path(folder, f"{name}.urdf"))


def linkage_from(kind: str, source: str | Path, closures: str | Path | None = None) -> Linkage:
    """A linkage from a text or file.

    Args:
        kind: yaml, urdf or mjcf.
        source: Text, or a Path to a file.
        closures: Sidecar of a URDF, likewise.
    """
    if kind == "urdf":
        return load_urdf_linkage(source, closures or None)
    return load_linkage(source) if kind == "yaml" else load_mjcf_linkage(source)


def linkage_from_file(file: Path, closures: str | Path | None = None) -> Linkage:
    """A linkage from a YAML, URDF or MJCF file, by its ending; ``closures`` as in linkage_from().

    Without closures those of NAME.closures.yaml beside NAME.urdf count, if there is such a file.

    Raises:
        InvalidInput: No such file, another ending, or what it holds is refused.
    """
    if not file.is_file():
        raise InvalidInput("path", f"there is no file {file.name!r}")
    if file.suffix not in ENDINGS:
        raise InvalidInput("path", f"{file.name!r}: only .yaml, .urdf and .xml are read")
    beside = file.with_suffix(".closures.yaml")
    if not closures and beside.is_file():
        closures = beside
    return linkage_from(ENDINGS[file.suffix], file, closures)


def linkage_from_folder(folder: str, path: str, closures: str = "") -> Linkage:
    """A linkage from a file below a folder; paths that lead out of it are refused."""
    if not folder:
        raise InvalidInput("path", "reading files is off; set the parameter linkage_folder")
    base = Path(folder).resolve()
    file = (base / path).resolve()
    if not file.is_relative_to(base):
        raise InvalidInput("path", "must stay inside the linkage folder")
    return linkage_from_file(file, closures)
