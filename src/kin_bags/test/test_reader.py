"""Bags of rosbag2 with hidden topics: feedback of actions, events of services, and cut-off ones."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from kin_interfaces.action import SolveHier
from kin_interfaces.srv import CheckReady
from rclpy.duration import Duration
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from service_msgs.msg import ServiceEventInfo

from kin_bags.command import main
from kin_bags.reader import open_bag
from kin_bags.types import TypeRegistry
from kin_core.errors import InvalidInput
from kin_ros.messages import find_message
from kin_testing.fixtures import wait_until

sys.path.insert(0, str(Path(__file__).parent))
from rosbag2_files import write_bag

STORAGES = ["mcap", "sqlite3"]
HIDDEN = "/hier_ik/solve_to_convergence/_action/feedback"
FEEDBACK = "kin_interfaces/action/SolveHier_FeedbackMessage"
EVENT = "kin_interfaces/srv/CheckReady_Event"
STATUS = "action_msgs/msg/GoalStatusArray"
JOINTS = "sensor_msgs/msg/JointState"


def raw(message):
    return bytes(serialize_message(message))


def feedback(number):
    message = SolveHier.Impl.FeedbackMessage()
    message.goal_id.uuid[0] = number
    message.feedback.iteration = number
    return raw(message)


def event(number):
    message = CheckReady.Event(info=ServiceEventInfo(sequence_number=number))
    message.request = [CheckReady.Request(nodes=["a", "b"], wait=float(number))]
    return raw(message)


def recorded(path, storage):
    """What ``ros2 bag record -a --include-hidden-topics`` keeps of an action, and more."""
    registry = TypeRegistry()
    topics = [
        (HIDDEN, FEEDBACK, "unknown", ""),
        (HIDDEN.replace("feedback", "status"), STATUS, "ros2msg", registry.definition(STATUS)),
        ("/stack_monitor/check_ready/_service_event", EVENT, "unknown", ""),
        ("/strange", "nowhere/action/Walk_FeedbackMessage", "unknown", ""),
        ("/joint_states", JOINTS, "ros2msg", registry.definition(JOINTS)),
    ]  # fmt: skip
    messages = []
    for number in range(6):
        stamp = 10**18 + 1000 * number
        joints = JointState(name=["a"], position=[float(number)])
        status = GoalStatusArray(status_list=[GoalStatus(status=GoalStatus.STATUS_EXECUTING)])
        contents = (feedback(number), raw(status), event(number), b"\0\1\0\0\7", raw(joints))
        messages += [(k, stamp + k, content) for k, content in enumerate(contents)]
    return write_bag(path, storage, topics, messages)


@pytest.mark.parametrize("single", [False, True], ids=["folder", "file"])
@pytest.mark.parametrize("storage", STORAGES)
def test_hidden_topics_are_read_and_decoded(tmp_path, storage, single, capsys):
    path = recorded(tmp_path / "b", storage)
    if single:
        path = next(file for file in path.iterdir() if file.suffix != ".yaml")
    with open_bag(path) as bag:
        records = list(bag.records())
        assert len(records) == 30
        by_type = {kind: [r for r in records if r.type == kind] for kind in (FEEDBACK, EVENT)}
        decoded = [bag.types.decode(r.type, r.raw) for r in by_type[FEEDBACK]]
        assert [message.feedback.iteration for message in decoded] == list(range(6))
        assert [int(message.goal_id.uuid[0]) for message in decoded] == list(range(6))
        decoded = [bag.types.decode(r.type, r.raw) for r in by_type[EVENT]]
        assert [message.request[0].wait for message in decoded] == [float(n) for n in range(6)]
        strange = next(r for r in records if r.topic == "/strange")
        with pytest.raises(InvalidInput, match="neither the bag nor a package here defines"):
            bag.types.decode(strange.type, strange.raw)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"/hier_ik/solve_to_convergence/_action/feedback: 6 x {FEEDBACK}" in said
    assert "/strange: 6 x nowhere/action/Walk_FeedbackMessage" in said


@pytest.fixture
def bag_command(ros):
    """Starts the command in the domain of the test; what still runs is killed with it."""
    started = []

    def start(*words):
        environment = {**os.environ, "ROS_DOMAIN_ID": str(ros.domain)}
        command = [sys.executable, "-m", "kin_bags.command", *map(str, words)]
        started.append(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.mark.node
@pytest.mark.parametrize("storage", STORAGES)
def test_hidden_topics_are_played(ros, bag_command, tmp_path, storage):
    heard = ros.listen(find_message(FEEDBACK), HIDDEN)
    path = recorded(tmp_path / "b", storage)
    words = ("--rate", "0", "--wait", "20", "--topics", HIDDEN, "/strange")
    played = bag_command("replay", path, *words)
    _, said = played.communicate(timeout=120)
    wait_until(lambda: len(heard) == 6, 30.0, f"the feedback: {said}")
    assert [message.feedback.iteration for message in heard] == list(range(6))
    # What no package here defines cannot be played, and is named.
    assert played.returncode == 1
    assert "/strange cannot be played" in said


@pytest.mark.node
def test_hidden_topics_are_recorded_when_asked_for(ros, bag_command, tmp_path):
    recorder = bag_command("record", "--hidden", "-o", tmp_path / "again")
    publisher = ros.publisher(find_message(FEEDBACK), HIDDEN)
    assert any(f"recording {HIDDEN} ({FEEDBACK})" in line for line in recorder.stderr)
    for number in range(6):
        publisher.publish(feedback(number))
    publisher.wait_for_all_acked(Duration(seconds=20))
    time.sleep(1.0)
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=60)
    with open_bag(tmp_path / "again") as again:
        decoded = [again.types.decode(r.type, r.raw) for r in again.records() if r.topic == HIDDEN]
        assert [message.feedback.iteration for message in decoded] == list(range(6))
        (connection,) = (c for c in again.connections if c.topic == HIDDEN)
        assert connection.digest == TypeRegistry().digest(FEEDBACK)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_recording_that_is_cut_off_anywhere_is_read_or_refused_in_a_sentence(
    tmp_path, storage, capsys
):
    whole = recorded(tmp_path / "b", storage)
    draw = random.Random(7)
    for trial in range(16):
        path = tmp_path / f"cut{trial}"
        shutil.copytree(whole, path)
        if trial % 4 == 0:
            (path / "metadata.yaml").unlink()  # the recorder was killed, too
        (file,) = (file for file in path.iterdir() if file.suffix != ".yaml")
        content = file.read_bytes()
        file.write_bytes(content[: draw.randrange(len(content))])
        assert main(["info", str(path)]) in (0, 2)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        try:
            with open_bag(path) as bag:
                records = list(bag.records())
        except InvalidInput as error:
            assert str(path) in str(error)
        else:
            assert len(records) <= 30
