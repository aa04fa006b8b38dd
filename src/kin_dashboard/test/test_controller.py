"""The panel of the fault-tolerant controller."""

import numpy as np
from kin_interfaces.msg import FtProcessor, FtStatus
from page_scenes import Maker, connected

from kin_dashboard.controller import ControllerPanel


def test_a_stopped_arm_shows_no_green_votes_and_reset_stands_at_the_top():
    panel, gui = connected(ControllerPanel), Maker()
    panel.status = FtStatus(
        state=FtStatus.STOPPED,
        reason="joint states are missing",
        processors=[FtProcessor(id=i, state=FtProcessor.WORKING) for i in range(4)],
    )
    view = panel.view(gui)
    view.update()
    assert "The arm is stopped: joint states are missing" in gui.html()
    assert gui.html().count("stands by") == 4
    assert ": votes<" not in gui.html()
    kinds = [widget.kind for widget in gui.made]
    buttons = [w.arguments[0] for w in gui.made if w.kind == "add_button"]
    assert buttons[0] == "Reset after a stop"
    assert kinds.index("add_button") < kinds.index("add_dropdown")
    goal = next(w.arguments[1] for w in gui.made if w.kind == "add_vector2")
    assert np.hypot(*goal) > 0.3  # not where the arm would have to fold up
    # An arm that would fall is kept up by the votes, and says so.
    panel.status.kept_up, panel.status.reason = True, "asked for; kept up at rest"
    view.update()
    assert "The arm is stopped: asked for; kept up at rest" in gui.html()
    assert "stands by" not in gui.html()
    panel.status.state = FtStatus.RAMP
    view.update()
    assert "The arm is brought to rest: asked for" in gui.html()
    panel.status.state = FtStatus.RUN
    view.update()
    assert gui.html().count(": votes<") == 4


def moves(panel):
    return [(r.x, r.y) for r, _ in panel.node.clients["ft_controller/move_arm"].sent]


def test_a_simulated_arm_is_kept_moving_and_a_real_one_never_is():
    real = connected(ControllerPanel)
    real.there, real.still_since = {"ft_controller"}, 0.0
    for _ in range(5):
        real.draw()
    assert moves(real) == []
    simulated = connected(ControllerPanel)
    simulated.still_since = 0.0
    simulated.draw()
    assert len(moves(simulated)) == 1
    simulated.draw()  # not at rest yet
    assert len(moves(simulated)) == 1
    simulated.swinging, simulated.still_since = False, 0.0
    simulated.draw()
    assert len(moves(simulated)) == 1


def test_a_fault_is_injected_into_the_chosen_processor_and_healing_names_none():
    panel = connected(ControllerPanel)
    panel.inject("Kill", 2)
    panel.inject("Heal", 2)
    asked = [r for r, _ in panel.node.clients["ft_controller/inject_fault"].sent]
    assert [(r.kind, list(r.processors)) for r in asked] == [("sigkill", [2]), ("clear", [])]
