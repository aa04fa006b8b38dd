"""Malformed messages: all can be sent, and every kind of wrong value comes."""

import math

import pytest
from kin_interfaces import action, msg, srv
from rclpy.serialization import deserialize_message, serialize_message

from kin_ros.messages import to_plain
from kin_testing.malformed import Fuzzer


def classes(module):
    return [v for n, v in vars(module).items() if isinstance(v, type) and "_" not in n]


KINDS = (
    *classes(msg),
    *(kind.Request for kind in classes(srv)),
    *(kind.Goal for kind in classes(action)),
    *(kind.Impl.FeedbackMessage for kind in classes(action)),
)


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_can_be_sent(kind):
    """Field checks are on in tests, so a value of a wrong type would raise."""
    fuzzer = Fuzzer(3, largest=5000)
    for number in range(30):
        message = fuzzer.request(kind, number)
        again = deserialize_message(serialize_message(message), kind)
        # repr: NaN is not equal to itself. A NUL ends a text on the wire; the fuzzer makes none.
        assert repr(to_plain(again)) == repr(to_plain(message))


def test_the_seed_decides():
    kind = srv.SolveDelta.Request
    one = [repr(to_plain(Fuzzer(1).request(kind, k))) for k in range(20)]
    assert one == [repr(to_plain(Fuzzer(1).request(kind, k))) for k in range(20)]
    assert one != [repr(to_plain(Fuzzer(2).request(kind, k))) for k in range(20)]
    shared = Fuzzer(1)
    assert one[::-1] == [repr(to_plain(shared.request(kind, k))) for k in reversed(range(20))]


def test_all_kinds_of_wrong_values_come():
    fuzzer = Fuzzer(0, largest=20_000)
    sent = [fuzzer.request(srv.SolveDelta.Request, number) for number in range(2000)]
    data = [list(request.data) for request in sent]
    values = {value for row in data for value in row[:16]}
    assert any(math.isnan(value) for value in values)
    assert {math.inf, -math.inf, 1.7e308} <= values
    lengths = {len(row) for row in data}
    assert {0, 1, 6, 20_000} <= lengths
    assert any(len(row) == 3 * request.count for row, request in zip(data, sent, strict=True))
    assert any(len(row) != 3 * request.count for row, request in zip(data, sent, strict=True))
    assert {0, 2**32 - 1} <= {request.count for request in sent}
    texts = {
        text
        for number in range(500)
        for text in leaves(to_plain(fuzzer.request(srv.LoadLinkage.Request, number)))
        if isinstance(text, str)
    }
    assert any(len(text) >= 20_000 for text in texts)
    assert any("ENTITY" in text for text in texts)
    assert "/dev/zero" in texts


def test_names_and_descriptions_with_endless_names_come():
    fuzzer = Fuzzer(0)
    sent = [fuzzer.request(srv.LoadLinkage.Request, number) for number in range(1500)]
    names = [request.preset for request in sent]
    assert max(map(len, names)) >= 1_000_000
    assert any(1000 < len(name) < 5000 for name in names)
    for start in ('<robot name="', "name: ", "links:", "- {op: ", "<mujoco"):
        assert any(len(t) > 1000 and t.startswith(start) for r in sent for t in (r.urdf, r.yaml))


def test_examples_are_wounded_and_not_changed():
    example = srv.SolveDelta.Request(count=2, data=[0.1] * 6, timeout=5.0)
    before = repr(example)
    fuzzer = Fuzzer(0)
    made = [fuzzer.request(srv.SolveDelta.Request, k, [example]) for k in range(300)]
    assert repr(example) == before
    near = [m for m in made if m.count == 2 or list(m.data) == [0.1] * 6]
    assert 100 < len(near) < 300
    # Nobody is asked to compute for longer than the test wants to wait.
    assert not any(0.2 < m.timeout < 1e9 or m.timeout == 0.0 for m in made[:1] + near)


def test_bytes_are_spoilt():
    valid = serialize_message(msg.SolveStatus(message="all is well"))
    fuzzer = Fuzzer(0)
    made = [fuzzer.bytes(valid) for _ in range(200)]
    assert sum(one != valid for one in made) > 150
    assert {len(one) < len(valid) for one in made} == {True, False}
