"""Closed mechanisms: kinematic loops of equation (2) of the paper.

A loop is a chain of constant transforms and of motions (a rotation about, or a translation along,
X, Y or Z by one variable) whose product is the identity. Variables may be shared between loops.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core import checks
from kin_core.rotations import inverse_transform
from kin_solvers import border
from kin_solvers.errors import MechanismError, SizeError, own_errors

__all__ = [
    "AXES",
    "Constant",
    "Loop",
    "Mechanism",
    "Motion",
    "Variable",
    "rotation",
    "translation",
]

Matrix = NDArray[np.float64]
T = TypeVar("T")

AXES = ("x", "y", "z")
#: What a variable may be.
KINDS = ("rotation", "translation")
MAX_JOINTS_PER_LOOP = 14
MAX_VARIABLES = 64
MAX_LOOPS = 32
#: Factors of a loop at most, constants included.
MAX_FACTORS = 1000
#: Largest magnitude of a length or a range [m, rad].
MAX_MAGNITUDE = 1e6
#: Largest defect of the rotation part of a constant transform.
MAX_DEFECT = 1e-6


@dataclass(frozen=True)
class Variable:
    """One unknown of the mechanism.

    Attributes:
        name: Its name.
        kind: "rotation" [rad] or "translation" [m].
        lower: Lower end of its range [rad, m].
        upper: Upper end of its range [rad, m]; a rotation may span more than a turn.
    """

    name: str
    kind: str = "rotation"
    lower: float = -math.pi
    upper: float = math.pi

    def __post_init__(self) -> None:
        with own_errors(MechanismError):
            where = f"variables.{checks.title('variables.name', self.name)}"
            border.choice(f"{where}.type", self.kind, KINDS, MechanismError)
            lower = checks.number(f"{where}.range", self.lower)
            upper = checks.number(f"{where}.range", self.upper)
        _check_range(f"{where}.range", lower, upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def cyclic(self) -> bool:
        """Whether it is an angle whose range is a whole turn or more."""
        return self.kind == "rotation" and self.upper - self.lower >= 2.0 * math.pi - 1e-9


@dataclass(frozen=True)
class Constant:
    """A constant transform K of equation (2).

    Attributes:
        matrix: Homogeneous transform, shape (4, 4) [m].
    """

    matrix: Matrix = field(repr=False)


@dataclass(frozen=True)
class Motion:
    """A motion H(x) or J(theta) of equation (2).

    Attributes:
        variable: Index of the variable.
        axis: 0, 1, 2 for X, Y, Z.
        sign: +1, or -1 for a motion by the negative variable.
    """

    variable: int
    axis: int = 2
    sign: int = 1

    def __post_init__(self) -> None:
        for name, value in (("variable", self.variable), ("axis", self.axis), ("sign", self.sign)):
            border.whole(f"motion.{name}", value, -(1 << 63), refusal=MechanismError)


@dataclass(frozen=True)
class Loop:
    """One kinematic loop.

    Attributes:
        factors: The factors of equation (2), in order.
        closure: "pose": the product is the identity; "point": only its translation is zero, as for
            a loop closed by a ball joint.
        name: A name for messages.
    """

    factors: tuple[Constant | Motion, ...]
    closure: str = "pose"
    name: str = "loop"

    @property
    def motions(self) -> tuple[Motion, ...]:
        """The motions among the factors."""
        return tuple(f for f in self.factors if isinstance(f, Motion))


@dataclass(frozen=True)
class Mechanism:
    """A set of loops over a set of variables.

    Attributes:
        name: A name for messages.
        variables: The unknowns.
        loops: The loops.
        target: For a serial arm: pose of the tip that closes the loop, shape (4, 4) [m].
        prepared: What has been made of it that does not depend on the target.
        made: What has been made of it.
    """

    name: str
    variables: tuple[Variable, ...]
    loops: tuple[Loop, ...]
    target: Matrix | None = field(default=None, repr=False)
    prepared: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    made: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to other processes: not what has been made of it."""
        return {**self.__dict__, "prepared": {}, "made": {}}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the variables with their ranges and of the loops, target included."""
        digest = hashlib.sha256()
        for v in self.variables:
            digest.update(f"{v.name!r} {v.kind} {float(v.lower)!r} {float(v.upper)!r};".encode())
        for loop in self.loops:
            digest.update(f"{loop.closure}:".encode())
            for factor in loop.factors:
                if isinstance(factor, Constant):
                    digest.update(np.asarray(factor.matrix, dtype="<f8").tobytes())
                else:
                    digest.update(f"{factor.variable} {factor.axis} {factor.sign},".encode())
        return digest.hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    def index(self, name: str) -> int:
        """Index of a variable by name."""
        with own_errors(MechanismError):
            checks.one_of("variable", name, self.names)
        return self.names.index(name)

    def with_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> Mechanism:
        """The same mechanism with other ranges for some of its variables."""
        if not isinstance(ranges, Mapping):
            raise MechanismError(
                "ranges", f"must map names to (lower, upper), got {checks.shown(ranges)}"
            )
        if not ranges:
            return self
        variables = list(self.variables)
        for name, ends in ranges.items():
            k = self.index(name)
            lower, upper = border.array(f"variables.{name}.range", ends, (2,), MechanismError)
            variables[k] = replace(variables[k], lower=float(lower), upper=float(upper))
        return replace(self, variables=tuple(variables))

    def with_target(self, target: ArrayLike) -> Mechanism:
        """The same serial arm closed at another pose of its tip.

        Args:
            target: Homogeneous transform of the tip in the base, shape (4, 4) [m].
        """
        if self.target is None:
            raise MechanismError("target", f"{self.name} is no serial arm with a target pose")
        matrix = _transform("target", target)
        loop = self.loops[0]
        closing = Constant(inverse_transform(matrix))
        loops = (replace(loop, factors=(*loop.factors[:-1], closing)), *self.loops[1:])
        # All the rest has been checked, and what was made of it is kept in ``prepared``.
        arm = object.__new__(Mechanism)
        arm.__dict__.update(self.__dict__, loops=loops, target=matrix, made={})
        arm.__dict__.pop("fingerprint", None)
        return arm

    def product(self, loop: int, q: ArrayLike) -> Matrix:
        """The product of equation (2) of one loop at a configuration.

        Args:
            loop: Index of the loop.
            q: Configuration, shape (V,) [rad, m].

        Returns:
            Homogeneous transform, shape (4, 4); the identity where the loop is closed.
        """
        values = border.array("q", q, (len(self.variables),), MechanismError)
        border.whole("loop", loop, 0, len(self.loops) - 1, MechanismError)
        result = np.eye(4)
        for factor in self.loops[loop].factors:
            if isinstance(factor, Constant):
                result = result @ factor.matrix
            else:
                kind = self.variables[factor.variable].kind
                value = factor.sign * values[factor.variable]
                move = rotation if kind == "rotation" else translation
                result = result @ move(factor.axis, value)
        return result

    def residual(self, q: ArrayLike) -> float:
        """Largest violation of the loop equations at a configuration, shape (V,) [1, m]."""
        worst = 0.0
        for index, loop in enumerate(self.loops):
            error = self.product(index, q) - np.eye(4)
            if loop.closure == "point":
                error = error[:3, 3:]
            worst = max(worst, float(np.abs(error).max()))
        return worst


def rotation(axis: int, angle: float) -> Matrix:
    """Rotation about X, Y or Z by an angle [rad], as a homogeneous transform."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    result = np.eye(4)
    result[i, i] = result[j, j] = c
    result[i, j], result[j, i] = -s, s
    return result


def translation(axis: int, distance: float) -> Matrix:
    """Translation along X, Y or Z by a distance [m], as a homogeneous transform."""
    result = np.eye(4)
    result[axis, 3] = distance
    return result


def _transform(where: str, matrix: ArrayLike) -> Matrix:
    """A rigid transform, checked; shape (4, 4)."""
    result = border.array(where, matrix, (4, 4), MechanismError).copy()
    if np.abs(result).max() > MAX_MAGNITUDE:
        raise MechanismError(where, f"a length is larger than {MAX_MAGNITUDE:g} m")
    R = result[:3, :3]
    defect = np.abs(R @ R.T - np.eye(3)).max()
    if defect > MAX_DEFECT or np.linalg.det(R) < 0.0:
        raise MechanismError(where, "the upper left 3x3 block is no rotation")
    if np.abs(result[3] - (0.0, 0.0, 0.0, 1.0)).max() > 0.0:
        raise MechanismError(where, "the last row must be 0, 0, 0, 1")
    # Nearest rotation: the bound on rounding counts on orthonormal constants. It differs from R by
    # about half the defect.
    if defect > 6e-16:
        u, _, vt = np.linalg.svd(R)
        nearest = u @ vt
        if np.abs(nearest - R).max() > 1e-15:
            result[:3, :3] = nearest
    return result


def _check(mechanism: Mechanism) -> None:
    """Refuse what is no mechanism, with the place and the reason."""
    border.text("name", mechanism.name, MechanismError)
    variables = _several("variables", mechanism.variables, Variable, MAX_VARIABLES)
    loops = _several("loops", mechanism.loops, Loop, MAX_LOOPS)
    object.__setattr__(mechanism, "variables", variables)
    object.__setattr__(mechanism, "loops", loops)
    seen: set[str] = set()
    for variable in variables:
        if variable.name in seen:
            raise MechanismError(f"variables.{variable.name}", "this name stands twice")
        seen.add(variable.name)
    used: set[int] = set()
    for number, loop in enumerate(loops):
        border.text(f"loops[{number}].name", loop.name, MechanismError)
        used |= _check_loop(f"loops[{number}] ({loop.name})", loop, len(variables))
    if mechanism.target is not None:
        object.__setattr__(mechanism, "target", _transform("target", mechanism.target))
    idle = [v.name for k, v in enumerate(variables) if k not in used]
    if idle:
        raise MechanismError("variables", f"{', '.join(idle)} appear in no loop")
    _check_connected(loops)


def _several(where: str, items: Any, kind: type[T], most: int) -> tuple[T, ...]:
    """Some objects of a class, not too many."""
    if isinstance(items, (str, bytes)) or not isinstance(items, Sequence):
        raise MechanismError(
            where, f"must be a tuple of {kind.__name__} objects, got {checks.shown(items)}"
        )
    if not items:
        raise MechanismError(where, "there are none")
    if len(items) > most:
        raise SizeError(f"{where}: {len(items)} is more than the limit of {most}")
    for number, item in enumerate(items):
        if not isinstance(item, kind):
            raise MechanismError(
                f"{where}[{number}]", f"must be a {kind.__name__}, got {checks.shown(item)}"
            )
    return tuple(items)


def _check_range(where: str, lower: float, upper: float) -> None:
    if not lower < upper:
        raise MechanismError(
            where, f"must have a lower end below its upper end, got [{lower}, {upper}]"
        )
    if max(abs(lower), abs(upper)) > MAX_MAGNITUDE:
        raise MechanismError(where, f"reaches beyond {MAX_MAGNITUDE:g}")
    if upper - lower < 1e-12 * (1.0 + abs(lower)):
        raise MechanismError(where, "is of no length; write it as a constant")


def _check_loop(where: str, loop: Loop, count: int) -> set[int]:
    border.choice(f"{where}.closure", loop.closure, ("pose", "point"), MechanismError)
    used: set[int] = set()
    factors = _several(f"{where}.chain", loop.factors, object, MAX_FACTORS)
    for k, factor in enumerate(factors):
        if isinstance(factor, Constant):
            _transform(f"{where}.chain[{k}]", factor.matrix)
        elif isinstance(factor, Motion):
            if not 0 <= factor.variable < count:
                raise MechanismError(f"{where}.chain[{k}]", "names an unknown variable")
            if factor.axis not in (0, 1, 2) or factor.sign not in (-1, 1):
                raise MechanismError(f"{where}.chain[{k}]", "axis must be x, y or z, sign +1 or -1")
            used.add(int(factor.variable))
        else:
            raise MechanismError(
                f"{where}.chain[{k}]", f"must be a Constant or a Motion, got {checks.shown(factor)}"
            )
    joints = len(loop.motions)
    if joints < 2:
        raise MechanismError(where, f"has {joints} motions; a loop needs at least 2")
    if joints > MAX_JOINTS_PER_LOOP:
        raise SizeError(
            f"{where}: {joints} motions are more than the limit of {MAX_JOINTS_PER_LOOP}"
        )
    return used


def _check_connected(loops: Sequence[Loop]) -> None:
    """Loops that share no variable are problems of their own: their solutions would multiply."""
    groups: list[set[int]] = []
    for loop in loops:
        mine = {m.variable for m in loop.motions}
        apart = []
        for group in groups:
            if group & mine:
                mine |= group
            else:
                apart.append(group)
        groups = [*apart, mine]
    if len(groups) > 1:
        raise MechanismError(
            "loops",
            f"they fall into {len(groups)} groups that share no variable; solve each by itself",
        )
