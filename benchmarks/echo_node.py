"""An empty node: answers each service and topic at once with what was made before.

What a round trip through it takes is what ROS takes; what a real node adds is its own.

    python -m benchmarks.echo_node FOLDER

FOLDER holds index.json: "services", a list of [name, type, file with the serialised answer], and
"topics", a list of [name, type, name of the answer, type of the answer, file].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.serialization import deserialize_message

from kin_ros.messages import find_type
from kin_ros.qos import COMMAND, STATE


def main(folder: Path) -> None:
    """Serve until ended."""
    rclpy.init()
    node = rclpy.create_node("echo")
    index = json.loads((folder / "index.json").read_text())
    for name, kind, file in index["services"]:
        service = find_type(kind, "srv")
        answer = deserialize_message((folder / file).read_bytes(), service.Response)
        node.create_service(service, name, lambda request, response, answer=answer: answer)
    for name, kind, out, answer_kind, file in index["topics"]:
        found = find_type(answer_kind, "msg")
        answer = deserialize_message((folder / file).read_bytes(), found)
        publisher = node.create_publisher(found, out, STATE)
        node.create_subscription(
            find_type(kind, "msg"),
            name,
            lambda _, publisher=publisher, answer=answer: publisher.publish(answer),
            COMMAND,
        )
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        node.destroy_node()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
