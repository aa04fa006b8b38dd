"""A package knows its version with and without installed metadata."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import kin_core

SOURCE = Path(__file__).resolve().parents[1]
VERSION = (SOURCE.parents[1] / "VERSION").read_text().strip()


def said(folder):
    """What a package on the path, of which no metadata is installed, says of itself."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    program = "import kin_core; print(kin_core.__version__, kin_core.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    version, file = done.stdout.split()
    assert Path(file).is_relative_to(folder)
    return version


def test_with_metadata():
    assert kin_core.__version__ == VERSION


def test_without_metadata_the_manifest_tells(tmp_path):
    shutil.copytree(SOURCE / "kin_core", tmp_path / "kin_core")
    assert said(tmp_path) == "unknown"
    manifest = (SOURCE / "package.xml").read_text().replace(VERSION, "7.8.9")
    (tmp_path / "package.xml").write_text(manifest)
    assert said(tmp_path) == "7.8.9"
