"""Installs a package, by pip or colcon: package.xml says what it is and needs, setup.cfg the rest.

Every package of the workspace links to this one file. pip gets what the library needs: the Python
packages and ``LIBRARIES``. What else package.xml names is ROS, which only the nodes need.
"""

from collections.abc import Iterator
from glob import glob
from pathlib import Path
from xml.etree import ElementTree

from setuptools import find_packages, setup

#: Packages of this workspace that a library may need.
LIBRARIES = ("kin_core",)
#: rosdep keys whose name on the index is not what follows "python3-".
INDEX_NAMES = {"yaml": "PyYAML", "pil": "pillow"}

manifest = ElementTree.parse("package.xml").getroot()  # noqa: S314 (our own file)
name, version = manifest.findtext("name"), manifest.findtext("version")


def needed(tag: str) -> Iterator[str]:
    """What package.xml lists under a tag, as pip names it."""
    for key in (entry.text for entry in manifest.findall(tag)):
        python = key.removeprefix("python3-")
        if python != key:
            yield INDEX_NAMES.get(python, python)
        elif key in LIBRARIES:
            yield f"{key}=={version}"


without_key = [entry.text for entry in manifest.findall("export/pip_depend")]  # of rosdep
extras = {extra.get("name"): [extra.text] for extra in manifest.findall("export/pip_extra")}
setup(
    name=name,
    version=version,
    description=manifest.findtext("description"),
    maintainer=manifest.findtext("maintainer"),
    maintainer_email=manifest.find("maintainer").get("email"),
    license=manifest.findtext("license"),
    python_requires=">=3.11",
    install_requires=[*needed("exec_depend"), *without_key],
    extras_require={"test": list(needed("test_depend")), **extras},
    packages=find_packages(exclude=["test"]),
    package_data={"": ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{name}"]),
        (f"share/{name}", ["package.xml"]),
        *([(f"share/{name}/examples", glob("examples/*"))] if Path("examples").is_dir() else []),
    ],
    zip_safe=False,
)
