"""The guarded server: real sockets, real websockets, and a real browser."""

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
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from kin_core.errors import KinError
from kin_dashboard.access import Access
from kin_dashboard.node import Dashboard, free_port
from kin_dashboard.server import LoopEvent, guarded_server
from kin_testing.fixtures import wait_until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
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
        sock=socket.create_connection(("127.0.0.1", port), timeout=60),
        origin=origin,
        subprotocols=[f"viser-v{viser.__version__}"],
        compression=None,
        max_size=None,
        open_timeout=60,
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
        assert page.recv(timeout=60)  # the scene


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
            assert page.recv(timeout=60)
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
                page.wait_for_function("document.title != 'trying'", timeout=60_000)
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
        page.recv(timeout=60)
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
            seen = _unpacked(page.recv(timeout=60))
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
