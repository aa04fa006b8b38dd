"""The panel of the delta robots."""

import numpy as np
from kin_interfaces.srv import SolveDelta
from page_scenes import Maker, connected

from kin_dashboard.delta import DeltaPanel


def test_a_batch_is_asked_for_once_at_a_time_and_its_throughput_shown():
    panel, gui = connected(DeltaPanel), Maker()
    view = panel.view(gui)
    client = panel.node.clients["gpu_kinematics/solve_delta"]
    panel.solve(1000)
    panel.solve(1000)  # the first is not answered yet
    ((request, future),) = client.sent
    assert (request.count, len(request.data)) == (1000, 3000)
    assert np.isfinite(request.data).all()
    answer = SolveDelta.Response(count=1000, failed=3, backend="numba")
    answer.status.solve_time = 1e-3
    future.set_result(answer)
    view.update()
    for word in ("1 000", "numba", "1.0 million/s", "1.00 ms"):
        assert word in gui.html(), word
    panel.solve(10)
    assert len(client.sent) == 2
