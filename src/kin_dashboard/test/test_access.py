"""Who may use the dashboard: its own page, and nobody else's."""

import pytest
from websockets.datastructures import Headers

from kin_dashboard.access import Access, is_loopback, own_names


def headers(**values):
    made = Headers()
    for name, value in values.items():
        for one in [value] if isinstance(value, str) else value:
            made[name] = one
    return made


GOOD_HOSTS = ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "127.0.0.1", "[::1]:8080"]
BAD_HOSTS = [
    "evil.example",
    "evil.example:8080",
    "127.0.0.1.evil.example:8080",  # a name that anybody can point here
    "localhost.evil.example",
    "evil.example#127.0.0.1",
    "127.0.0.1@evil.example",
    "evil.example:8080:8080",
    "127.0.0.1:8080\t",
    "2130706433:8080",  # 127.0.0.1 as one number
    "0.0.0.0:8080",
    "",
    " ",
]
BAD_ORIGINS = [
    "http://evil.example",
    "https://evil.example:8080",
    "http://127.0.0.1",  # another port: another program of this machine
    "http://127.0.0.1:3000",
    "http://localhost:8080",  # asked under another name
    "http://127.0.0.1:8080.evil.example",
    "http://127.0.0.1:8080@evil.example",
    "file://127.0.0.1:8080",
    "ftp://127.0.0.1:8080",
    "null",
    "",
    "127.0.0.1:8080",
]


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_the_page_is_served_under_the_names_of_this_machine(host):
    access = Access("127.0.0.1")
    assert access.refusal("/", headers(Host=host)) == ""
    own = headers(Host=host, Origin=f"http://{host}", Upgrade="websocket")
    assert access.refusal("/", own) == ""
    assert access.token == ""


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_other_names_are_refused_also_when_they_lead_here(host):
    access = Access("127.0.0.1")
    assert "name" in access.refusal("/", headers(Host=host))
    rebound = headers(Host=host, Origin=f"http://{host}", Upgrade="websocket")
    assert "name" in access.refusal("/", rebound)


def test_no_host_and_two_hosts_are_refused():
    access = Access("127.0.0.1")
    assert access.refusal("/", headers())
    assert access.refusal("/", headers(Host=["127.0.0.1", "127.0.0.1"]))


@pytest.mark.parametrize("origin", BAD_ORIGINS)
@pytest.mark.parametrize("upgrade", [{}, {"Upgrade": "websocket"}, {"Upgrade": "WebSocket"}])
def test_other_origins_are_refused(origin, upgrade):
    given = headers(Host="127.0.0.1:8080", Origin=origin, **upgrade)
    assert "may not use" in Access("127.0.0.1").refusal("/", given)


def test_a_websocket_needs_an_origin_and_only_one():
    access = Access("127.0.0.1")
    assert access.refusal("/", headers(Host="127.0.0.1:8080", Upgrade="websocket"))
    two = ["http://127.0.0.1:8080", "http://evil.example"]
    assert access.refusal("/", headers(Host="127.0.0.1:8080", Origin=two, Upgrade="websocket"))


def test_a_tunnel_and_a_proxy_work():
    """The port of a tunnel is another one; a proxy has a name that is given, and TLS."""
    tunnel = headers(Host="localhost:9000", Origin="http://localhost:9000", Upgrade="websocket")
    assert Access("127.0.0.1").refusal("/", tunnel) == ""
    proxy = headers(Host="Robot.lan", Origin="https://robot.lan", Upgrade="websocket")
    assert Access("127.0.0.1").refusal("/", proxy)
    assert Access("127.0.0.1", ["robot.lan"]).refusal("/", proxy) == ""
    explicit = headers(Host="robot.lan:443", Origin="https://robot.lan", Upgrade="websocket")
    assert Access("127.0.0.1", ["robot.lan"]).refusal("/", explicit) == ""


def test_beyond_this_machine_a_token_is_needed():
    access = Access("0.0.0.0")
    assert len(access.token) >= 32
    assert access.token != Access("0.0.0.0").token
    assert access.address("0.0.0.0", 8080).endswith(f":8080/?token={access.token}")
    host = {"Host": "127.0.0.1:8080"}
    wrong = ["/", "/?token=", "/?token=x", f"/?token={access.token}x", "/?tokens=1"]
    wrong += [f"/?token=x&token={access.token}", f"/#token={access.token}"]
    for path in wrong:
        assert "token" in access.refusal(path, headers(**host))
        assert access.cookie(path) == ""
    path = f"/?token={access.token}"
    assert access.refusal(path, headers(**host)) == ""
    cookie = access.cookie(path)
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    pair = cookie.partition(";")[0]
    page = {**host, "Origin": "http://127.0.0.1:8080", "Upgrade": "websocket"}
    assert access.refusal("/", headers(**page, Cookie=pair)) == ""
    assert access.refusal("/", headers(**page, Cookie=f"a=b; {pair}; c=d")) == ""
    assert access.refusal("/", headers(**page, Cookie=pair[:-1]))
    assert access.refusal("/", headers(**page, Cookie="=;;; a; =b"))
    # A right token does not make up for a wrong name or page.
    assert access.refusal(path, headers(Host="evil.example"))
    assert access.refusal(path, headers(Host="127.0.0.1:8080", Origin="http://evil.example"))


def test_names_of_the_machine():
    assert is_loopback("127.0.0.1")
    assert is_loopback("127.3.2.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    for other in ("0.0.0.0", "::", "192.168.1.5", "", "robot.lan"):
        assert not is_loopback(other)
    assert "0.0.0.0" not in own_names("0.0.0.0")
    assert "127.0.0.1" in own_names("0.0.0.0")
