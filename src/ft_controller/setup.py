from setuptools import find_packages, setup

PACKAGE = "ft_controller"

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
    description="A computed-torque controller that survives dead and lying processors.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # tells colcon which test runner to use
    entry_points={
        "console_scripts": [
            "ft_controller_node = kin_ros.entry:ft_controller.node.main",
            "arm_simulator_node = kin_ros.entry:ft_controller.simulator_node.main",
        ]
    },
)
