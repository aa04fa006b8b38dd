"""Takes out of a built workspace what only its build needs, and puts bytecode in."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

#: Packages of the lock that build others and that nothing imports at run time.
BUILDERS = re.compile(
    r"(cmake|colcon_.*|pip|wheel|setuptools|empy|catkin_pkg|docutils|argcomplete|distlib|notify2"
    r"|pytest.*|coverage|pluggy|iniconfig"
    r"|ros_(jazzy_)?(ament_cmake.*|gmock.*|gtest.*|.*cmake_module))\Z"
)
#: Folders of packages that are there for their own tests.
TESTS = {"test", "tests", "baseline_images"}
#: The one module of such a folder that something imports: numpy.testing does.
KEPT = "numpy/_core/tests/_natype.py"


def remove_builders(site: Path) -> None:
    """Remove the packages that only a build needs, file by file as they were installed."""
    for folder in sorted(site.glob("*.dist-info")):
        name = folder.name.removesuffix(".dist-info").rpartition("-")[0].lower().replace("-", "_")
        if not BUILDERS.match(name):
            continue
        for line in (folder / "RECORD").read_text().splitlines():
            path = (site / line.rsplit(",", 2)[0].strip('"')).resolve()
            if path.is_relative_to(site.parents[2]) and path.is_file():
                path.unlink()
                # An empty folder could be imported.
                while not any(path.parent.iterdir()):
                    path = path.parent
                    path.rmdir()
        shutil.rmtree(folder, ignore_errors=True)


def remove_unused(venv: Path, site: Path) -> None:
    """Remove headers, CMake files, static libraries and the tests of packages."""
    for name in ("include", "src", "tools"):
        shutil.rmtree(venv / name, ignore_errors=True)
    for folder in [*venv.glob("share/*/cmake"), *site.rglob("include")]:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in [path for path in site.rglob("*") if path.is_dir() and path.name in TESTS]:
        kept = site / KEPT
        if kept.parent != folder:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            for path in [path for path in folder.rglob("*") if path.is_file() and path != kept]:
                path.unlink()
    for pattern in ("*.a", "*.pyi", "*.pyx", "*.pxd", "*.hpp", "*.h", "*.c", "*.cpp", "*.cu"):
        for path in venv.rglob(pattern):
            path.unlink()


def loads(library: bytes) -> bool:
    """Whether the loader takes a library: ``strip`` misplaces segments of some patched ones."""
    (table,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    for start in range(table, table + size * count, size):
        (kind,) = struct.unpack_from("<I", library, start)
        offset, address = struct.unpack_from("<QQ", library, start + 8)
        if kind == 1 and (address - offset) % 4096:
            return False
    return True


def strip(venv: Path) -> None:
    """Take debugging symbols out of the libraries."""
    for path in [*venv.rglob("*.so"), *venv.rglob("*.so.*")]:
        if path.is_symlink() or not path.is_file():
            continue
        draft = path.with_name(path.name + ".stripped")
        done = subprocess.run(
            ["strip", "--strip-unneeded", "-o", str(draft), str(path)],
            capture_output=True,
            check=False,
        )
        smaller = done.returncode == 0 and draft.stat().st_size < path.stat().st_size
        if smaller and loads(draft.read_bytes()):
            draft.chmod(path.stat().st_mode)
            draft.replace(path)
        draft.unlink(missing_ok=True)


def settle(install: Path, build: Path) -> None:
    """Put files of compiled packages where the install tree links to them; drop their builds."""
    for path in install.rglob("*"):
        if path.is_symlink() and path.resolve().is_relative_to(build):
            target = path.resolve()
            if target.is_file():
                path.unlink()
                shutil.copy2(target, path)
    for folder in build.iterdir():
        if (folder / "CMakeCache.txt").exists():
            shutil.rmtree(folder)
    for folder in install.glob("*/include"):
        shutil.rmtree(folder, ignore_errors=True)


def main(root: Path) -> None:
    """Make the workspace in ``root`` small."""
    suffix = "-native" if (root / ".venv-native").exists() else ""
    venv, install, build = (root / f"{name}{suffix}" for name in (".venv", "install", "build"))
    (site,) = venv.glob("lib/python3.*/site-packages")
    settle(install, build)
    remove_builders(site)
    remove_unused(venv, site)
    if shutil.which("strip"):
        strip(venv)
    shutil.rmtree(root / ".cache")
    checked = PycInvalidationMode.UNCHECKED_HASH
    for folder in (site, install, *([root / "src"] if suffix else [])):
        # A package may hold files for other Pythons, which do not compile.
        compileall.compile_dir(folder, quiet=2, workers=os.cpu_count(), invalidation_mode=checked)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
