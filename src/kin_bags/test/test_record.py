"""Recording a running graph."""

import signal
import time

import numpy as np
import pytest
from bag_scenes import start, wait_for_line
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kin_bags.reader import open_bag
from kin_ros.qos import LATCHED, SENSOR
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_record_a_running_graph(domain, tmp_path, ending):
    ros = domain
    path = tmp_path / "b"
    first = ros.node.create_publisher(String, "/first", LATCHED)
    first.publish(String(data="kept for late readers"))
    process = start("record", "-o", path)
    wait_for_line(process, "recording /first")
    later = ros.node.create_publisher(JointState, "/later", SENSOR)  # appears while it records
    wait_for_line(process, "recording /later")
    wait_until(lambda: later.get_subscription_count() > 0, 60.0, "the recorder")
    for number in range(20):
        message = JointState(name=["the last one"] if number == 19 else [])
        message.header.stamp.sec = number
        later.publish(message)
        time.sleep(0.005)
    # A kill may take what is not in the file yet.
    wait_until(lambda: any(b"the last one" in f.read_bytes() for f in path.rglob("*.mcap")), 60.0)
    process.send_signal(ending)
    process.stderr.close()
    code = process.wait(30)
    assert code == (-signal.SIGKILL if ending == signal.SIGKILL else 0)
    with open_bag(path) as bag:
        records = list(bag.records())
        texts = [bag.types.decode(r.type, r.raw).data for r in records if r.topic == "/first"]
        assert texts == ["kept for late readers"]
        seconds = [
            bag.types.decode(r.type, r.raw).header.stamp.sec for r in records if r.topic == "/later"
        ]
        assert seconds == list(range(20))
        qos = {c.topic: c.ext.offered_qos_profiles[0] for c in bag.connections}
        assert qos["/later"].reliability.name == "BEST_EFFORT"
        assert qos["/first"].durability.name == "TRANSIENT_LOCAL"


def test_record_compressed_and_split(domain, tmp_path):
    ros = domain
    path = tmp_path / "b"
    publisher = ros.node.create_publisher(JointState, "/joints", 1000)
    process = start(
        *(
            "record",
            "/joints",
            "-o",
            path,
            "--compress",
            "--split-size",
            "0.02",
            "--storage",
            "mcap",
        )
    )
    wait_for_line(process, "recording /joints")
    wait_until(lambda: publisher.get_subscription_count() > 0, 60.0, "the recorder")
    random = np.random.default_rng(0)
    for number in range(300):
        message = JointState(position=random.random(100).tolist())
        message.header.stamp.sec = number
        publisher.publish(message)
    wait_until(lambda: publisher.wait_for_all_acked(), 60.0, "delivery")
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(30) == 0
    assert len(list(path.glob("*.mcap*"))) > 2
    with open_bag(path) as bag:
        seconds = [bag.types.decode(r.type, r.raw).header.stamp.sec for r in bag.records()]
    assert seconds == list(range(300))
