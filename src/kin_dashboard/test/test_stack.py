"""The stack's state as the page shows it."""

from kin_interfaces.msg import NodeState

from kin_dashboard.stack import diagnostics_html, state_html
from kin_dashboard.style import notice, table


def test_words_of_others_cannot_become_html():
    evil = "<script>alert(1)</script>"
    node = NodeState(name=f"/{evil}", health=NodeState.UNHEALTHY, expected=True, message=evil)
    for html in (
        state_html(evil, [node], [evil]),
        notice(evil),
        table([(evil, evil)], evil),
        diagnostics_html({}),
    ):
        assert "<script" not in html


def test_states_differ_by_word_and_sign_not_only_by_colour():
    nodes = [
        NodeState(name="/a", health=NodeState.HEALTHY, expected=True),
        NodeState(name="/b", health=NodeState.STARTING, expected=True),
        NodeState(name="/c", health=NodeState.SILENT, expected=True),
    ]
    html = state_html("2 of 3", nodes, ["hier_ik"])
    for word in ("b: starting", "c: silent", "hier_ik: off", "\u2713", "\u2715"):
        assert word in html
