from glob import glob

from setuptools import find_packages, setup

PACKAGE = "hier_ik"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    package_data={PACKAGE: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/examples", glob("examples/*.yaml") + glob("examples/*.urdf")),
    ],
    zip_safe=False,
    maintainer="kinstack maintainers",
    maintainer_email="maintainers@kinstack.dev",
    description="Hierarchical decomposition, kinematic abstraction and IK of large linkages.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # tells colcon which test runner to use
    entry_points={"console_scripts": ["hier_ik_node = kin_ros.entry:hier_ik.node.main"]},
)
