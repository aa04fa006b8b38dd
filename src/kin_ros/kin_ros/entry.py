"""How the programs of the nodes begin: an interrupt while they are loaded is no traceback.

A node needs seconds to be loaded, and for most of that time Python answers Ctrl-C with a traceback
out of the depths of some library. So the entry point of a node is not its own ``main`` but a name
in here, ``kin_ros.entry:PACKAGE.MODULE.main``, which looks after signals first and then loads.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

__all__ = ["Program"]


class Program:
    """The function of a dotted name, which is loaded when it is called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Program:
        if name.startswith("_"):
            raise AttributeError(name)
        return Program(f"{self._name}.{name}")

    def __call__(self) -> Any:
        """Load the module and call the function."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        module, _, function = self._name.rpartition(".")
        return getattr(importlib.import_module(module), function)()


def _leave(number: int, _frame: object) -> None:
    """End at once: nothing has begun that would have to be put away."""
    if os.isatty(2):  # a launch says it once for all of its nodes
        name = os.path.basename(sys.argv[0])
        os.write(2, f"{name}: interrupted before it was started\n".encode())
    os._exit(128 + number)


def __getattr__(name: str) -> Program:
    if name.startswith("_"):
        raise AttributeError(name)
    return Program(name)
