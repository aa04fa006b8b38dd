"""The golden bags of all systems: green as they are, red when any output is changed."""

import copy
import hashlib
import json

import numpy as np
import pytest

from kin_bags.ask import SentMessage
from kin_bags.compare import compare
from kin_bags.golden import FOLDER, check_golden, read_goldens, variants
from kin_bags.questions import is_answer
from kin_bags.reader import open_bag
from kin_bags.regress import outputs_of
from kin_bags.report import text
from kin_core.errors import InvalidInput

GOLDENS = read_goldens()


def test_there_is_one_for_each_system():
    assert set(GOLDENS) == {"cuik", "ft", "delta", "continuum", "hier"}


@pytest.fixture(params=list(GOLDENS))
def golden(request):
    return GOLDENS[request.param]


@pytest.mark.slow
@pytest.mark.node
def test_answers_are_as_they_were(golden):
    result = check_golden(golden)
    assert result.outcome.sent > 0
    assert result.good, text(result.verdict, result.outcome.problems)


def numbers(message, path=""):
    """Names of the fields of a decoded message that hold numbers, with the messages they are in."""
    for name in message.__dataclass_fields__:
        if name.startswith("_") or name.isupper():
            continue
        value = getattr(message, name)
        where = f"{path}.{name}" if path else name
        if hasattr(value, "__dataclass_fields__"):
            yield from numbers(value, where)
        elif isinstance(value, list):
            for item in value:
                if hasattr(item, "__dataclass_fields__"):
                    yield from numbers(item, where)
        elif not isinstance(value, (str, bytes, bool)) and np.isfinite(value).any():
            yield where, message, name


def words(message, path=""):
    """Names of the fields that hold a text, a truth value or a list of texts, as above."""
    for name in message.__dataclass_fields__:
        value = getattr(message, name)
        where = f"{path}.{name}" if path else name
        if name.startswith("_") or name.isupper():
            continue
        if hasattr(value, "__dataclass_fields__"):
            yield from words(value, where)
        elif isinstance(value, list) and value and hasattr(value[0], "__dataclass_fields__"):
            for item in value:
                yield from words(item, where)
        elif isinstance(value, (str, bool, list)):
            yield where, message, name


def reworded(value):
    """Another text, truth value or list."""
    if isinstance(value, bool):
        return not value
    return [*value, "x"] if isinstance(value, list) else value + "x"


def changed_by(value, step):
    """A value that differs by a step, of the same type; whole numbers by one at least."""
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, np.integer)):
        step = max(1, int(np.ceil(step)))
        return type(value)(int(value) + step if int(value) < 100 else int(value) - step)
    return type(value)(value + (step or 1.0))


def answers_of(golden):
    """All outputs in a golden bag, decoded, with their topics."""
    with open_bag(golden.bag) as bag:
        outputs = outputs_of(bag, golden.tolerances)
        return [
            (r.topic, bag.types.decode(r.type, r.raw))
            for r in bag.records()
            if is_answer(r.topic) or r.topic in outputs
        ]


def places(message, walk, generator, most=3):
    """For each field that ``walk`` finds: where it is, and some of the messages that hold it."""
    found = {}
    for where, holder, name in walk(message):
        found.setdefault(where, []).append((holder, name))
    for where, holders in found.items():
        for at in generator.permutation(len(holders))[:most]:
            yield where, *holders[at]


def turns_red(golden, walk, change):
    """Change one field after the other in a copy of each output; each must be seen. How many."""
    generator = np.random.default_rng(golden.seed)
    tolerances, changed = golden.tolerances, 0
    for topic, message in answers_of(golden):
        altered = copy.deepcopy(message)
        for where, holder, name in places(altered, walk, generator):
            rule = tolerances.of(topic).find(where)
            if rule.ignore:
                continue
            value = getattr(holder, name)
            setattr(holder, name, change(value, rule, generator))
            verdict = compare([(topic, message)], [(topic, altered)], tolerances)
            assert not verdict.good, (topic, where)
            setattr(holder, name, value)
            changed += 1
        assert compare([(topic, message)], [(topic, altered)], tolerances).good
    return changed


def off_by_ten_tolerances(value, rule, generator):
    """The number, or one of an array, moved by ten times what is allowed there."""
    if not isinstance(value, np.ndarray):
        return changed_by(value, 10 * float(rule.allowed(float(value))))
    place = generator.choice(np.flatnonzero(np.isfinite(value)))
    allowed = float(rule.allowed(float(value[place])))
    if rule.unordered:
        rows = np.abs(value.astype(float)).reshape(-1, rule.unordered)
        allowed = max(rule.absolute, rule.relative * float(rows.max()))
    fresh = value.copy()
    fresh[place] = changed_by(value[place], 10 * allowed)
    return fresh


def test_every_output_field_turns_it_red(golden):
    """Ten times its tolerance (or one, where equality is asked) in any one number is seen."""
    expected = answers_of(golden)
    assert {topic for topic, _ in expected} == set(golden.tolerances.topics)
    assert compare(expected, expected, golden.tolerances).good
    assert turns_red(golden, numbers, off_by_ten_tolerances) > 0


def test_every_text_turns_it_red(golden):
    """Any one text, truth value or list of texts that is not to be ignored."""
    changed = turns_red(golden, words, lambda value, *_: reworded(value))
    assert changed or golden.system == "delta"  # whose only texts name the machine


def test_every_length_turns_it_red(golden):
    """One element more in any array of numbers."""

    def arrays(message):
        return (each for each in numbers(message) if np.ndim(getattr(each[1], each[2])))

    assert turns_red(golden, arrays, lambda value, *_: longer(value)) > 0


def longer(value):
    """An array with its last elements once more."""
    return np.concatenate([value, value[-1:]])


def test_manifest_is_that_of_the_bags(golden):
    manifest = json.loads((FOLDER / "manifest.json").read_text())[golden.system]
    for name, digest in manifest["files"].items():
        content = (golden.bag / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name
    assert sum(p.stat().st_size for p in golden.bag.iterdir()) < 500_000


def test_the_questions_of_the_bag_are_those_of_the_script(golden):
    """A change of the questions without making the bag again is seen."""
    from rclpy.serialization import deserialize_message

    asked = [
        (q.topic, q.message)
        if isinstance(q, SentMessage)
        else (q.exchange.question_topic, q.request)
        for q in golden.questions()
    ]
    with open_bag(golden.bag) as bag:
        outputs = outputs_of(bag, golden.tolerances)
        kept = [r for r in bag.records() if not is_answer(r.topic) and r.topic not in outputs]
    assert [topic for topic, _ in asked] == [r.topic for r in kept]
    for (_, message), record in zip(asked, kept, strict=True):
        stored = deserialize_message(record.raw, type(message))
        assert repr(stored) == repr(message)  # not-a-number is not equal to itself


def test_variants_are_seeded_and_keep_the_shape():
    request = {"a": 1.0, "n": 3, "s": "x", "v": [1.0, 2.0], "in": {"b": 2.0}, "timeout": 5.0}
    one = variants(request, np.random.default_rng(5), 2, 0.1)
    two = variants(request, np.random.default_rng(5), 2, 0.1)
    assert one == two
    assert one[0] != one[1]
    assert (one[0]["n"], one[0]["s"], one[0]["timeout"]) == (3, "x", 5.0)
    assert one[0]["a"] != 1.0
    assert one[0]["in"]["b"] != 2.0


@pytest.mark.parametrize("content", ["[1]", "a: 1", "a: {nodes: x}", "a: {nodes: [x], typo: 1}"])
def test_bad_golden_files(tmp_path, content):
    (tmp_path / "golden.yaml").write_text(content)
    with pytest.raises(InvalidInput, match=r"golden\.yaml"):
        read_goldens(tmp_path)
