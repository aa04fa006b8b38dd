"""Who goes first on a busy core: the voter before the simulated arm before the processors.

The voter does least and everything waits for it; a processor that is put off is masked. Processors
above the voter keep it from its core while they yield to each other.
"""

from __future__ import annotations

import os

__all__ = ["PROCESSORS", "SIMULATOR", "VOTER", "raise_thread"]

PROCESSORS, SIMULATOR, VOTER = range(3)
"""Ranks: added to ``realtime_priority``."""


def raise_thread(priority: int, rank: int) -> bool:
    """Give the calling thread a real-time priority, if that is allowed; what it forks has none.

    Args:
        priority: The parameter ``realtime_priority``; 0: leave the thread as it is.
        rank: One of the ranks above.
    """
    if priority <= 0:
        return False
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority + rank))
    except PermissionError:
        return False
    return True
