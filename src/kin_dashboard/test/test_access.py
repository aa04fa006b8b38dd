"""Who may use the dashboard: its own page, and nobody else's. Real sockets, real websockets."""

import asyncio
import contextlib
import http.client
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import viser
import websockets.asyncio.server
from viser.infra import _infra
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from kin_core.errors import KinError
from kin_dashboard.access import Access, is_loopback, own_names
from kin_dashboard.node import Dashboard, free_port
from kin_dashboard.server import LoopEvent, guarded_server
from kin_testing.fixtures import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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


# The server itself -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def door():
    """A server behind a guard, and what it refused."""
    refused = []
    port = free_port("127.0.0.1", 0)
    server = guarded_server("127.0.0.1", port, "test", Access("127.0.0.1"), refused.append)
    server.refused, server.port = refused, server.get_port()
    yield server
    server.stop()


def get(port, path="/", **given):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def open_socket(port, origin, host=None):
    """A websocket as a page of ``origin`` would open it, having found the server as ``host``."""
    return connect(
        f"ws://{host or f'127.0.0.1:{port}'}/",
        sock=socket.create_connection(("127.0.0.1", port), timeout=20),
        origin=origin,
        subprotocols=[f"viser-v{viser.__version__}"],
        compression=None,
        max_size=None,
        open_timeout=20,
    )


def test_its_own_page_is_served_and_may_not_be_framed(door):
    status, body, answered = get(door.port, Host=f"127.0.0.1:{door.port}")
    assert status == 200
    assert b"<html" in body.lower()
    assert "frame-ancestors 'none'" in answered["Content-Security-Policy"]
    assert answered["X-Frame-Options"] == "DENY"
    assert get(door.port, "/../../etc/passwd", Host="localhost")[0] == 404


def test_http_under_another_name_or_from_another_page_is_refused(door):
    before = len(door.refused)
    assert get(door.port, Host="evil.example")[0] == 403
    assert get(door.port, Host=f"localhost:{door.port}", Origin="http://evil.example")[0] == 403
    assert get(door.port)[0] == 403
    assert len(door.refused) == before + 3


def test_only_its_own_page_gets_a_websocket(door):
    joined = []
    door.on_client_connect(joined.append)
    own = f"http://127.0.0.1:{door.port}"
    for origin, host in [
        ("http://evil.example", None),
        ("null", None),
        (None, None),
        (f"http://127.0.0.1:{door.port + 1}", None),
        (f"http://rebound.example:{door.port}", f"rebound.example:{door.port}"),
        (own, "rebound.example"),
    ]:
        with pytest.raises(InvalidStatus) as refusal, open_socket(door.port, origin, host):
            pass
        assert refusal.value.response.status_code == 403
    assert not joined
    with open_socket(door.port, own) as page:
        assert page.recv(timeout=20)  # the scene


def test_with_a_token_the_address_opens_the_door():
    port = free_port("127.0.0.1", 0)
    server = guarded_server("127.0.0.1", port, "test", access := Access("0.0.0.0"), lambda _: None)
    try:
        port = server.get_port()
        host = {"Host": f"127.0.0.1:{port}"}
        assert get(port, **host)[0] == 403
        status, _, answered = get(port, f"/?token={access.token}", **host)
        assert status == 200
        cookie = answered["Set-Cookie"].partition(";")[0]
        assert get(port, **host, Cookie=cookie)[0] == 200
        own = f"http://127.0.0.1:{port}"
        with pytest.raises(InvalidStatus), open_socket(port, own):
            pass
        with connect(
            f"ws://127.0.0.1:{port}/",
            origin=own,
            additional_headers={"Cookie": cookie},
            subprotocols=[f"viser-v{viser.__version__}"],
            compression=None,
            max_size=None,
        ) as page:
            assert page.recv(timeout=20)
    finally:
        server.stop()


def test_without_a_guard_there_is_no_server(monkeypatch):
    """A viser that listens in another way must not be served unguarded."""
    started = []

    class Other:
        def __init__(self, **_):
            started.append(self)

        def stop(self):
            started.remove(self)

    monkeypatch.setattr(viser, "ViserServer", Other)
    with pytest.raises(KinError, match=r"written for viser 1\.1\.1"):
        guarded_server("127.0.0.1", 0, "test", Access("127.0.0.1"), lambda _: None)
    assert not started


def test_the_guard_leaves_other_servers_alone():
    assert websockets.asyncio.server.serve.__module__ == "websockets.asyncio.server"


@pytest.mark.node
def test_the_dashboard_counts_and_logs_who_was_refused(ros):
    dashboard = ros.add(Dashboard, {"port": 0, "allowed_hosts": ["robot.lan"]})
    port = dashboard.page.server.get_port()
    assert get(port, Host="evil.example")[0] == 403
    assert get(port, Host="robot.lan")[0] == 200
    shown = {item.key: item.value for item in dashboard.diagnostics.status().values}
    assert shown["requests refused total"] == "1"


# The real thing ---------------------------------------------------------------------------------

#: A page of another site that tries to press buttons: it opens the dashboard's websocket.
ATTACK = """<!doctype html><title>trying</title><script>
const socket = new WebSocket("ws://127.0.0.1:%d", "viser-v%s");
socket.onopen = () => { document.title = "open"; };
socket.onerror = () => { document.title = "refused"; };
</script>"""


@contextlib.contextmanager
def site(text):
    """A web site of somebody else, on another port of this machine."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_real_browser_on_another_site_is_kept_out_and_on_its_own_page_let_in(door):
    from playwright.sync_api import sync_playwright

    names = "MAP evil.example 127.0.0.1, MAP rebound.example 127.0.0.1"
    with sync_playwright() as started, site(ATTACK % (door.port, viser.__version__)) as other:
        browser = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={names}"],
        )
        try:
            page = browser.new_page()
            for address in (f"http://evil.example:{other}/", f"http://127.0.0.1:{other}/"):
                page.goto(address)
                page.wait_for_function("document.title != 'trying'", timeout=20_000)
                assert page.title() == "refused", address
            rebound = page.goto(f"http://rebound.example:{door.port}/")
            assert rebound.status == 403
            frame = f"<iframe src='http://127.0.0.1:{door.port}/'></iframe>"
            page.set_content(frame)
            page.wait_for_timeout(500)
            assert all("127.0.0.1" not in frame.url for frame in page.frames[1:])
            joined = []
            door.on_client_connect(joined.append)
            page.goto(f"http://127.0.0.1:{door.port}/")
            wait_until(lambda: joined, 30.0, "the page's own connection")
        finally:
            browser.close()


# Messages from any thread -------------------------------------------------------------------------


def test_events_are_set_by_the_loops_own_thread_alone(door, monkeypatch):
    """viser's own event is set from the pushing thread too: "deque mutated during iteration"."""
    own = f"http://127.0.0.1:{door.port}"
    setters = set()
    usual = asyncio.Event.set

    def noted(event):
        setters.add(threading.current_thread())
        usual(event)

    with open_socket(door.port, own) as page:
        page.recv(timeout=20)
        monkeypatch.setattr(asyncio.Event, "set", noted)

        def hammer(name):
            for i in range(300):
                door.scene.add_frame(f"/{name}", position=(0.0, 0.0, float(i)))

        threads = [threading.Thread(target=hammer, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        last = [door.scene.add_frame(f"/last{n}") for n in range(3)]
        seen = b""
        while b"/last2" not in seen:
            seen = _unpacked(page.recv(timeout=20))
        assert len(last) == 3
    assert len(setters) == 1
    assert setters.isdisjoint([*threads, threading.current_thread()])


def _unpacked(data):
    import zstandard

    size = int.from_bytes(data[8:16], "little")
    return zstandard.ZstdDecompressor().decompress(data[16 : 16 + size], max_output_size=1 << 24)


def test_the_event_of_asyncio_itself_is_set_by_the_one_who_pushes():
    """Fails when viser no longer needs what is mended above."""
    loop = asyncio.new_event_loop()
    base = _infra.AsyncMessageBuffer.__mro__[1]
    event = base(loop, persistent_messages=True).message_event
    event.set()
    assert event.is_set()
    mended = _infra.AsyncMessageBuffer(loop, persistent_messages=True).message_event
    assert isinstance(mended, LoopEvent)
    mended.set()
    assert not mended.is_set()
    loop.run_until_complete(_set_inside(mended))
    assert mended.is_set()
    loop.close()


async def _set_inside(event):
    event.set()
