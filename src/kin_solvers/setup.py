from setuptools import find_packages, setup

PACKAGE = "kin_solvers"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    package_data={PACKAGE: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    zip_safe=False,
    maintainer="kinstack maintainers",
    maintainer_email="maintainers@kinstack.dev",
    description="Cuik: every solution of a closed mechanism, with certificates.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # tells colcon which test runner to use
    entry_points={
        "console_scripts": [
            "kin_solvers_node = kin_ros.entry:kin_solvers.node.main",
            "kin_solvers = kin_solvers.command:main",
        ]
    },
)
