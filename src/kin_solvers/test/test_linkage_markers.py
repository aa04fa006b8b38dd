"""The node draws the linkage it has solved, at a configuration that somebody chose."""

import numpy as np
import pytest
from kin_interfaces.msg import ManifoldProblem, SolveStatus
from kin_interfaces.srv import SolveManifold
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from kin_solvers.node import KinSolversNode
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


@pytest.mark.slow
def test_a_chosen_configuration_is_drawn(ros):
    ros.add(KinSolversNode, parameters={"threads": 2, "playback": False})
    drawn = ros.listen(MarkerArray, "/kin_solvers/linkage")
    request = SolveManifold.Request(
        problem=ManifoldProblem(mechanism="planar_four_bar", refine=8), timeout=60.0
    )
    answer = ros.call(SolveManifold, "/kin_solvers/solve_manifold", request, timeout=120)
    assert answer.status.code == SolveStatus.SUCCESS, answer.status.message
    names = list(answer.manifold.variables)
    points = np.frombuffer(answer.manifold.points).reshape(-1, len(names))
    show = ros.publisher(JointState, "/kin_solvers/show")
    show.publish(JointState(name=names[::-1], position=points[0, ::-1].tolist()))
    wait_until(lambda: drawn, 20.0, "the linkage")
    strips = [m for m in drawn[-1].markers if m.type == Marker.LINE_STRIP]
    assert strips
    # A configuration of the solution set: the loop closes.
    ends = [(strips[0].points[i].x, strips[0].points[i].y, strips[0].points[i].z) for i in (0, -1)]
    assert np.allclose(ends[0], ends[1], atol=1e-6)
    # What does not fit is left alone, and the next one is drawn.
    before = drawn[-1].markers
    show.publish(JointState(name=names, position=[float("nan")] * len(names)))
    show.publish(JointState(name=["other"], position=[0.0]))
    show.publish(JointState(name=names, position=points[-1].tolist()))
    wait_until(lambda: drawn[-1].markers != before, 20.0, "the next one")
    corners = [(p.x, p.y, p.z) for array in drawn for m in array.markers for p in m.points]
    assert np.isfinite(corners).all()
