"""The browser side: the server, the shared scene, and one session for each open page."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kin_dashboard.access import Access
from kin_dashboard.panel import Panel, View, put
from kin_dashboard.server import guarded_server
from kin_dashboard.style import BLUE, rgb

__all__ = ["OVERVIEW", "Page", "Session"]

# A page may be closed while it is being brought up to date; there is nothing to warn of.
warnings.filterwarnings("ignore", message=r"Queued a \w+ on a closed connection")

#: Word on the button that shows every system.
OVERVIEW = "All"
_OVERVIEW_CAMERA = ((0.0, -7.6, 5.6), (0.0, 1.7, 0.35))
#: Field of view [rad].
_VIEW = 0.8
#: A page narrower than this, width by height, is a phone's: the controls cover its lower part.
_NARROW = 0.8
#: On a phone the controls get the whole width, and leave the upper part to the scene.
_STYLE = """<style>
@media (max-width: 36em) {
  .mantine-Paper-root[style*="max-height: 60%"],
  .mantine-Paper-root[style*="max-height: 60%"] div[style*="width: 20em"] {
    width: 100% !important;
  }
}
</style>"""


class Session:
    """One open page: the stack's state, a button per system, and the chosen panel's widgets."""

    def __init__(
        self, client: Any, panels: list[Panel], header: Callable[[], tuple[str, str]]
    ) -> None:
        """Build the widgets of a browser that has just connected.

        Args:
            client: viser's handle of the browser.
            panels: The panels, in order.
            header: Gives the HTML of the stack's state and of the diagnostics.
        """
        self.client = client
        self._header = header
        self._panels = {panel.key: panel for panel in panels}
        self._shown = ""
        # A variant of each place for this page alone: what it does not look at is not drawn.
        self._places = {
            panel.key: client.scene.add_frame(panel.root, show_axes=False, position=panel.place)
            for panel in panels
        }
        gui = client.gui
        gui.add_html(_STYLE)
        self.state = gui.add_html("")
        self._buttons = gui.add_button_group("View", [OVERVIEW, *self._panels])
        self._folders: dict[str, tuple[Any, View]] = {}
        for key, panel in self._panels.items():
            folder = gui.add_folder(panel.title, visible=False)
            with folder:
                gui.add_html(
                    f'<div style="padding:.1em .6em;font-size:.82em;opacity:.8">{panel.about}</div>'
                )
                view = panel.view(gui)
            self._folders[key] = (folder, view)
        self._diagnostics_folder = gui.add_folder("Diagnostics", expand_by_default=True)
        with self._diagnostics_folder:
            self.diagnostics = gui.add_html("")
        self._buttons.on_click(lambda event: self.show(event.target.value))
        self.show(next(iter(self._panels)))

    @property
    def shown(self) -> str:
        """Key of the panel that is shown; "All" for the overview."""
        return self._shown

    def view_of(self, key: str) -> Any:
        """The widgets of a panel."""
        return self._folders[key][1]

    def show(self, key: str) -> None:
        """Show one panel and look at its place."""
        self._shown = key
        for other, (folder, _) in self._folders.items():
            folder.visible = other == key
        if key == OVERVIEW:
            position, target = _OVERVIEW_CAMERA
        else:
            panel = self._panels[key]
            x, y, z = panel.place
            (px, py, pz), (tx, ty, tz) = panel.camera
            position, target = (x + px, y + py, z + pz), (x + tx, y + ty, z + tz)
        for other, place in self._places.items():
            place.visible = key in (other, OVERVIEW)
        eye, middle = _for_shape(position, target, float(self.client.camera.aspect))
        with self.client.atomic():
            self.client.camera.fov = _VIEW
            self.client.camera.up_direction = (0.0, 0.0, 1.0)
            self.client.camera.position = eye
            self.client.camera.look_at = middle

    def update(self) -> None:
        """Bring what is visible up to date."""
        state, diagnostics = self._header()
        put(self.state, state)
        put(self.diagnostics, diagnostics)
        if self._shown in self._folders:
            self._folders[self._shown][1].update()


def _for_shape(
    eye: Sequence[float], target: Sequence[float], aspect: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Camera and its target for the shape of a page.

    A narrow page looks from further away, and below what is to be seen, which then stands above
    the controls.

    Args:
        eye: Where the camera is on a wide page, shape (3,) [m].
        target: What it looks at, shape (3,) [m].
        aspect: Width by height.
    """
    at = np.asarray(target, dtype=float)
    back = (np.asarray(eye, dtype=float) - at) * max(1.0, 1.1 / max(aspect, 0.3))
    if aspect < _NARROW:
        at = at - [0.0, 0.0, 0.55 * np.tan(0.5 * _VIEW) * float(np.linalg.norm(back))]
    return tuple((at + back).tolist()), tuple(at.tolist())


class Page:
    """The server and the sessions of the browsers that are connected."""

    def __init__(
        self, host: str, port: int, label: str, access: Access, refused: Callable[[str], None]
    ) -> None:
        """Start to serve.

        Args:
            host: Address to listen on.
            port: Port; 0 takes any free one.
            label: Title of the page.
            access: Decides about every request.
            refused: Told why a request was refused.
        """
        self._access = access
        self.server = guarded_server(host, port, label, access, refused)
        self.clients: dict[int, Session] = {}
        self._lock = threading.Lock()
        gui = self.server.gui
        gui.configure_theme(
            control_layout="collapsible",
            control_width="large",
            dark_mode=False,
            show_logo=False,
            show_share_button=False,
            brand_color=rgb(BLUE),
        )
        gui.set_panel_label("kinstack")
        scene = self.server.scene
        scene.set_up_direction("+z")
        # Shadows cost most of a frame where there is no GPU, and show nothing.
        scene.configure_default_lights(cast_shadow=False)

    @property
    def address(self) -> str:
        """What to type into a browser."""
        return self._access.address(self.server.get_host(), self.server.get_port())

    def open_to(
        self, make: Callable[[Any], Session], guard: Callable[[Callable[[Any], None]], Any]
    ) -> None:
        """Build a session for each browser that connects.

        Args:
            make: Builds it.
            guard: Wraps a function so that what it raises is reported.
        """

        def joined(client: Any) -> None:
            session = make(client)
            with self._lock:
                self.clients[client.client_id] = session

        def left(client: Any) -> None:
            with self._lock:
                self.clients.pop(client.client_id, None)

        self.server.on_client_connect(guard(joined))
        self.server.on_client_disconnect(guard(left))

    @property
    def sessions(self) -> list[Session]:
        """The open pages."""
        with self._lock:
            return list(self.clients.values())

    def stop(self) -> None:
        """Close the port and every connection."""
        self.server.stop()
