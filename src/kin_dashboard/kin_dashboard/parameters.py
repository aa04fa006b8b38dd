"""The parameters of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from kin_ros.parameters import ParameterSet, parameter

__all__ = ["DashboardParameters"]


@dataclass(frozen=True, kw_only=True)
class DashboardParameters(ParameterSet):
    """Parameters of the dashboard."""

    host: str = parameter(
        "127.0.0.1",
        "address to listen on; another one shows the page to the network, for those who have the"
        " token in the printed address",
        read_only=True,
    )
    allowed_hosts: tuple[str, ...] = parameter(
        (),
        "names beside 127.0.0.1 and localhost under which browsers may open the page, such as a"
        " proxy's",
        read_only=True,
    )
    port: int = parameter(
        8080,
        "port to listen on; any free one if it is 0 or taken",
        minimum=0,
        maximum=65535,
        read_only=True,
    )
    rate: float = parameter(
        10.0,
        "how often the page is brought up to date [Hz]",
        minimum=0.5,
        maximum=60.0,
        read_only=True,
    )
    eager: bool = parameter(
        False, "listen to every system from the start, not only while a page shows it"
    )
