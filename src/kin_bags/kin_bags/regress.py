"""Regression by replay: does a bag still give what it gave when it was made?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kin_bags.compare import Tolerances, Verdict, compare
from kin_bags.questions import is_answer
from kin_bags.reader import Bag, Record, Selection, open_bag
from kin_bags.replay import Outcome, Target, drive
from kin_bags.types import TypeRegistry
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput

__all__ = ["Regression", "accept", "outputs_of", "regress"]


@dataclass(frozen=True)
class Regression:
    """The result of one regression."""

    verdict: Verdict
    outcome: Outcome

    @property
    def good(self) -> bool:
        """Everything came, and as expected."""
        return self.verdict.good and not self.outcome.problems


def outputs_of(
    bag: Bag, tolerances: Tolerances, selection: Selection | None = None
) -> dict[str, str]:
    """Topics of a bag that the nodes publish, with their types: those that have tolerances.

    Tolerances go by the names after remapping.
    """
    selection = selection or Selection()
    names = {c.topic: selection.name(c.topic) for c in bag.connections if selection.wants(c.topic)}
    return {
        names[c.topic]: c.msgtype
        for c in bag.connections
        if names.get(c.topic) in tolerances.topics and not is_answer(c.topic)
    }


def _decode(
    records: Sequence[Record], types: TypeRegistry, current: TypeRegistry
) -> list[tuple[str, Any]]:
    out = []
    for record in records:
        registry = types
        if record.type not in registry.store.fielddefs:
            current.learn(record.type)
            registry = current
        out.append((record.topic, registry.decode(record.type, record.raw)))
    return out


def _refuse_changed_types(bag: Bag, current: TypeRegistry) -> None:
    """A definition that has changed cannot be compared field by field."""
    for connection in bag.connections:
        try:
            current.learn(connection.msgtype)
        except InvalidInput:
            continue
        stored = connection.digest or bag.types.store.hash_rihs01(connection.msgtype)
        if stored != current.digest(connection.msgtype):
            raise InvalidInput(
                connection.msgtype,
                f"has changed since {bag.path.name} was made; make the bag again",
            )


def regress(
    bag: Bag, target: Target, tolerances: Tolerances, selection: Selection | None = None
) -> Regression:
    """Replay a bag in lock step and compare.

    Raises:
        InvalidInput: A type has changed, or a topic has nobody at its other end.
    """
    current = TypeRegistry()
    _refuse_changed_types(bag, current)
    outputs = outputs_of(bag, tolerances, selection)
    outcome = drive(bag, target, outputs, selection)
    expected = [
        record
        for record in bag.records(selection)
        if is_answer(record.topic) or record.topic in outputs
    ]
    verdict = compare(
        _decode(expected, bag.types, current),
        _decode(outcome.got, bag.types, current),
        tolerances,
    )
    return Regression(verdict, outcome)


def accept(path: Path, outcome: Outcome) -> None:
    """Make what came the new expectation of a bag.

    The old bag is replaced only when the new one is complete.

    Raises:
        InvalidInput: Something did not come, so that there is nothing whole to accept.
    """
    if outcome.problems:
        raise InvalidInput(str(path), f"cannot be accepted: {outcome.problems[0]}")
    replaced = {record.topic for record in outcome.got}
    fresh = path.with_name(f".{path.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    work = fresh / path.name
    fresh.mkdir(parents=True)
    with open_bag(path) as bag:
        storage = "mcap" if any(path.glob("*.mcap")) else "sqlite3"
        qos = {c.topic: tuple(c.ext.offered_qos_profiles) for c in bag.connections}
        answers: dict[str, list[Record]] = {}
        for record in outcome.got:
            answers.setdefault(record.topic, []).append(record)
        with BagWriter(work, storage=storage, compress=bool(bag.compression)) as writer:
            for record in bag.records():
                new = record
                if record.topic in replaced:
                    if not answers[record.topic]:
                        continue
                    new = answers[record.topic].pop(0)
                channel = writer.channel(record.topic, record.type, qos[record.topic])
                writer.write(channel, record.stamp, new.raw)
            for topic, rest in answers.items():
                for record in rest:
                    channel = writer.channel(topic, record.type, qos.get(topic, ()))
                    writer.write(channel, record.stamp, record.raw)
    old = path.with_name(f".{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    os.replace(path, old)
    os.replace(work, path)
    shutil.rmtree(old)
    shutil.rmtree(fresh)
