"""The standard interfaces are the ones that a ROS installation has: their type hashes agree."""

import json
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from catkin_pkg.packages import find_packages

ROOT = Path(__file__).resolve().parents[3]

#: Of the releases in ROS 2 Jazzy.
PUBLISHED = {
    "tf2_msgs/msg/TFMessage": "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
    "control_msgs/action/FollowJointTrajectory": (
        "738ebcb7a2d7cfa42f9f1001cc99ce3a4383d1cfe508015d9be8485e4b1c66f6"
    ),
    "moveit_msgs/srv/GetPositionIK": (
        "054ed6f6f71a09b01b5246c5d80beb4dacc6f444f58df039849c76292933e9e3"
    ),
    "moveit_msgs/srv/GetPositionFK": (
        "2f16ec361a135d84b85a29385abeb9eeb025e39c09038bd6b2826645edc7edad"
    ),
    "moveit_msgs/srv/GetCartesianPath": (
        "b19f501df5d378141d918199894c3ad24533e76021a880b15dc5d62fec8d7b1a"
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_type_hash_is_the_published_one(name):
    """As the build computed it, from our definitions or from those of a ROS installation."""
    package, kind, title = name.split("/")
    described = Path(get_package_share_directory(package), kind, f"{title}.json").read_text()
    hashes = {e["type_name"]: e["hash_string"] for e in json.loads(described)["type_hashes"]}
    assert hashes[name] == f"RIHS01_{PUBLISHED[name]}"


def test_every_interface_is_part_of_a_published_type():
    """No file is here whose hash is compared with nothing."""
    compared = set()
    for name in PUBLISHED:
        package, kind, title = name.split("/")
        described = Path(get_package_share_directory(package), kind, f"{title}.json").read_text()
        compared |= {entry["type_name"] for entry in json.loads(described)["type_hashes"]}
    files = [
        path for path in ROOT.glob("src/interop/*/*/*.*") if path.suffix[1:] == path.parent.name
    ]
    ours = {f"{p.parents[1].name}/{p.parent.name}/{p.stem}" for p in files}
    assert len(ours) > 15
    assert ours <= compared


def test_a_workspace_of_ros_passes_them_by():
    """Beside a ROS installation neither colcon nor rosdep sees them: they would hide its own."""
    found = {package.name for package in find_packages(str(ROOT / "src")).values()}
    ours = {path.parent.name for path in ROOT.glob("src/interop/*/package.xml")}
    assert "kin_interfaces" in found
    assert not found & ours
