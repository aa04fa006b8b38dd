"""Expected messages against those that came: field by field, with tolerances.

A tolerance file maps topics to rules::

    /continuum_ik/solve_ik/_response:
      absolute: 1.0e-9          # for all numbers that no field rule is for
      relative: 1.0e-9
      fields:
        status.solve_time: ignore
        status.message: ignore
        joints: {angle: true, absolute: 1.0e-8}            # differences are taken around the circle
        boxes: {unordered: 6, absolute: 1.0e-6}            # rows of 6 numbers in any order
        solutions: {unordered: true, absolute: 1.0e-6}     # messages or numbers in any order
    /topic/that/does/not/matter: ignore

Names of fields may hold ``*``; elements of arrays share the name of their field. Texts, booleans
and whole numbers must be equal unless a rule says otherwise; not-a-number is equal to itself.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree

from kin_core.checks import number
from kin_core.errors import InvalidInput
from kin_core.yamls import load_yaml

__all__ = ["Difference", "Rule", "Tolerances", "Verdict", "compare"]

_TURN = 2.0 * math.pi


@dataclass(frozen=True)
class Rule:
    """How two values of a field may differ.

    Attributes:
        ignore: Not at all.
        absolute: Largest difference.
        relative: Largest difference as a share of the expected value; the larger of both counts.
        angle: Take differences around the circle [rad].
        unordered: Rows of so many numbers may come in any order; 1 for single values; 0: in order.
    """

    ignore: bool = False
    absolute: float = 0.0
    relative: float = 0.0
    angle: bool = False
    unordered: int = 0

    def allowed(self, expected: Any) -> Any:
        """The largest difference for an expected value, or an array of them."""
        finite = np.where(np.isfinite(expected), expected, 0.0)
        return np.maximum(self.absolute, self.relative * np.abs(finite))

    def difference(self, expected: Any, got: Any) -> Any:
        """The difference of two values, or arrays of them; 0 where both are not a number."""
        with np.errstate(invalid="ignore"):
            gap = np.abs(np.asarray(got, float) - np.asarray(expected, float))
        if self.angle:
            gap = np.abs((gap + math.pi) % _TURN - math.pi)
        gap = np.where(np.isnan(expected) & np.isnan(got), 0.0, gap)
        same = np.asarray(expected) == np.asarray(got)  # equal infinities
        return np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))


_RULE_KEYS = {"absolute", "relative", "angle", "unordered"}


def _read_rule(where: str, value: Any, base: Rule) -> Rule:
    if value == "ignore":
        return Rule(ignore=True)
    if not isinstance(value, Mapping):
        raise InvalidInput(where, "expected ignore or a mapping")
    for key in value:
        if key not in _RULE_KEYS:
            raise InvalidInput(where, f"unknown key '{key}' (known: {', '.join(_RULE_KEYS)})")
    for key in ("absolute", "relative"):
        if key in value and number(f"{where}.{key}", value[key]) < 0.0:
            raise InvalidInput(f"{where}.{key}", "must not be negative")
    rows = value.get("unordered", base.unordered)
    if isinstance(rows, bool):
        rows = int(rows)
    if not isinstance(rows, int) or rows < 0:
        raise InvalidInput(f"{where}.unordered", "must be true or the length of a row")
    return Rule(
        absolute=float(value.get("absolute", base.absolute)),
        relative=float(value.get("relative", base.relative)),
        angle=bool(value.get("angle", base.angle)),
        unordered=rows,
    )


@dataclass(frozen=True)
class _TopicRules:
    base: Rule
    fields: Mapping[str, Rule]

    def find(self, path: str) -> Rule:
        if path in self.fields:
            return self.fields[path]
        matching = [pattern for pattern in self.fields if fnmatch.fnmatchcase(path, pattern)]
        return self.fields[max(matching, key=len)] if matching else self.base


class Tolerances:
    """The rules of a tolerance file.

    Args:
        rules: What the file holds.
        name: What to call it in errors.

    Raises:
        InvalidInput: It is not of that form.
    """

    def __init__(self, rules: Any, name: str = "tolerances") -> None:
        if rules is None:
            rules = {}
        if not isinstance(rules, Mapping):
            raise InvalidInput(name, "expected a mapping from topics to rules")
        self._topics: dict[str, _TopicRules] = {}
        for topic, entry in rules.items():
            where = f"{name}, {topic}"
            if entry == "ignore":
                self._topics[str(topic)] = _TopicRules(Rule(ignore=True), {})
                continue
            if not isinstance(entry, Mapping):
                raise InvalidInput(where, "expected ignore or a mapping")
            rest = {key: value for key, value in entry.items() if key != "fields"}
            base = _read_rule(where, rest, Rule())
            fields = entry.get("fields") or {}
            if not isinstance(fields, Mapping):
                raise InvalidInput(f"{where}.fields", "expected a mapping")
            self._topics[str(topic)] = _TopicRules(
                base,
                {str(k): _read_rule(f"{where}.{k}", v, base) for k, v in fields.items()},
            )

    @classmethod
    def read(cls, file: Path) -> Tolerances:
        """Read a file.

        Raises:
            InvalidInput: It cannot be read, or is not of that form.
        """
        return cls(load_yaml(file), str(file))

    @property
    def topics(self) -> list[str]:
        """Topics that are compared."""
        return [topic for topic, rules in self._topics.items() if not rules.base.ignore]

    def of(self, topic: str) -> _TopicRules:
        """The rules of a topic; without any, everything must be equal."""
        return self._topics.get(topic, _TopicRules(Rule(), {}))


@dataclass(frozen=True)
class Difference:
    """One value that is not as expected.

    Attributes:
        topic: The topic.
        message: Number of the message on that topic, from 0.
        path: Field, with the index inside arrays.
        expected: What the bag holds.
        got: What came.
        excess: Difference over what is allowed; infinite if nothing is.
    """

    topic: str
    message: int
    path: str
    expected: Any
    got: Any
    excess: float

    def __str__(self) -> str:
        return (
            f"{self.topic} message {self.message}, {self.path}: "
            f"expected {_short(self.expected)}, got {_short(self.got)}"
            + (f" ({self.excess:.3g} times what is allowed)" if math.isfinite(self.excess) else "")
        )


def _short(value: Any) -> str:
    text = repr(value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value)
    return text if len(text) <= 120 else text[:117] + "..."


@dataclass
class Verdict:
    """The result of a comparison.

    Attributes:
        compared: Number of messages compared, per topic.
        differences: What is not as expected, in order; at most a hundred per message.
        series: Expected and got values of each numeric field, for plots.
    """

    compared: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    series: dict[tuple[str, str], tuple[list[float], list[float]]] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Everything is as expected, and something was compared."""
        return not self.differences and sum(self.compared.values()) > 0

    @property
    def first(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None

    @property
    def worst(self) -> Difference | None:
        """The difference that exceeds its tolerance most."""
        return max(self.differences, key=lambda d: d.excess, default=None)


def _fields(message: Any) -> list[str]:
    """Names of the fields; constants stand among them in decoded messages."""
    names = message.__dataclass_fields__
    return [name for name in names if not (name.isupper() or name.startswith("_"))]


def _is_message(value: Any) -> bool:
    return hasattr(value, "__dataclass_fields__")


_PER_MESSAGE = 100
_SERIES_LIMIT = 20000


class _Comparison:
    """Compares the messages of one topic."""

    def __init__(self, topic: str, rules: _TopicRules, verdict: Verdict) -> None:
        self.topic = topic
        self.rules = rules
        self.verdict = verdict
        self.message = 0
        self.left = 0

    def run(self, expected: Any, got: Any) -> None:
        """Compare the next message with the one that came for it."""
        self.left = _PER_MESSAGE
        self.walk("", "", expected, got)
        self.message += 1

    def note(self, path: str, expected: Any, got: Any, excess: float = math.inf) -> None:
        if self.left > 0:
            self.left -= 1
            self.verdict.differences.append(
                Difference(self.topic, self.message, path, expected, got, excess)
            )

    def walk(self, path: str, name: str, expected: Any, got: Any) -> None:
        """Compare two values; ``name`` is the path without indices."""
        rule = self.rules.find(name) if name else self.rules.base
        if rule.ignore and name:
            return
        if _is_message(expected):
            for each in _fields(expected):
                self.walk(
                    f"{path}.{each}" if path else each,
                    f"{name}.{each}" if name else each,
                    getattr(expected, each),
                    getattr(got, each),
                )
        elif isinstance(expected, np.ndarray):
            self.arrays(path, name, rule, expected, got)
        elif isinstance(expected, (list, tuple)):
            self.lists(path, name, rule, list(expected), list(got))
        elif isinstance(expected, (bool, str, bytes)):
            if expected != got:
                self.note(path, expected, got)
        else:
            self.arrays(path, name, rule, np.atleast_1d(expected), np.atleast_1d(got))

    def arrays(
        self, path: str, name: str, rule: Rule, expected: NDArray[Any], got: NDArray[Any]
    ) -> None:
        if expected.shape != got.shape:
            self.note(f"{path} (length)", len(expected), len(got))
            return
        self.remember(name, expected, got)
        if rule.unordered:
            self.rows(path, rule, expected, got)
            return
        gap = rule.difference(expected, got)
        allowed = rule.allowed(expected)
        bad = np.flatnonzero(~(gap <= allowed))
        for index in bad[: self.left]:
            limit = float(allowed[index])
            excess = float(gap[index]) / limit if limit > 0.0 else math.inf
            where = path if len(expected) == 1 else f"{path}[{index}]"
            self.note(where, expected[index], got[index], excess)

    def rows(self, path: str, rule: Rule, expected: NDArray[Any], got: NDArray[Any]) -> None:
        """Both must hold the same rows, in any order."""
        if len(expected) % rule.unordered:
            self.note(f"{path} (length)", f"a multiple of {rule.unordered}", len(expected))
            return
        old = np.asarray(expected, float).reshape(-1, rule.unordered)
        new = np.asarray(got, float).reshape(-1, rule.unordered)
        if not len(old):
            return
        for rows, others, swapped in ((old, new, False), (new, old, True)):
            distance, nearest = _nearest(rows, others, rule.angle)
            allowed = np.maximum(rule.absolute, rule.relative * np.abs(rows).max(axis=1))
            for index in np.flatnonzero(~(distance <= allowed))[: self.left]:
                excess = float(distance[index] / allowed[index]) if allowed[index] else math.inf
                pair = (rows[index].tolist(), others[nearest[index]].tolist())
                first, second = pair[::-1] if swapped else pair
                self.note(f"{path} (row {index}, in any order)", first, second, excess)
        if self.left == _PER_MESSAGE and (lonely := _unmatched(old, new, rule)) is not None:
            row = old[lonely].tolist()
            self.note(f"{path} (row {lonely}, in any order)", row, "fewer of these")

    def lists(self, path: str, name: str, rule: Rule, expected: list[Any], got: list[Any]) -> None:
        if len(expected) != len(got):
            self.note(f"{path} (length)", len(expected), len(got))
            return
        if not rule.unordered:
            for index, (old, new) in enumerate(zip(expected, got, strict=True)):
                self.walk(f"{path}[{index}]", name, old, new)
            return
        free = list(got)
        for index, old in enumerate(expected):
            partner = next((i for i, new in enumerate(free) if self.same(name, old, new)), None)
            if partner is None:
                self.note(f"{path}[{index}] (in any order)", _plain(old), "no such element")
            else:
                free.pop(partner)

    def same(self, name: str, expected: Any, got: Any) -> bool:
        trial = _Comparison(self.topic, self.rules, Verdict())
        trial.left = 1
        trial.walk("", name, expected, got)
        return not trial.verdict.differences

    def remember(self, name: str, expected: NDArray[Any], got: NDArray[Any]) -> None:
        old, new = self.verdict.series.setdefault((self.topic, name), ([], []))
        if len(old) < _SERIES_LIMIT:
            old.extend(np.asarray(expected, float).tolist())
            new.extend(np.asarray(got, float).tolist())


def _plain(value: Any) -> Any:
    if not _is_message(value):
        return value
    return {name: _plain(getattr(value, name)) for name in _fields(value)}


def _nearest(
    rows: NDArray[np.float64], others: NDArray[np.float64], angle: bool
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Largest difference in any column to the nearest of the other rows."""
    if not (np.isfinite(rows).all() and np.isfinite(others).all()):
        rows = np.nan_to_num(rows, nan=1e300, posinf=1e301, neginf=-1e301)
        others = np.nan_to_num(others, nan=1e300, posinf=1e301, neginf=-1e301)
    if angle:
        turns = np.full(others.shape[1], _TURN)
        tree = cKDTree(np.mod(others, _TURN) % _TURN, boxsize=turns)
        distance, index = tree.query(np.mod(rows, _TURN) % _TURN, p=np.inf)
    else:
        distance, index = cKDTree(others).query(rows, p=np.inf)
    return np.atleast_1d(distance), np.atleast_1d(index)


def _unmatched(rows: NDArray[np.float64], others: NDArray[np.float64], rule: Rule) -> int | None:
    """A row that is left over when each is given a partner of its own; None if there is none."""
    pairs = []
    for index, row in enumerate(rows):
        gap = np.asarray(rule.difference(row, others)).max(axis=1)
        allowed = max(rule.absolute, rule.relative * float(np.nanmax(np.abs(row))))
        pairs += [(index, partner) for partner in np.flatnonzero(gap <= allowed)]
    if not pairs:
        return 0
    left, right = np.array(pairs).T
    graph = csr_matrix((np.ones(len(pairs)), (left, right)), shape=(len(rows), len(others)))
    partners = maximum_bipartite_matching(graph, perm_type="column")
    alone = np.flatnonzero(partners < 0)
    return int(alone[0]) if len(alone) else None


def _by_topic(messages: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for topic, message in messages:
        grouped.setdefault(topic, []).append(message)
    return grouped


def compare(
    expected: Sequence[tuple[str, Any]],
    got: Sequence[tuple[str, Any]],
    tolerances: Tolerances,
) -> Verdict:
    """Compare decoded messages, topic by topic and in order.

    Args:
        expected: Topic and message, from the bag.
        got: Topic and message, from the replay.
        tolerances: What may differ.
    """
    verdict = Verdict()
    came = _by_topic(got)
    for topic, messages in _by_topic(expected).items():
        rules = tolerances.of(topic)
        if rules.base.ignore:
            continue
        others = came.get(topic, [])
        comparison = _Comparison(topic, rules, verdict)
        for old, new in zip(messages, others, strict=False):
            comparison.run(old, new)
        verdict.compared[topic] = comparison.message
        if len(messages) != len(others):
            comparison.left = 1
            comparison.note("number of messages", len(messages), len(others))
    return verdict
