"""What every panel is made of.

A panel is shared by all browsers: it listens to its system's topics, asks its services, and keeps
the 3D objects of its place in the scene. A view is what one browser shows of it in the side bar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

from kin_core.errors import StatusCode
from kin_dashboard.markers import MarkerScene
from kin_dashboard.style import GOOD, IDLE, WRONG, notice
from kin_ros.qos import COMMAND

if TYPE_CHECKING:
    from kin_dashboard.node import Dashboard

__all__ = ["Panel", "Topics", "View", "Voice", "put", "type_name"]

_MARKER_TYPES = {
    "visualization_msgs/msg/Marker": Marker,
    "visualization_msgs/msg/MarkerArray": MarkerArray,
}


Topics = dict[str, list[tuple[str, list[str]]]]


def type_name(message: Any) -> str:
    """The ROS name of a message type, such as "sensor_msgs/msg/JointState"."""
    package, kind, _ = message.__module__.split(".", 2)
    return f"{package}/{kind}/{message.__name__}"


class Voice:
    """A publisher to the topic that a node listens to; silent until that is known."""

    def __init__(self, panel: Panel, node: str, message: type) -> None:
        """Remember whom to speak to."""
        self._panel = panel
        self._node = node
        self._message = message
        self._publisher: Any = None

    def find(self, subscribed: Topics) -> None:
        """Look for the topic, once."""
        if self._publisher is None:
            wanted = type_name(self._message)
            for topic, types in subscribed.get(self._node, ()):
                if wanted in types:
                    self._publisher = self._panel.node.publish_to(self._message, topic, COMMAND)
                    return

    def publish(self, message: Any) -> None:
        """Publish, or say that nobody listens."""
        if self._publisher is None:
            self._panel.say(f"{self._node} is not listening yet.", WRONG)
        else:
            self._publisher.publish(message)


def put(handle: Any, html: str) -> None:
    """Set the HTML of a widget, if it has changed."""
    if handle.content != html:
        handle.content = html


class View:
    """One browser's widgets of a panel; the first is the panel's sentence."""

    def __init__(self, panel: Any, gui: Any) -> None:
        """Make the widgets.

        Args:
            panel: Whose data they show.
            gui: Where they are made.
        """
        self.panel = panel
        self._notice = gui.add_html("")

    def update(self) -> None:
        """Bring the widgets up to date; called only while the panel is shown."""
        put(self._notice, self.panel.notice())


class Panel:
    """One system: its data, its requests, its place in the scene."""

    #: Word on the button, heading, the nodes that make up the system, and its widgets.
    key: ClassVar[str] = ""
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    node_names: ClassVar[tuple[str, ...]] = ()
    view_type: ClassVar[type[View]] = View
    #: Where its place is in the scene [m], and how large its drawing is shown there.
    place: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
    scale: ClassVar[float] = 1.0
    #: Camera and what it looks at, from the place [m].
    camera: ClassVar[tuple[tuple[float, float, float], tuple[float, float, float]]] = (
        (3.0, -4.0, 3.0),
        (0.0, 0.0, 0.6),
    )

    #: Marker topics that the panel does not want, by their endings; where the others are drawn, how
    #: turned (w, x, y, z), how bold, and how far they reach from there whatever their own size [m];
    #: 0: as ``scale`` says.
    skipped_markers: ClassVar[tuple[str, ...]] = ()
    marker_offset: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
    marker_turn: ClassVar[tuple[float, float, float, float]] = (1.0, 0.0, 0.0, 0.0)
    marker_bold: ClassVar[float] = 1.0
    marker_reach: ClassVar[float] = 0.0

    def __init__(self, node: Dashboard, scene: Any) -> None:
        """Make the place; nothing is subscribed yet.

        Args:
            node: The dashboard's node.
            scene: The scene that all browsers share.
        """
        self.node = node
        self.scene = scene
        self.root = f"/{self.key.lower()}"
        self.present = False
        self.there: set[str] = set()
        self.message = ""
        self.message_colour = IDLE
        self.scenes: dict[str, MarkerScene] = {}
        self._bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        self._wishes: list[tuple[str, str, type, Callable[[Any], None]]] = []
        #: What ends each subscription; there are none while no page shows the panel.
        self._heard: dict[tuple[str, Any], Callable[[], None]] = {}
        self._voices: list[Voice] = []
        scene.add_frame(self.root, show_axes=False, position=self.place)
        scene.add_grid(
            f"{self.root}/floor",
            width=3.5,
            height=3.5,
            cell_size=0.5,
            section_size=1.75,
            cell_color=(226, 230, 236),
            section_color=(176, 184, 196),
            position=(0.0, 0.0, -0.002),
        )
        scene.add_label(f"{self.root}/name", self.key, position=(0.0, -1.95, 0.0))

    # What a panel overrides --------------------------------------------------------------------

    def connect(self) -> None:
        """Subscribe and make clients."""

    def draw(self) -> None:
        """Bring the 3D objects up to date; here those of the node's markers."""
        for drawing in self.scenes.values():
            drawing.draw()

    def view(self, gui: Any) -> View:
        """Make one browser's widgets."""
        return self.view_type(self, gui)

    # What a panel uses -------------------------------------------------------------------------

    def say(self, text: str, colour: str = IDLE) -> None:
        """Show a sentence in the panel."""
        self.message, self.message_colour = text, colour

    def notice(self) -> str:
        """The panel's sentence and what its node complains of, or that it is not running."""
        if not self.present:
            return notice(f"{self.node_names[0]} is not running.", IDLE)
        complaint, colour = self.node.complaint(self.node_names[0])
        return notice(self.message, self.message_colour) + notice(complaint, colour)

    def hear(
        self, node: str, message: type, callback: Callable[[Any], None], ending: str = ""
    ) -> None:
        """Listen to what a node publishes of a type, under whatever name it was given.

        Args:
            node: The node's name.
            message: The type.
            callback: What to do with a message.
            ending: How the topic's name must end, where a node has several of one type.
        """
        self._wishes.append((node, ending, message, callback))

    def tell(self, node: str, message: type) -> Voice:
        """Speak to the topic of a type that a node listens to, under whatever name it was given."""
        voice = Voice(self, node, message)
        self._voices.append(voice)
        return voice

    def ask(
        self,
        client: Any,
        request: Any,
        answered: Callable[[Any], None] | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        """Send a request from a browser's thread; the answer comes on the node's executor.

        Args:
            client: Of the service.
            request: The request.
            answered: What to do with the answer.
            quiet: Say nothing of an answer that is as it should be.
        """

        def send() -> None:
            if not client.service_is_ready():
                self.say(
                    f"{client.srv_name} does not answer: is {self.node_names[0]} running?", WRONG
                )
                return
            client.call_async(request).add_done_callback(done)

        def done(future: Any) -> None:
            response = future.result()
            status = response.status
            if status.code == StatusCode.SUCCESS:
                if not quiet:
                    self.say(status.message or "done", GOOD)
            else:
                self.say(f"{StatusCode(status.code).name}: {status.message}", WRONG)
            if answered is not None:
                answered(response)

        self.node.post(send)

    # Finding topics ----------------------------------------------------------------------------

    def find_topics(self, published: Topics, subscribed: Topics) -> None:
        """Connect to the system's topics as its nodes appear.

        Args:
            published: By node name: topics that it publishes, with their types.
            subscribed: By node name: topics that it listens to, with their types.
        """
        for name in self.node_names:
            for topic, types in published.get(name, ()):
                kind = next((_MARKER_TYPES[t] for t in types if t in _MARKER_TYPES), None)
                if kind is not None and not topic.endswith(self.skipped_markers or ("\0",)):
                    self._attend(kind, topic, self._marker_taker(topic, kind), MarkerScene)
                for node, ending, message, callback in self._wishes:
                    if node == name and type_name(message) in types and topic.endswith(ending):
                        self._attend(message, topic, callback, callback)
        for voice in self._voices:
            voice.find(subscribed)

    def rest(self) -> None:
        """Stop listening: no page shows the panel. What was drawn stays until it is shown again."""
        for stop in self._heard.values():
            stop()
        self._heard.clear()

    @property
    def listening(self) -> bool:
        """Whether it is subscribed to anything."""
        return bool(self._heard)

    def _attend(
        self, message: type, topic: str, callback: Callable[[Any], None], purpose: Any
    ) -> None:
        """Listen to a topic, once for each purpose."""
        if (topic, purpose) not in self._heard:
            self._heard[topic, purpose] = self.node.attend(message, topic, callback)

    def _marker_taker(self, topic: str, kind: type) -> Callable[[Any], None]:
        """What to do with markers of a topic, which has a place in the scene from now on."""
        drawing = self.scenes.get(topic)
        if drawing is None:
            root = f"{self.root}/markers_{len(self.scenes)}"
            self.scene.add_frame(
                root, show_axes=False, position=self.marker_offset, wxyz=self.marker_turn
            )
            drawing = MarkerScene(self.scene, root, self.scale, self.marker_bold)
            self.scenes[topic] = drawing

        def take(message: Any) -> None:
            array = message if kind is MarkerArray else MarkerArray(markers=[message])
            self.saw_markers(array)
            drawing.take(array)
            if self.marker_reach > 0.0:
                self._fit(array)

        return take

    def _fit(self, array: MarkerArray) -> None:
        """Bring machines of millimetres and of metres to one size, which only ever shrinks."""
        points = np.array([(p.x, p.y, p.z) for m in array.markers for p in m.points[::3]])
        points = points[np.isfinite(points).all(axis=1)] if len(points) else points
        if not len(points):
            return
        if self._bounds is not None:
            points = np.vstack([points, *self._bounds])
        low, high = points.min(axis=0), points.max(axis=0)
        self._bounds = (low, high)
        radius = 0.5 * float(np.linalg.norm(high - low))
        for drawing in self.scenes.values():
            drawing.scale = self.marker_reach / radius if radius > 0.0 else 1.0
            drawing.centre = 0.5 * (low + high)

    def saw_markers(self, message: MarkerArray) -> None:
        """Look at markers before they are drawn."""
