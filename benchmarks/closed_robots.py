"""Closed-loop robots of our own making, in the sizes of legged robots that are built (19 to 42).

Legs have hips in series, a knee driven through a four-bar linkage in their plane, and an ankle: one
axis driven by a crank and a rod, or two axes driven by two. Platforms have six legs of a universal
joint, an actuated slide and a ball.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hier_ik import Linkage, frame

__all__ = ["ROBOTS"]

Robot = tuple[Linkage, list[str]]
_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
#: Lengths of thigh and shin, of cranks, and the distance of the rods of an ankle [m].
_THIGH, _CRANK, _HALF = 0.4, 0.08, 0.05


class _Builder:
    """A linkage, and which of its joints are actuated."""

    def __init__(self, name: str) -> None:
        self.linkage, self.actuated = Linkage(name), list[str]()
        self.linkage.add_link("torso")

    def joint(
        self, name: str, kind: str, parent: str, xyz: tuple[float, float, float] = (0, 0, 0),
        axis: tuple[float, float, float] = _Y, *, motor: bool = False, value: float | None = None,
    ) -> str:  # fmt: skip
        """A tree joint to a new link of its name, which is returned."""
        self.linkage.add_link(name)
        axes = {} if kind == "universal" else {"axis": axis}
        self.linkage.add_joint(
            name, kind, parent, name, xyz=xyz, closure=False, value=value, **axes
        )  # fmt: skip
        if motor:
            self.actuated.append(name)
        return name

    def close(
        self, name: str, kind: str, a: str, at: tuple[float, float, float], b: str,
        end: tuple[float, float, float],
    ) -> None:  # fmt: skip
        """A closure between a point of link a and one of link b."""
        axes = {"axis": _Y} if kind == "revolute" else {}
        self.linkage.add_joint(
            name, kind, a, b, xyz=at, child_origin=frame(end), closure=True, **axes
        )  # fmt: skip

    def leg(self, side: str, y: float, hips: int, ankle: int) -> None:
        """Hips in series, a knee by a four-bar, and an ankle with one or two axes."""
        at = "torso"
        for i in range(hips):
            axis = (_X, _Y, _Z)[(i + 3 - hips) % 3] if hips == 3 else (_X, _Y)[i]
            place = (0.0, y, -0.1) if i == 0 else (0.0, 0.0, 0.0)
            at = self.joint(f"{side}.hip{i + 1}", "revolute", at, place, axis, motor=True)
        down = (0.0, 0.0, -_THIGH)
        crank = self.joint(
            f"{side}.knee_motor", "revolute", at, (0.0, 0.0, -0.05), motor=True
        )  # fmt: skip
        rod = self.joint(f"{side}.knee_rod", "revolute", crank, (-_CRANK, 0.0, 0.0))
        shin = self.joint(f"{side}.knee", "revolute", at, down)
        reach = (0.0, 0.0, 0.05 - _THIGH)
        self.close(f"{side}.knee_loop", "revolute", rod, reach, shin, (-_CRANK, 0.0, 0.0))
        if ankle == 1:
            foot = self.joint(f"{side}.ankle", "revolute", shin, down)
        else:
            foot = self.joint(f"{side}.ankle", "universal", shin, down)
        for i, across in enumerate([0.0] if ankle == 1 else [_HALF, -_HALF]):
            name = f"{side}.ankle_motor{i + 1}"
            crank = self.joint(name, "revolute", shin, (0.0, across, -0.1), motor=True)
            rod = self.joint(f"{side}.ankle_rod{i + 1}", "universal", crank, (-_CRANK, 0.0, 0.0))
            end, lever = (0.0, 0.0, 0.1 - _THIGH), (-_CRANK, across, 0.0)
            self.close(f"{side}.ankle_loop{i + 1}", "spherical", rod, end, foot, lever)

    def platform(self, side: str, y: float, height: float) -> None:
        """Six slides between two rings; the first leg carries the platform in the tree."""
        for i in range(6):
            low, high = (math.radians(60 * (i // 2 * 2) + s) for s in _ANGLES[i % 2])
            foot = (0.15 * math.cos(low), y + 0.15 * math.sin(low), 0.0)
            head = (0.1 * math.cos(high), y + 0.1 * math.sin(high), height)
            d = [h - f for h, f in zip(head, foot, strict=True)]
            length = math.hypot(*d)
            swing = self.joint(f"{side}.foot{i}", "universal", "torso", foot)
            # The slide is along z: x and y of the universal joint turn that to the other end.
            tilt = [math.atan2(-d[1], d[2]), math.asin(d[0] / length)]
            self.linkage.values[swing][:] = tilt
            slide = self.joint(
                f"{side}.slide{i}", "prismatic", swing, axis=_Z, motor=True, value=length
            )  # fmt: skip
            self.linkage.set_limits(slide, 0.5 * length, 1.5 * length)
            end = (head[0], head[1] - y, 0.0)
            if i == 0:
                ball = self.joint(f"{side}.ball", "universal", slide)
                self.linkage.values[ball][:] = [0.0, -tilt[1]]
                plate = self.joint(f"{side}.plate", "revolute", ball, axis=_Z)
                self.linkage.add_link(f"{side}.platform")
                self.linkage.add_joint(
                    f"{side}.platform", "fixed", plate, f"{side}.platform",
                    child_origin=frame(end), closure=False,
                )  # fmt: skip
            else:
                self.close(
                    f"{side}.head{i}", "spherical", slide, (0.0, 0.0, 0.0), f"{side}.platform", end
                )  # fmt: skip


_ANGLES = ((-10.0, -25.0), (10.0, 25.0))


def _legged(name: str, *, waist: bool, hips: int, ankle: int) -> Robot:
    b = _Builder(name)
    if waist:
        b.joint("waist", "revolute", "torso", axis=_Z, motor=True)
    for side, y in (("left", 0.1), ("right", -0.1)):
        b.leg(side, y, hips, ankle)
    return b.linkage, b.actuated


def _platforms(name: str, sides: dict[str, float], height: float) -> Robot:
    b = _Builder(name)
    for side, y in sides.items():
        b.platform(side, y, height)
    return b.linkage, b.actuated


#: Each makes a linkage and names its actuated joints.
ROBOTS: dict[str, Callable[[], Robot]] = {
    "runner": lambda: _legged("runner", waist=True, hips=2, ankle=1),
    "head": lambda: _platforms("head", {"head": 0.0}, 0.25),
    "walker": lambda: _legged("walker", waist=True, hips=2, ankle=2),
    "biped": lambda: _legged("biped", waist=False, hips=3, ankle=2),
    "platforms": lambda: _platforms("platforms", {"left": 0.2, "right": -0.2}, 0.25),
}
