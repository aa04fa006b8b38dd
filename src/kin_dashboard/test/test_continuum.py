"""The panel of the continuum robot."""

import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.parameter import Parameter

from kin_dashboard.node import Dashboard
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until


class Rods(KinNode[ParameterSet]):
    """Listens where continuum_ik does, and says where its platform is, as that would."""

    def __init__(self, **arguments):
        super().__init__("continuum_ik", ParameterSet, **arguments)
        self.targets = []

    def configure(self):
        self.listen(PoseStamped, "continuum_ik/target", self.targets.append)
        self.pose = self.publish_to(PoseStamped, "continuum_ik/platform_pose")
        self.every(0.1, lambda: self.pose.publish(PoseStamped()))


@pytest.mark.node
def test_a_handle_that_is_dragged_sends_targets_and_only_an_eager_page_listens_unseen(ros):
    rods = ros.add(Rods)
    dashboard = ros.add(Dashboard, {"port": 0, "eager": True})
    panel = next(panel for panel in dashboard.panels if panel.key == "Rods")
    wait_until(lambda: panel.pose is not None, 60.0, "the platform")
    assert panel.listening

    def drag(phase, height):
        panel.handle.arrows.position = (0.0, 0.1, height)
        panel.handle.changed(phase)
        return len(rods.targets) > 0

    wait_until(lambda: drag("update", 1.0), 60.0, "a target")
    # Held: it stays where it was dragged, whatever the platform does.
    ros.run_on(dashboard, panel.draw)
    assert panel.handle.held
    assert panel.handle.position == pytest.approx([0.0, 0.1, 1.0])
    drag("end", 1.8)
    wait_until(lambda: rods.targets[-1].pose.position.z == pytest.approx(0.5), 60.0, "the last one")
    panel.handle.let_go()
    ros.run_on(dashboard, panel.draw)
    assert panel.handle.position == pytest.approx([0.0, 0.0, 0.0])  # it follows again
    # Nobody looks: nothing is heard any more.
    changed = Parameter("eager", value=False)
    assert ros.run_on(dashboard, lambda: dashboard.set_parameters([changed]))[0].successful
    dashboard.looked = -100.0
    wait_until(lambda: not panel.listening, 60.0, "the page to rest")
    wait_until(lambda: ros.node.count_subscribers("/continuum_ik/platform_pose") == 0, 60.0, "it")
