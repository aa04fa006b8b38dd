"""The robot: where the rods are held, what they are made of, what they carry, what they may do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from continuum_ik.errors import RobotError
from continuum_ik.rod import RODS, Array
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.yamls import load_yaml

#: Largest description that is read [bytes].
LIMIT_BYTES = 64 * 1024


@dataclass(frozen=True)
class Rod:
    """One elastic rod of round cross-section.

    Attributes:
        radius: Of the cross-section [m].
        youngs_modulus: E [Pa].
        shear_modulus: G [Pa].
    """

    radius: float = 0.0013 / 2.0
    youngs_modulus: float = 207e9
    shear_modulus: float = 207e9 / (2.0 * 1.305)

    def __post_init__(self) -> None:
        try:
            checks.within("radius", self.radius, 1e-6, 1.0)
            checks.within("youngs_modulus", self.youngs_modulus, 1e3, 1e14)
            checks.within("shear_modulus", self.shear_modulus, 1e3, 1e14)
        except InvalidInput as error:
            raise RobotError(f"rod.{error.field}", error.problem) from None

    @property
    def area(self) -> float:
        """A [m^2]."""
        return math.pi * self.radius**2

    @property
    def bending_stiffness(self) -> float:
        """E I [N m^2]."""
        return self.youngs_modulus * math.pi * self.radius**4 / 4.0

    @property
    def axial_stiffness(self) -> float:
        """E A [N]."""
        return self.youngs_modulus * self.area

    @property
    def shear_stiffness(self) -> float:
        """G A [N]."""
        return self.shear_modulus * self.area


@dataclass(frozen=True)
class Load:
    """Load on the platform, in the base frame.

    Attributes:
        force: [N].
        moment: [N m].
        point: Where the force acts, in the platform frame [m]; it turns with the platform.
    """

    force: tuple[float, float, float] = (0.0, 0.0, 0.0)
    moment: tuple[float, float, float] = (0.0, 0.0, 0.0)
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        for name, limit in (("force", 1e6), ("moment", 1e6), ("point", 1e3)):
            try:
                values = checks.shape(name, getattr(self, name), (3,))
                if np.abs(values).max() > limit:
                    raise InvalidInput(name, f"must be at most {limit:g} in size")
            except InvalidInput as error:
                raise RobotError(f"load.{error.field}", error.problem) from None
            object.__setattr__(self, name, tuple(float(x) for x in values))


@dataclass(frozen=True)
class Limits:
    """What a pose may ask of the rods.

    Attributes:
        length: Shortest and longest length of a leg [m].
        curvature: Largest curvature anywhere along a rod [1/m]. The default keeps the strain of the
            tutorial's rods at 1 %, the elastic limit of spring steel.
        force: Largest force that a rod carries [N].
        height: Lowest place of a platform hole above its hole in the base [m].
    """

    length: tuple[float, float] = (0.05, 1.2)
    curvature: float = 15.0
    force: float = 50.0
    height: float = 0.02

    def __post_init__(self) -> None:
        try:
            low, high = checks.shape("length", self.length, (2,))
            checks.within("length", low, 1e-6, 1e3)
            checks.within("length", high, 1e-6, 1e3)
            if not low < high:
                raise InvalidInput("length", f"the shortest, {low:g}, must be below {high:g}")
            checks.within("curvature", self.curvature, 1e-6, 1e9)
            checks.within("force", self.force, 1e-9, 1e9)
            checks.within("height", self.height, 0.0, 1e3)
        except InvalidInput as error:
            raise RobotError(f"limits.{error.field}", error.problem) from None
        object.__setattr__(self, "length", (float(low), float(high)))


def hole_pattern(radius: float, alpha1: float, alpha2: float) -> Array:
    """Return the tutorial's six holes on a circle, three pairs; (6, 3) [m].

    Args:
        radius: Of the circle [m].
        alpha1: Angle between pairs [rad].
        alpha2: Angle within a pair [rad]. The platform's pattern has the two swapped.
    """
    i = np.arange(RODS)
    angle = (-alpha2 + ((i + 1) - (i + 1) % 2) * alpha2 + (i - i % 2) * alpha1) / 2.0
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(RODS)], axis=1)


def _points(name: str, points: ArrayLike) -> Array:
    try:
        array = checks.finite(name, points)
        if array.shape == (RODS, 2):
            array = np.concatenate([array, np.zeros((RODS, 1))], axis=1)
        array = checks.shape(name, array, (RODS, 3)).copy()
        if np.abs(array).max() > 100.0:
            raise InvalidInput(name, "a hole lies more than 100 m from the centre")
        distance = np.linalg.norm(array[:, None] - array[None], axis=2) + np.eye(RODS)
        if distance.min() < 1e-6:
            i, j = (int(k) for k in np.argwhere(distance < 1e-6)[0])
            raise InvalidInput(name, f"holes {i} and {j} lie at the same place")
    except InvalidInput as error:
        raise RobotError(error.field, error.problem) from None
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class ContinuumRobot:
    """A continuum Stewart-Gough robot; the default is the one of the tutorial.

    Attributes:
        name: For people.
        base: Holes in the base, where rods enter upright, base frame; (6, 3) [m].
        platform: Where the rods end, upright on the platform, platform frame; (6, 3) [m].
        rods: The six rods.
        load: On the platform.
        limits: On lengths, curvature and force.
        home_height: Height above the base, level and centred, at which a cold start begins [m].
    """

    name: str = "tutorial"
    base: Array = field(default_factory=lambda: _tutorial(100.0, 20.0))
    platform: Array = field(default_factory=lambda: _tutorial(20.0, 100.0))
    rods: tuple[Rod, ...] = (Rod(),) * RODS
    load: Load = Load()
    limits: Limits = Limits()
    home_height: float = 0.4

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _points("base", self.base))
        object.__setattr__(self, "platform", _points("platform", self.platform))
        if len(self.rods) != RODS:
            raise RobotError("rods", f"there must be {RODS}, got {len(self.rods)}")
        object.__setattr__(self, "rods", tuple(self.rods))
        _, high = self.limits.length
        try:
            checks.within("home_height", self.home_height, max(self.limits.height, 1e-6), high)
        except InvalidInput as error:
            raise RobotError(error.field, error.problem) from None

    def with_load(self, load: Load) -> ContinuumRobot:
        """Return the same robot under another load."""
        return replace(self, load=load)


def _tutorial(alpha1: float, alpha2: float) -> Array:
    return hole_pattern(0.087, math.radians(alpha1), math.radians(alpha2))


def _plain(value: Any) -> Any:
    """Read 207e9 as a number, which YAML 1.1 takes for a text unless it says 207.0e+9."""
    if isinstance(value, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", value):
        return float(value)
    return value


class _Section:
    """A mapping of the description, read with errors that name the place, and no key left over."""

    def __init__(self, where: str, data: Any, allowed: tuple[str, ...]) -> None:
        self.where = where
        if data is None:
            data = {}
        if not isinstance(data, Mapping):
            raise RobotError(where or "robot", f"must be a mapping, got {type(data).__name__}")
        for key in data:
            try:
                checks.one_of(self.place(str(key)), str(key), allowed)
            except InvalidInput as error:
                raise RobotError(error.field, error.problem) from None
        self.data = data

    def place(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def get(self, key: str) -> Any:
        return self.data.get(key)

    def number(self, key: str, default: float) -> float:
        if key not in self.data:
            return default
        try:
            return checks.number(self.place(key), _plain(self.data[key]))
        except InvalidInput as error:
            raise RobotError(error.field, error.problem) from None

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        value = self.data[key]
        if not isinstance(value, list) or len(value) != count:
            raise RobotError(self.place(key), f"must be a list of {count} numbers")
        try:
            return tuple(checks.number(self.place(key), _plain(x)) for x in value)
        except InvalidInput as error:
            raise RobotError(error.field, error.problem) from None


def load_robot(source: str | Path) -> ContinuumRobot:
    """Read a robot description in YAML; whatever it leaves out is the tutorial's.

    Args:
        source: The text, or a Path. See docs/continuum.md for the form.

    Raises:
        RobotError: Names the field, or the file and line, and says what is wrong.
    """
    name = str(source) if isinstance(source, Path) else "robot description"
    try:
        data = load_yaml(source, name=name, limit_bytes=LIMIT_BYTES)
    except InvalidInput as error:
        raise RobotError(error.field, error.problem) from None
    top = _Section("", data, ("name", "base", "platform", "rods", "load", "limits", "home_height"))
    default = ContinuumRobot()
    label = top.get("name") if "name" in top else default.name
    if not isinstance(label, str) or not 0 < len(label) <= 100:
        raise RobotError("name", "must be a text of 1 to 100 characters")
    return ContinuumRobot(
        name=label,
        base=_read_holes(top, "base", default.base),
        platform=_read_holes(top, "platform", default.platform),
        rods=_read_rods(top.get("rods")),
        load=_read_load(top.get("load")),
        limits=_read_limits(top.get("limits")),
        home_height=top.number("home_height", default.home_height),
    )


def _read_holes(top: _Section, key: str, default: Array) -> Array:
    if key not in top:
        return default
    holes = _Section(key, top.get(key), ("radius", "alpha1", "alpha2", "angles", "points"))
    if "points" in holes:
        if len(holes.data) > 1:
            raise RobotError(key, "points cannot be combined with another key")
        value = holes.get("points")
        if not isinstance(value, list):
            raise RobotError(f"{key}.points", "must be a list of six points")
        try:
            return _points(f"{key}.points", value)
        except ValueError:
            raise RobotError(f"{key}.points", "must be six points of 2 or 3 numbers") from None
    radius = holes.number("radius", 0.087)
    try:
        checks.within(f"{key}.radius", radius, 1e-4, 100.0)
    except InvalidInput as error:
        raise RobotError(error.field, error.problem) from None
    if "angles" in holes:
        if "alpha1" in holes or "alpha2" in holes:
            raise RobotError(key, "give either angles or alpha1 and alpha2")
        angle = np.radians(holes.numbers("angles", RODS))
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(RODS)], axis=1)
    small, large = (20.0, 100.0) if key == "platform" else (100.0, 20.0)
    alpha1, alpha2 = holes.number("alpha1", small), holes.number("alpha2", large)
    return hole_pattern(radius, math.radians(alpha1), math.radians(alpha2))


_ROD_KEYS = ("radius", "youngs_modulus", "shear_modulus", "poisson_ratio")


def _read_rod(section: _Section, default: Rod) -> Rod:
    E = section.number("youngs_modulus", default.youngs_modulus)
    ratio = default.youngs_modulus / (2.0 * default.shear_modulus)
    G = section.number("shear_modulus", E / (2.0 * ratio))
    if "poisson_ratio" in section:
        if "shear_modulus" in section:
            raise RobotError(section.where, "give either shear_modulus or poisson_ratio")
        nu = section.number("poisson_ratio", 0.0)
        if not -0.99 <= nu <= 0.5:
            raise RobotError(section.place("poisson_ratio"), f"must be in [-0.99, 0.5], got {nu:g}")
        G = E / (2.0 * (1.0 + nu))
    try:
        return Rod(section.number("radius", default.radius), E, G)
    except RobotError as error:
        raise RobotError(section.place(error.field.removeprefix("rod.")), error.problem) from None


def _read_rods(data: Any) -> tuple[Rod, ...]:
    section = _Section("rods", data, (*_ROD_KEYS, "override"))
    common = _read_rod(section, Rod())
    rods = [common] * RODS
    overrides = section.get("override") if "override" in section else []
    if not isinstance(overrides, list) or len(overrides) > RODS:
        raise RobotError("rods.override", "must be a list of at most six mappings")
    seen: set[int] = set()
    for k, entry in enumerate(overrides):
        where = f"rods.override[{k}]"
        one = _Section(where, entry, ("rod", *_ROD_KEYS))
        number = one.get("rod")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < RODS:
            raise RobotError(f"{where}.rod", f"must be a rod number 0 to {RODS - 1}")
        if number in seen:
            raise RobotError(f"{where}.rod", f"rod {number} is overridden twice")
        seen.add(number)
        rods[number] = _read_rod(one, common)
    return tuple(rods)


def _read_load(data: Any) -> Load:
    section = _Section("load", data, ("force", "moment", "point"))
    values: dict[str, Any] = {
        key: section.numbers(key, 3) for key in ("force", "moment", "point") if key in section
    }
    return Load(**values)


def _read_limits(data: Any) -> Limits:
    section = _Section("limits", data, ("length", "curvature", "force", "height"))
    default = Limits()
    length = section.numbers("length", 2) if "length" in section else default.length
    return Limits(
        length=(length[0], length[1]),
        curvature=section.number("curvature", default.curvature),
        force=section.number("force", default.force),
        height=section.number("height", default.height),
    )
