"""A publisher on a topic that only one node may publish on; the rules are those of ``claim``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from ft_controller.claim import Claim, Rival, Standing

__all__ = ["ExclusivePublisher"]


class ExclusivePublisher:
    """Keeps a claim for a node: watches the graph, makes the publisher and takes it back.

    Attributes:
        publisher: The publisher, while the node drives; None otherwise.
        sentence: Who keeps the node from driving, for people; empty if nobody does.
    """

    def __init__(
        self,
        node: Node,
        message: type,
        topic: str,
        qos: QoSProfile,
        seconds: float,
        kin_service: str,
        *,
        strangers: bool,
    ) -> None:
        """Begin to look; call :meth:`look` often from now on.

        Args:
            node: The node.
            message: Type of the topic.
            topic: The topic that only one may publish on.
            qos: Of the publisher.
            seconds: See :class:`Claim`.
            kin_service: Nodes that offer a service of this type keep to the same rules.
            strangers: Whether publishers of other nodes count too.
        """
        self._node, self._message, self._topic, self._qos = node, message, topic, qos
        self._kin_service, self._strangers = kin_service, strangers
        self._resolved = node.resolve_topic_name(topic)
        self._seconds = seconds
        self._claim = Claim(seconds)
        self._made: Any = None
        self._own: bytes | None = None
        self._before: set[bytes] = set()
        self.publisher: Any = None
        self.sentence = ""
        if seconds == 0.0:
            self._make()
            self.publisher = self._made

    @property
    def standing(self) -> Standing:
        """Where the claim stands."""
        return self._claim.standing

    def look(self, now: float, change: Callable[[Standing], None]) -> bool:
        """Look at the graph and act; whether there is a new sentence for people.

        Args:
            now: Steady time [s].
            change: Gets every new standing, before a publisher is taken back and after one is made.
        """
        before, said = self.standing, self.sentence
        self._find_own()
        after = self._claim.look(now, self._own, self._rivals())
        self.sentence = self._say()
        if after != before:
            if after == Standing.CLAIMING:
                self._make()
            self.publisher = self._made if after == Standing.DRIVING else None
            change(after)
            if after in (Standing.LOOKING, Standing.LOST):
                self._take_back()
        return self.sentence not in ("", said)

    def again(self) -> None:
        """Begin anew if the claim was lost."""
        if self.standing == Standing.LOST:
            self._claim = Claim(self._seconds)

    def close(self) -> None:
        """Take the publisher back."""
        self.publisher = None
        self._take_back()

    def _say(self) -> str:
        rival = self._claim.rival
        if rival is None or self.standing == Standing.DRIVING:
            return ""
        who = f"{rival.node} publishes on {self._resolved} too"
        if self.standing == Standing.LOST:
            return f"{who}: stopped, not to fight over the arm; reset to try again"
        return f"{who}: not driving while it does"

    def _published(self) -> dict[bytes, Any]:
        """All publishers on the topic by their identities."""
        found = self._node.get_publishers_info_by_topic(self._resolved)
        return {bytes(entry.endpoint_gid): entry for entry in found}

    def _make(self) -> None:
        self._before = set(self._published())
        self._made = self._node.create_publisher(
            self._message,
            self._topic,
            self._qos,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._find_own()

    def _find_own(self) -> None:
        """Find out which publisher is the own one.

        The graph does not say whose it is if nodes have the same name. It is the one that was not
        there before; if there are several, none is, and the claim is taken back.
        """
        if self._made is not None and self._own is None:
            new = self._published().keys() - self._before
            if len(new) == 1:
                self._own = new.pop()

    def _take_back(self) -> None:
        if self._made is not None:
            self._node.destroy_publisher(self._made)
        self._made, self._own = None, None

    def _rivals(self) -> list[Rival]:
        found = []
        me = self._node.get_fully_qualified_name()
        for identity, entry in self._published().items():
            name = f"{entry.node_namespace.rstrip('/')}/{entry.node_name}"
            kin = name == me or self._is_kin(entry.node_name, entry.node_namespace)
            if identity != self._own and (kin or self._strangers):
                found.append(Rival(identity, name, kin))
        return found

    def _is_kin(self, name: str, namespace: str) -> bool:
        try:
            offered = self._node.get_service_names_and_types_by_node(name, namespace)
        except Exception:  # it has gone meanwhile; rclpy has no error of its own for that
            return False
        return any(self._kin_service in types for _, types in offered)
