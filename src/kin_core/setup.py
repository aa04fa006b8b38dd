from setuptools import find_packages, setup

PACKAGE = "kin_core"

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
    description="What the kinstack libraries share; imports no ROS.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # tells colcon which test runner to use
    entry_points={"console_scripts": []},
)
