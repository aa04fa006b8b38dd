"""Prints the bill of materials of an image (CycloneDX 1.5): the packages of the lock and of Debian.

Hashes are those of the lock: of every file of the index that pip would have accepted.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any


def locked(lock: str) -> dict[tuple[str, str], list[str]]:
    """SHA-256 hashes by name and version, from the text of a lock file.

    A lock may have several versions of a package, each for some Pythons.
    """
    found: dict[tuple[str, str], list[str]] = {}
    hashes: list[str] = []
    for line in lock.splitlines():
        pin = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^\s;\\]+)", line)
        if pin:
            hashes = found.setdefault((normal(pin[1]), pin[2]), [])
        hashes.extend(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
    return found


def normal(name: str) -> str:
    """The name of a package as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_packages(root: Path) -> Iterator[dict[str, Any]]:
    """The packages of the environment, with the hashes of the lock."""
    lock = locked((root / "requirements.lock").read_text())
    sites = [str(path) for path in root.glob(".venv*/lib/python3.*/site-packages")]
    for found in distributions(path=sites):
        if found.read_text("WHEEL") is None:  # a part of another package, as those of ROS have
            continue
        name, version = normal(found.metadata["Name"]), found.version
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": [
                {"alg": "SHA-256", "content": each} for each in lock.get((name, version), [])
            ],
        }


def debian_packages() -> Iterator[dict[str, Any]]:
    """The packages of the distribution."""
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\\n"],
        capture_output=True,
        text=True,
        check=True,
    )
    release = Path("/etc/os-release").read_text()
    system = dict(re.findall(r'^(\w+)="?(.*?)"?$', release, re.MULTILINE))["ID"]
    for line in shown.stdout.splitlines():
        name, version, architecture = line.split()
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:deb/{system}/{name}@{version}?arch={architecture}",
        }


def main(root: Path) -> None:
    """Print the bill of materials of the workspace in ``root`` and of the system around it."""
    parts = [*python_packages(root), *debian_packages()]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "kinstack"}},
        "components": sorted(parts, key=lambda part: part["purl"]),
    }
    json.dump(document, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
