"""Quality of service by purpose. Every profile can be overridden by the usual QoS parameters."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

__all__ = ["COMMAND", "LATCHED", "SENSOR", "SERVICE", "STATE"]


def _profile(
    reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int
) -> QoSProfile:
    return QoSProfile(
        reliability=reliability,
        durability=durability,
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )


#: Commands and targets: delivered, and only the last one counts.
COMMAND = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 1)
#: Streams of measurements: a lost one is replaced by the next.
SENSOR = _profile(ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE, 5)
#: States and results: delivered, with some history.
STATE = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
#: Requests and answers: with rclpy's own depth of 10, the eleventh of a burst is lost without a
#: word.
SERVICE = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 1000)
#: Solution sets and descriptions: a late subscriber gets the last one.
LATCHED = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1)
