"""The version of a package of this workspace, whether it is installed or only on the path."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

__all__ = ["version_of"]


def version_of(package: str) -> str:
    """Return the version of an imported package, without metadata that of its package.xml."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        manifest = Path(str(sys.modules[package].__file__)).parents[1] / "package.xml"
        text = manifest.read_text(encoding="utf-8") if manifest.is_file() else ""
        found = re.search(r"<version>\s*(\S+?)\s*</version>", text)
        return found[1] if found else "unknown"
