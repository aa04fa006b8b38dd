"""One stack for one set of node names: who starts nodes claims their names on this machine.

Two nodes with the same name in one ROS domain answer each other's requests and drive the same
robot. A claim is a file lock, so it ends with the process that holds it, however that ends. It
knows the stacks that kinstack has started on this machine for this user; other machines' and those
of ``ros2 launch`` it cannot see.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from kin_tools.errors import ToolError

__all__ = ["NameTaken", "claim_names"]


class NameTaken(ToolError):
    """Nodes of these names run already.

    Attributes:
        names: The names, sorted.
        domain: ROS domain.
        pid: Process that claimed the first of them.
    """

    def __init__(self, names: list[str], domain: str, pid: str) -> None:
        self.names, self.domain, self.pid = names, domain, pid
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        super().__init__(
            f"{shown}: already running in ROS domain {domain}, started by process {pid}. End that"
            " stack first, or start this one in another namespace (namespace:=robot2) or another"
            " domain (ROS_DOMAIN_ID)"
        )


def _folder() -> Path:
    """The folder of the locks: this user's alone."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"kinstack-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise ToolError(f"{folder} belongs to another user; name a folder in XDG_RUNTIME_DIR")
    return folder


@contextlib.contextmanager
def claim_names(names: Iterable[str]) -> Iterator[None]:
    """Claim full node names in the present ROS domain until the block and its forks have ended.

    Raises:
        NameTaken: Another process holds one of them; then none is claimed.
    """
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    taken: list[str] = []
    holder = "?"
    with contextlib.ExitStack() as held:
        for name in sorted(set(names)):
            path = _folder() / f"{domain}{name.replace('/', '-')}.lock"
            lock = held.enter_context(path.open("a+"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = holder if taken else lock.read().strip() or "?"
                taken.append(name)
                continue
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        if taken:
            raise NameTaken(taken, domain, holder)
        yield
