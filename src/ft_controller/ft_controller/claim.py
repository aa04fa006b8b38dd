"""One driver for one arm: who publishes on a topic that only one may publish on.

A node first looks whether somebody publishes there already. If nobody does, it makes its publisher
and waits once more, without using it: two that started at the same time see each other then, and
the one with the lower identity goes on while the other takes its publisher back. Only then it
drives. Whoever finds the topic taken waits, and says for whom.

Should two drive after all, because they found each other too late, the lower identity stays and the
other stops. A publisher of another kind takes no part in this: whoever finds one beside itself
while it drives stops, rather than fight over the arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Claim", "Rival", "Standing"]


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
