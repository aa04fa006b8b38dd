"""Between messages and the library."""

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from kin_interfaces.srv import SolveContinuumIK

from continuum_ik import conversions, make_pose
from continuum_ik.details import solve_in_detail
from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Progress, Task
from kin_ros.arrays import to_field

POSES = np.array([make_pose(p) for p in ((0.0, 0.02, 0.48), (0.0, 0.0, -0.3))])


def test_poses_and_lengths_are_read():
    message = Pose()
    message.position.x, message.position.z = 0.1, 0.4
    np.testing.assert_array_equal(conversions.read_poses([message]), [[0.1, 0, 0.4, 0, 0, 0, 1]])
    with pytest.raises(InvalidInput, match="poses"):
        conversions.read_poses([])
    rows = conversions.read_lengths(to_field(np.arange(12.0)))
    np.testing.assert_array_equal(rows, np.arange(12.0).reshape(2, 6))
    for size in (0, 5, 7):
        with pytest.raises(InvalidInput, match="six numbers"):
            conversions.read_lengths(to_field(np.zeros(size)))


def test_a_load_counts_only_if_it_is_given():
    request = SolveContinuumIK.Request()
    request.load.force.z = -3.0
    request.load.torque.x = 0.2
    assert conversions.read_load(request) is None
    request.load_given = True
    load = conversions.read_load(request)
    assert load.force == (0.0, 0.0, -3.0)
    assert load.moment == (0.2, 0.0, 0.0)


def test_answers_name_the_first_that_failed(tight):
    batch, details = solve_in_detail(
        tight, POSES, analyse=True, points=3, independent=True, task=Task()
    )
    answer = conversions.ik_response(batch, details)
    assert list(answer.codes) == [StatusCode.SUCCESS, StatusCode.UNREACHABLE]
    assert answer.status.code == StatusCode.UNREACHABLE
    assert answer.status.message.startswith("poses[1]: ")
    assert list(answer.stable) == [True, False]
    assert len(answer.lengths) == 12
    assert np.isnan(answer.lengths[6:]).all()
    assert len(answer.jacobian) == 72
    assert len(answer.shapes) == 2 * 6 * 3 * 3
    assert answer.best[0].position.y == pytest.approx(0.02)
    back = conversions.fk_response(tight.forward_many(batch.lengths[:1]))
    assert back.status.code == StatusCode.SUCCESS
    assert back.poses[0].position.z == pytest.approx(0.48, abs=1e-8)


def test_progress_of_a_sweep():
    progress = Progress(0.5, "sweeping", {"done": 10.0, "reachable": 7.0, "poses_per_second": 3.5})
    feedback = conversions.sweep_feedback(progress)
    assert (feedback.fraction, feedback.message) == (0.5, "sweeping")
    assert (feedback.done, feedback.reachable, feedback.poses_per_second) == (10, 7, 3.5)
