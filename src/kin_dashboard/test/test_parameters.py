"""The parameters of the dashboard."""

import pytest

from kin_core.errors import InvalidInput
from kin_dashboard.access import is_loopback
from kin_dashboard.parameters import DashboardParameters
from kin_ros.parameters import describe


def test_by_default_the_page_is_for_this_machine_alone_and_listens_unseen_to_nobody():
    parameters = DashboardParameters()
    assert is_loopback(parameters.host)
    assert not parameters.eager
    assert parameters.allowed_hosts == ()


@pytest.mark.parametrize(
    ("name", "value"), [("port", 65536), ("port", -1), ("rate", 0.0), ("rate", 1e3), ("host", 8)]
)
def test_what_is_out_of_range_is_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        describe(DashboardParameters)[name].convert(value)


def test_what_the_server_was_started_with_cannot_be_changed_later():
    fields = describe(DashboardParameters)
    fixed = {name for name in ("host", "port", "allowed_hosts", "rate", "eager")
             if fields[name].spec.read_only}  # fmt: skip
    assert fixed == {"host", "port", "allowed_hosts", "rate"}
