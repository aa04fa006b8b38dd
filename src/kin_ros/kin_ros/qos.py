"""Quality of service by purpose. Every profile can be overridden by the usual QoS parameters."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

__all__ = ["COMMAND", "LATCHED", "SENSOR", "SERVICE", "STATE", "profile"]


def profile(depth: int, *, reliable: bool = True, latched: bool = False) -> QoSProfile:
    """Return a profile that keeps the last messages.

    Args:
        depth: How many are kept.
        reliable: Whether a lost one is sent again.
        latched: Whether a late subscriber gets those that are kept.
    """
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )


#: Commands and targets: delivered, and only the last one counts.
COMMAND = profile(1)
#: Streams of measurements: a lost one is replaced by the next.
SENSOR = profile(5, reliable=False)
#: States and results: delivered, with some history.
STATE = profile(10)
#: Requests and answers: with rclpy's own depth of 10, the eleventh of a burst is lost without a
#: word.
SERVICE = profile(1000)
#: Solution sets and descriptions: a late subscriber gets the last one.
LATCHED = profile(1, latched=True)
