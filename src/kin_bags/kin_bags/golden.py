"""Golden bags: small bags of all systems, made by a seeded script, compared on every test run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kin_bags.ask import AskedQuestion, SentMessage, read_exchanges, record_exchanges
from kin_bags.compare import Tolerances
from kin_bags.core import CoreTarget, find_node_class
from kin_bags.questions import is_answer
from kin_bags.reader import open_bag
from kin_bags.regress import Regression, regress
from kin_bags.report import text
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_core.yamls import LIMIT_BYTES, load_yaml

__all__ = ["FOLDER", "Golden", "check_golden", "make_golden", "read_goldens", "variants"]

#: Where the golden bags are kept.
FOLDER = Path(__file__).resolve().parents[1] / "golden"
_CONFIG = Path(__file__).resolve().parents[3] / "launch" / "config"
_TIMEOUT = 600.0
_KEYS = {"nodes", "parameters", "overrides", "seed", "variants", "spread", "leave_out"}


@dataclass(frozen=True)
class Golden:
    """How one golden bag is made.

    Attributes:
        system: Name of the system; its files begin with it.
        nodes: Node classes, as for core replay.
        parameters: Parameter file in launch/config; None: the defaults.
        overrides: Parameters on top of the file.
        seed: Seed of the variants.
        variants: Number of variants of each question beside the question itself.
        spread: Standard deviation of the factors that make variants.
        leave_out: Services of launch/config/check that do not belong here.
        folder: Where its files are.
    """

    system: str
    nodes: tuple[str, ...]
    parameters: Path | None
    overrides: Mapping[str, Any]
    seed: int
    variants: int
    spread: float
    leave_out: tuple[str, ...]
    folder: Path

    @property
    def bag(self) -> Path:
        """The bag."""
        return self.folder / self.system

    @property
    def tolerances(self) -> Tolerances:
        """What may differ."""
        return Tolerances.read(self.folder / f"{self.system}.tolerances.yaml")

    def sources(self) -> list[Path]:
        """Files that hold its questions."""
        files = [
            _CONFIG / "check" / f"{self.system}.yaml",
            self.folder / f"{self.system}.questions.yaml",
        ]
        return [file for file in files if file.is_file()]

    def questions(self) -> list[AskedQuestion | SentMessage]:
        """The questions and their variants, the same ones for the same seed.

        Raises:
            InvalidInput: A file is not of the right form.
        """
        generator = np.random.default_rng(self.seed)
        questions: list[AskedQuestion | SentMessage] = []
        for file in self.sources():
            entries = load_yaml(file, longest_word=LIMIT_BYTES)
            for index, entry in enumerate(entries if isinstance(entries, list) else []):
                if entry.get("service") in self.leave_out:
                    continue
                key = "message" if "topic" in entry else "request"
                request = dict(entry.get(key) or {})
                if "timeout" in request:  # a first request may have to compile
                    request["timeout"] = _TIMEOUT
                requests = [request]
                requests += variants(requests[0], generator, self.variants, self.spread)
                for request in requests:
                    asked = {**entry, key: request}
                    questions += read_exchanges([asked], f"{file.name}[{index}]")
        if not questions:
            raise InvalidInput(self.system, "has no questions")
        return questions


def variants(
    request: Mapping[str, Any], generator: np.random.Generator, count: int, spread: float
) -> list[dict[str, Any]]:
    """Requests like the given one, with every decimal number multiplied by a random factor.

    Times that a request allows itself stay as they are, for an answer must not depend on them, and
    so do quaternions, which would no longer be of unit length.
    """

    def scatter(value: Any) -> Any:
        if isinstance(value, float):
            return value * (1.0 + spread * float(generator.standard_normal()))
        if isinstance(value, list):
            return [scatter(item) for item in value]
        if isinstance(value, dict) and "w" not in value:
            return {key: v if key == "timeout" else scatter(v) for key, v in value.items()}
        return value

    return [scatter(dict(request)) for _ in range(count)]


def read_goldens(folder: Path = FOLDER) -> dict[str, Golden]:
    """Read ``golden.yaml``.

    Raises:
        InvalidInput: It is not of the right form.
    """
    file = folder / "golden.yaml"
    content = load_yaml(file, longest_word=LIMIT_BYTES)
    if not isinstance(content, dict):
        raise InvalidInput(str(file), "expected a mapping from systems")
    goldens = {}
    for system, entry in content.items():
        where = f"{file.name}, {system}"
        if not isinstance(entry, dict) or not isinstance(entry.get("nodes"), list):
            raise InvalidInput(where, "expected a mapping with a list of nodes")
        unknown = sorted(entry.keys() - _KEYS)
        if unknown:
            raise InvalidInput(where, f"unknown key '{unknown[0]}'")
        parameters = entry.get("parameters")
        goldens[str(system)] = Golden(
            system=str(system),
            nodes=tuple(entry["nodes"]),
            parameters=None if parameters is None else _CONFIG / str(parameters),
            overrides=dict(entry.get("overrides") or {}),
            seed=int(entry.get("seed", 1)),
            variants=int(entry.get("variants", 3)),
            spread=float(entry.get("spread", 0.01)),
            leave_out=tuple(entry.get("leave_out", ())),
            folder=folder,
        )
    return goldens


def _target(golden: Golden) -> CoreTarget:
    classes = [find_node_class(name) for name in golden.nodes]
    return CoreTarget(
        classes, parameter_file=golden.parameters, parameters=golden.overrides, patience=60.0
    )


def check_golden(golden: Golden) -> Regression:
    """Replay a golden bag into its nodes and compare.

    Raises:
        InvalidInput: The bag cannot be replayed.
    """
    with open_bag(golden.bag) as bag, contextlib.closing(_target(golden)) as target:
        return regress(bag, target, golden.tolerances)


def make_golden(golden: Golden, say: Callable[[str], None] = print) -> None:
    """Make a golden bag, saying what changes against the one that is there.

    Raises:
        InvalidInput: A question is wrong, or a node does not start.
    """
    if golden.bag.exists():
        try:
            say(text(check_golden(golden).verdict))
        except InvalidInput as error:
            say(f"the old bag cannot be compared: {error}")
    fresh = golden.folder / f".{golden.system}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    with (
        contextlib.closing(_target(golden)) as target,
        BagWriter(fresh / golden.system, compress=True) as writer,
    ):
        outputs = [t for t in golden.tolerances.topics if not is_answer(t)]
        count = record_exchanges(writer, target, golden.questions(), outputs)
    shutil.rmtree(golden.bag, ignore_errors=True)
    (fresh / golden.system).replace(golden.bag)
    shutil.rmtree(fresh)
    _write_manifest(golden, count)
    say(f"{golden.system}: {count} requests and answers in {golden.bag}")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write_manifest(golden: Golden, count: int) -> None:
    file = golden.folder / "manifest.json"
    manifest = json.loads(file.read_text()) if file.is_file() else {}
    with open_bag(golden.bag) as bag:
        types = {
            c.msgtype: c.digest or bag.types.store.hash_rihs01(c.msgtype) for c in bag.connections
        }
    manifest[golden.system] = {
        "questions": count,
        "seed": golden.seed,
        "made_from": {source.name: _digest(source) for source in golden.sources()},
        "types": types,
        "files": {p.name: _digest(p) for p in sorted(golden.bag.iterdir())},
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    file.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
