"""Every library installs by pip and imports no ROS; dependencies and the version stand once."""

import importlib
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = sorted([*ROOT.glob("src/**/package.xml"), ROOT / "launch" / "package.xml"])
PACKAGES = sorted(path.parent.name for path in ROOT.glob("src/*/setup.py"))
LIBRARIES = [
    "kin_core",
    "kin_solvers",
    "ft_controller",
    "gpu_kinematics",
    "continuum_ik",
    "hier_ik",
]

#: Modules of a library's package that belong to its node.
ROOMS = r"(.*_)?(node|conversions|doors|markers|parameters|publisher|server)|drawing"

#: Loaded by what needs them, not by whoever imports a library.
HEAVY = {"matplotlib", "networkx", "distributed", "mujoco", "cupy", "pytest"}

WALK = """
import importlib, re, sys

class Block:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ("rclpy", "kin_ros") or top.endswith(("_msgs", "_interfaces")):
            raise ImportError(f"{name} is ROS")

site, library, rooms, heavy = sys.argv[1:]
sys.meta_path.insert(0, Block())
sys.path.insert(0, site)
package = importlib.import_module(library)
assert package.__file__.startswith(site), package.__file__
loaded = set(heavy.split()) & set(sys.modules)
assert not loaded, f"import {library} loads {loaded}"

from pathlib import Path
for path in sorted(Path(site, library).rglob("*.py")):
    parts = path.relative_to(site).with_suffix("").parts
    if not re.fullmatch(rooms, parts[-1]) and parts[-1] != "__main__":
        print(importlib.import_module(".".join(parts).removesuffix(".__init__")).__name__)
"""


def requirements(package, extra=""):
    """What a package asks pip for, without versions; what one of its extras adds."""
    for line in metadata.requires(package) or []:
        name, _, condition = line.partition(";")
        if (f'"{extra}"' in condition) if extra else not condition:
            yield re.split(r"[=<>\[ ]", name)[0].lower()


def named(file, *headings):
    """The packages that a requirements file lists, all or those below some of its headings."""
    text = (ROOT / file).read_text()
    parts = re.split(r"^# (.*)$", text, flags=re.MULTILINE)
    bodies = zip(["", *parts[1::2]], parts[::2], strict=True)
    chosen = "".join(body for heading, body in bodies if not headings or heading in headings)
    return {re.split(r"[=<>\[ ]", line)[0].lower() for line in chosen.split() if line[0].isalnum()}


def test_one_version():
    version = (ROOT / "VERSION").read_text().strip()
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in MANIFESTS
        if (found := ElementTree.parse(path).getroot().findtext("version")) != version
    }
    assert not wrong, (
        "put VERSION into every package.xml: sed -i"
        ' "s|<version>.*<|<version>$(cat VERSION)<|" launch/package.xml src/*/package.xml'
    )
    for package in PACKAGES:
        assert metadata.version(package) == version
    for library in LIBRARIES:
        assert importlib.import_module(library).__version__ == version
    citation = (ROOT / "CITATION.cff").read_text()  # it need not name one
    assert set(re.findall(r'^version: "?([0-9.]+)', citation, re.MULTILINE)) <= {version}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_xml_declares_what_pip_installs(package):
    """The one setup.py reads it; the extra "test" is also what makes ``colcon test`` use pytest."""
    assert (ROOT / "src" / package / "setup.py").samefile(ROOT / "src" / "kin_core" / "setup.py")
    assert "pytest" in requirements(package, "test")


def test_the_locks_install_what_the_packages_need():
    needed = {p: set(requirements(p)) - set(PACKAGES) for p in PACKAGES}
    of_tests = needed.pop("kin_testing").union(*(requirements(p, "test") for p in PACKAGES))
    listed = named("requirements.in", "Mathematics", "Data, processes, pictures")
    assert listed == {"dask"}.union(*needed.values())  # dask is an extra of kin_solvers
    assert of_tests - {"pillow"} <= named("requirements-dev.in") | listed


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The libraries, installed by pip from a copy of their folders, without what they need."""
    folder = tmp_path_factory.mktemp("pip")
    for library in LIBRARIES:
        shutil.copytree(
            ROOT / "src" / library,
            folder / library,
            ignore=shutil.ignore_patterns("test", "build", "__pycache__", "*.egg-info"),
        )
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site"]
        + [folder / library for library in LIBRARIES],
        check=True,
        timeout=300,
    )
    return folder / "site"


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_module_imports_without_ros(library, site):
    done = subprocess.run(
        [sys.executable, "-I", "-c", WALK, site, library, ROOMS, " ".join(HEAVY)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    sources = (ROOT / "src" / library / library).rglob("*.py")
    modules = {path.stem for path in sources if not re.fullmatch(ROOMS, path.stem)}
    walked = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert walked >= modules - {"__init__", "__main__"}
