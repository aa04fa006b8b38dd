"""viser's server, with a guard at its door and messages that any thread may send.

Both rest on parts of viser that are not public, as they are in version 1.1.1. The guard is not
optional: where it cannot be put in place there is no server. To be removed when viser lets its
users check requests, and no longer sets asyncio events from other threads.
"""

from __future__ import annotations

import asyncio
import http
import threading
from collections.abc import Callable
from typing import Any

import viser
import websockets.asyncio.server
from viser.infra import _infra

from kin_core.errors import KinError
from kin_dashboard.access import HEADERS, Access

__all__ = ["LoopEvent", "guarded_server"]

#: One server at a time: the guard is put in while viser starts to listen.
_STARTING = threading.Lock()


class LoopEvent(asyncio.Event):
    """An event that only its loop's own thread touches.

    viser sets its event from any thread, and then once more in the loop. The first of these walks
    the queue of waiters while the loop changes it ("deque mutated during iteration"); the second
    alone does all that is needed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._home = loop

    def set(self) -> None:
        """Wake the waiters if called in the loop; else leave that to the call that follows."""
        try:
            here = asyncio.get_running_loop() is self._home
        except RuntimeError:
            here = False
        if here:
            super().set()


class _Buffer(_infra.AsyncMessageBuffer):
    """Messages to browsers, pushed by any thread."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.message_event = LoopEvent(self.event_loop)
        self.flush_event = LoopEvent(self.event_loop)


_infra.AsyncMessageBuffer = _Buffer  # type: ignore[misc]


def guarded_server(
    host: str, port: int, label: str, access: Access, refused: Callable[[str], None]
) -> viser.ViserServer:
    """Start viser's server; every request, also for the websocket, passes ``access`` first.

    Args:
        host: Address to listen on.
        port: Port; any free one if it is 0.
        label: Title of the page.
        access: Decides about requests.
        refused: Told of each refusal, in the server's thread.

    Raises:
        KinError: This viser cannot be guarded.
    """
    module = websockets.asyncio.server
    usual = module.serve
    guarded = threading.Event()

    def serve(handler: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(handler, "__module__", "") != _infra.__name__:
            return usual(handler, *arguments, **options)  # somebody else's server
        guarded.set()
        files = options["process_request"]
        options["process_request"] = _checked(access, files, refused)
        return usual(handler, *arguments, **options)

    with _STARTING:
        module.serve = serve  # type: ignore[assignment,misc]
        try:
            server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
        finally:
            module.serve = usual  # type: ignore[misc]
    if not guarded.is_set():
        server.stop()
        raise KinError(
            f"the dashboard cannot check who opens its page with viser {viser.__version__}; it was"
            " written for viser 1.1.1"
        )
    return server


def _checked(access: Access, files: Callable[..., Any], refused: Callable[[str], None]) -> Any:
    """What decides about a request and answers it, or leaves it to the websocket."""

    def process(connection: Any, request: Any) -> Any:
        why = access.refusal(request.path, request.headers)
        if why:
            refused(why)
            answer = connection.respond(http.HTTPStatus.FORBIDDEN, f"{why}\n")
        else:
            answer = files(connection, request)
        if answer is None:
            return None
        for name, value in HEADERS.items():
            answer.headers[name] = value
        cookie = "" if why else access.cookie(request.path)
        if cookie:
            answer.headers["Set-Cookie"] = cookie
        return answer

    return process
