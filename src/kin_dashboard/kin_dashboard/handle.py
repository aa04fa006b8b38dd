"""A handle in the scene that follows a body, and that people drag it by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DragHandle"]

#: How long it stays where it was let go before it follows its body again, and how long it is
#: thought to be held when nothing more is heard of it: its page may have been closed [s].
_REST = 1.0
_HELD = 10.0

Array = NDArray[np.float64]
Moved = Callable[[Array, Array], None]


class DragHandle:
    """Arrows to drag; hidden until it is told where its body is."""

    def __init__(
        self, scene: Any, name: str, post: Callable[[Callable[[], None]], None], moved: Moved,
        *, turns: bool = True,
    ) -> None:  # fmt: skip
        """Make it.

        Args:
            scene: The scene that all browsers share.
            name: Its name in the scene tree.
            post: Runs something on the node's executor.
            moved: Called there with position, shape (3,) [m], and quaternion w, x, y, z.
            turns: Whether it can be turned too.
        """
        self._post = post
        self._moved = moved
        self._waiting = False
        self._free_at = 0.0
        self.arrows = scene.add_transform_controls(
            name, scale=0.5, line_width=3.0, visible=False, depth_test=False,
            disable_rotations=not turns,
        )  # fmt: skip

        # Asynchronous, because only then viser keeps the order: an end before its start would
        # leave the handle held for good.
        async def changed(event: Any) -> None:
            self.changed(event.phase)

        self.arrows.on_update(changed)

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return bool(self.arrows.visible)

    @property
    def position(self) -> Array:
        """Where it is in its parent's frame, shape (3,) [m]."""
        return np.array(self.arrows.position)

    @property
    def held(self) -> bool:
        """Whether somebody drags it, or has just let it go."""
        return time.monotonic() < self._free_at

    def changed(self, phase: str) -> None:
        """Take note of a drag: "start", "update" or "end"."""
        self._free_at = time.monotonic() + (_REST if phase == "end" else _HELD)
        if phase != "start" and not self._waiting:
            self._waiting = True  # a busy executor gets the last pose, not all of them
            self._post(self._tell)

    def follow(self, position: Array, wxyz: Array | None = None) -> None:
        """Go where the body is, unless it is held."""
        if not self.held:
            self.arrows.position = tuple(map(float, position))
            if wxyz is not None:
                self.arrows.wxyz = tuple(map(float, wxyz))
        self.arrows.visible = True

    def let_go(self) -> None:
        """Follow at once."""
        self._free_at = 0.0

    def hide(self) -> None:
        """Take it away."""
        self.arrows.visible = False

    def _tell(self) -> None:
        self._waiting = False
        self._moved(self.position, np.array(self.arrows.wxyz))
