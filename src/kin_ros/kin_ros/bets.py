"""Bets on private parts of rclpy: each is looked at when a node starts, and logged if it is lost.

A bet names the versions it was made for and a date by which it is to be gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rclpy.logging import get_logger

__all__ = ["BETS", "Bet"]

#: Every bet of this process, by its name.
BETS: dict[str, Bet] = {}


@dataclass(frozen=True)
class Bet:
    """Something that is private to rclpy and rested on here.

    Attributes:
        name: What of ours rests on it.
        otherwise: What happens where it does not hold.
        made_for: The versions of rclpy for which it was made.
        remove_by: When it is to be gone.
        told: What was missing when it was last looked at; it is logged once.
    """

    name: str
    otherwise: str
    made_for: str = "rclpy 7.1.0 to 9.1.2"
    remove_by: date = date(2029, 5, 31)  # the end of Jazzy
    told: set[str] = field(default_factory=set, compare=False)

    def __post_init__(self) -> None:
        """Enter it in the list."""
        BETS[self.name] = self

    def holds(self, *parts: tuple[Any, ...]) -> bool:
        """Whether everything is there; a warning says what is not.

        Args:
            parts: An object, followed by the names of what it must have.
        """
        missing = {
            f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
            for owner, *names in parts
            for name in names
            if not hasattr(owner, name)
        }
        if missing - self.told:
            self.told.update(missing)
            get_logger("kin_ros").warning(
                f"{self.name}: made for {self.made_for}, but rclpy {rclpy_version()} has no"
                f" {', '.join(sorted(missing))}; {self.otherwise}. To be removed by"
                f" {self.remove_by.isoformat()}."
            )
        return not missing


def rclpy_version() -> str:
    """The version of rclpy that is installed."""
    for name in ("ros-rclpy", "rclpy"):  # the wheel's own, and that of a ROS installation
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of an unknown version"
