"""One driver for one arm: who publishes on a topic that only one may publish on.

A node first looks whether somebody publishes there already. If nobody does, it makes its publisher
and waits once more, without using it: two that started at the same time see each other then, and
the one with the lower identity goes on while the other takes its publisher back. Only then it
drives. Whoever finds the topic taken waits, and says for whom.

Should two drive after all, because they found each other too late, the lower identity stays and the
other stops. A publisher of another kind takes no part in this: whoever finds one beside itself
while it drives stops, rather than fight over the arm.

The decision (:class:`Claim`) knows no ROS; :class:`Contender` keeps it for a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

__all__ = ["Claim", "Contender", "Rival", "Standing"]


class Standing(Enum):
    """Where a claim stands."""

    LOOKING = "looking"
    CLAIMING = "claiming"
    DRIVING = "driving"
    LOST = "lost"


@dataclass(frozen=True)
class Rival:
    """Another publisher on the topic.

    Attributes:
        identity: Of the publisher, in the whole graph.
        node: Full name of its node.
        kin: Whether it keeps to the same rules.
    """

    identity: bytes
    node: str
    kin: bool


class Claim:
    """The decision, from what is seen of the graph at some times.

    Attributes:
        standing: Where it stands.
        rival: Whom it waits for, or lost to.
    """

    def __init__(self, seconds: float) -> None:
        """Begin to look.

        Args:
            seconds: Half of it is spent looking, half of it claiming; found beside each other for
                longer than this, two do not both go on. 0: drive without looking.
        """
        self._seconds = seconds
        self.standing = Standing.LOOKING if seconds > 0.0 else Standing.DRIVING
        self.rival: Rival | None = None
        self._since = self._alone_at = -1.0

    def look(self, now: float, own: bytes | None, rivals: Sequence[Rival]) -> Standing:
        """Judge what is seen.

        Args:
            now: Steady time [s].
            own: Identity of the own publisher; None: there is none, or it is not known yet.
            rivals: All other publishers.
        """
        if self._seconds == 0.0:
            return self.standing
        if self._since < 0.0:
            self._since = self._alone_at = now
        {
            Standing.LOOKING: self._looking,
            Standing.CLAIMING: self._claiming,
            Standing.DRIVING: self._driving,
            Standing.LOST: lambda *_: None,
        }[self.standing](now, own, rivals)
        return self.standing

    def _go(self, standing: Standing, now: float) -> None:
        self.standing, self._since, self._alone_at = standing, now, now

    def _looking(self, now: float, own: bytes | None, rivals: Sequence[Rival]) -> None:
        if rivals:
            self.rival, self._since = min(rivals, key=lambda r: r.identity), now
        elif now - self._since >= 0.5 * self._seconds:
            self.rival = None
            self._go(Standing.CLAIMING, now)

    def _claiming(self, now: float, own: bytes | None, rivals: Sequence[Rival]) -> None:
        stronger = [r for r in rivals if own is None or not r.kin or r.identity < own]
        if stronger:
            self.rival = stronger[0]
            self._go(Standing.LOOKING, now)
        elif own is None:
            self._since = now  # the graph does not show the publisher yet
        elif now - self._since >= 0.5 * self._seconds:
            self._go(Standing.DRIVING, now)

    def _driving(self, now: float, own: bytes | None, rivals: Sequence[Rival]) -> None:
        if not rivals:
            self._alone_at = now
            return
        # Who has just come may still be claiming, and will take its publisher back. Who should
        # give way gets as long again to do so.
        weaker = all(r.kin and own is not None and r.identity > own for r in rivals)
        if now - self._alone_at > (3.0 if weaker else 1.5) * self._seconds:
            self.rival = min(rivals, key=lambda r: r.identity)
            self._go(Standing.LOST, now)


class Contender:
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

    def look(self, now: float, change: Callable[[Standing], None]) -> None:
        """Look at the graph and act.

        Args:
            now: Steady time [s].
            change: Gets every new standing, before a publisher is taken back and after one is made.
        """
        before = self._claim.standing
        self._find_own()
        after = self._claim.look(now, self._own, self._rivals())
        self.sentence = self._say()
        if after == before:
            return
        if after == Standing.CLAIMING:
            self._make()
        if after == Standing.DRIVING:
            self.publisher = self._made
        else:
            self.publisher = None
        change(after)
        if after in (Standing.LOOKING, Standing.LOST):
            self._take_back()

    def again(self) -> None:
        """Begin anew after the claim was lost."""
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

    def _identities(self) -> set[bytes]:
        return {bytes(p.endpoint_gid) for p in self._published()}

    def _published(self) -> list[Any]:
        return list(self._node.get_publishers_info_by_topic(self._resolved))

    def _make(self) -> None:
        self._before = self._identities()
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
            new = self._identities() - self._before
            if len(new) == 1:
                self._own = new.pop()

    def _take_back(self) -> None:
        if self._made is not None:
            self._node.destroy_publisher(self._made)
        self._made, self._own = None, None

    def _rivals(self) -> list[Rival]:
        found = []
        me = self._node.get_fully_qualified_name()
        for entry in self._published():
            identity = bytes(entry.endpoint_gid)
            if identity == self._own:
                continue
            space = entry.node_namespace.rstrip("/")
            name = f"{space}/{entry.node_name}"
            kin = name == me or self._is_kin(entry.node_name, entry.node_namespace)
            if kin or self._strangers:
                found.append(Rival(identity, name, kin))
        return found

    def _is_kin(self, name: str, namespace: str) -> bool:
        try:
            offered = self._node.get_service_names_and_types_by_node(name, namespace)
        except Exception:  # it has gone meanwhile; rclpy has no error of its own for that
            return False
        return any(self._kin_service in types for _, types in offered)
