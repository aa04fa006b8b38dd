"""Who may use the page: browsers that opened it from its own address, and nobody else.

A browser lets any web site connect to 127.0.0.1. Two headers that a page cannot choose tell such
a visitor: ``Host``, the name under which the browser found this server (another one if a name of
somebody else was pointed here, "DNS rebinding"), and ``Origin``, the page that opens a connection.
Where the server can be reached from other machines, whoever wants in must also hold the token that
is part of the printed address.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable, Sequence
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import psutil

__all__ = ["Access", "is_loopback", "own_names"]

#: Sent with every file: no other page may embed this one and have people click on it unseen.
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?\Z")


class Headers(Protocol):
    """The headers of a request; a name may stand there more than once."""

    def get_all(self, key: str) -> Sequence[str]:
        """Every value of a header, whatever the case of its name."""


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str) -> set[str]:
    """The names under which a server that listens on ``host`` may be asked for.

    Addresses cannot be pointed elsewhere by others, so those of this machine are among them where
    it listens on all.
    """
    names = {"127.0.0.1", "localhost", "::1", host}
    if not is_loopback(host):
        names.add(socket.gethostname().lower())
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 (compared with, not listened on)
        names -= {"", "0.0.0.0", "::"}  # noqa: S104
        for addresses in psutil.net_if_addrs().values():
            names |= {
                one.address.partition("%")[0]
                for one in addresses
                if one.family in (socket.AF_INET, socket.AF_INET6)
            }
    return {name.lower() for name in names}


class Access:
    """Decides about each request, to the page's files and to its websocket.

    Attributes:
        token: What the address must hold; empty where none is needed.
    """

    def __init__(self, host: str, names: Iterable[str] = ()) -> None:
        """Allow the names of this machine.

        Args:
            host: Address that the server listens on.
            names: More names under which people open the page, such as that of a proxy.
        """
        self._names = own_names(host) | {name.lower().strip("[]") for name in names}
        self.token = "" if is_loopback(host) else secrets.token_urlsafe(24)
        # A name of its own: cookies of a machine are shared by all of its ports.
        self._cookie = f"kinstack_{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def refusal(self, path: str, headers: Headers) -> str:
        """Say why a request is refused; an empty text if it is not.

        Args:
            path: Path and query of the request.
            headers: Its headers.
        """
        hosts = headers.get_all("Host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        found = _HOST.match(host)
        if found is None or found.group(1).strip("[]").rstrip(".") not in self._names:
            shown = repr(host[:80])
            return (
                f"this page is not served under the name {shown}; open it as 127.0.0.1 or"
                " localhost, or give the name in the dashboard's parameter allowed_hosts"
            )
        origins = headers.get_all("Origin")
        upgrade = bool(headers.get_all("Upgrade"))
        # Browsers send no origin when they fetch a page, and always when they open a websocket.
        if (upgrade or origins) and not (len(origins) == 1 and _same_origin(origins[0], host)):
            shown = repr(origins[0][:80]) if origins else "no page"
            return f"{shown} may not use this page's connection"
        if self.token and not (self._in_query(path) or self._in_cookie(headers)):
            return "the address must hold the token that the dashboard printed when it started"
        return ""

    def cookie(self, path: str) -> str:
        """The cookie that lets the page's own requests in; empty if the path holds no token."""
        if not self.token or not self._in_query(path):
            return ""
        return f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def address(self, host: str, port: int) -> str:
        """What to type into a browser."""
        if host in ("", "0.0.0.0", "::"):  # noqa: S104 (compared with, not listened on)
            host = socket.gethostname()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}" + (f"/?token={self.token}" if self.token else "")

    def _in_query(self, path: str) -> bool:
        given = parse_qs(urlsplit(path).query).get("token", [""])
        return len(given) == 1 and self._right(given[0])

    def _in_cookie(self, headers: Headers) -> bool:
        for text in headers.get_all("Cookie"):
            for pair in text.split(";"):
                name, _, value = pair.strip().partition("=")
                if name == self._cookie and self._right(value):
                    return True
        return False

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def _same_origin(origin: str, host: str) -> bool:
    """Whether an origin is the page that is served under ``host`` (name and port)."""
    scheme, _, rest = origin.lower().partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme)
    if default is None or not rest:
        return False
    return rest.removesuffix(default) == host.removesuffix(default)
