"""What every panel does: names of types, and what its node complains of."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from visualization_msgs.msg import MarkerArray

from kin_dashboard.node import Dashboard
from kin_dashboard.panel import type_name
from kin_testing.fixtures import wait_until


def test_type_names():
    assert type_name(MarkerArray) == "visualization_msgs/msg/MarkerArray"


@pytest.mark.node
def test_a_refused_target_is_shown_with_its_sentence(ros):
    dashboard = ros.add(Dashboard, {"port": 0})
    panel = next(panel for panel in dashboard.panels if panel.key == "Rods")
    panel.present = True
    status = DiagnosticStatus(
        name="/continuum_ik", level=DiagnosticStatus.WARN, message="target: too far <b>away</b>"
    )
    ros.publish(DiagnosticArray, "/diagnostics", DiagnosticArray(status=[status]))
    wait_until(lambda: "continuum_ik" in dashboard.diagnoses, 60.0, "the diagnostics")
    assert "target: too far &lt;b&gt;away" in panel.notice()
