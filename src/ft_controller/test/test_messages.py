"""Messages in shared memory: laid out without overlap, checked, and echoed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ft_controller.atomics import combine
from ft_controller.messages import (
    Layout,
    alive_set,
    body,
    claimed_checksum,
    read_message,
    rewritten,
    stamp_message,
    write_message,
)
from ft_controller.voting import Comparison


def parts(layout, blocks):
    """All views that may be written, by name."""
    shared = layout.views(*blocks)
    yield "control", shared.input.control
    for name in ("header", "joints", "faults"):
        records = getattr(shared.input, name)
        yield from ((f"{name}.{field}", records[field]) for field in records.dtype.names)
    yield from ((name, getattr(shared, name)) for name in ("data", "votes", "result"))
    yield "heartbeat", blocks[2][:1]
    table = layout.process_records(blocks[2])
    yield from ((f"process.{field}", table[field]) for field in table.dtype.names)


def blocks_of(layout):
    sizes = (layout.input_words, layout.p * layout.page_words, layout.process_words)
    return [np.zeros(size, np.int64) for size in sizes]


@pytest.mark.parametrize("p, n", [(3, 1), (4, 4), (16, 2), (5, 50)])
def test_no_two_fields_share_a_word(p, n):
    layout = Layout(p, n)
    named = dict(parts(layout, blocks_of(layout)))
    for number, view in enumerate(named.values(), 1):
        view[...] = number
    for number, (name, view) in enumerate(named.items(), 1):
        assert (view == number).all(), name
    heads = 3  # stamp, checksum, set
    assert named["data"].shape == (p, 2, heads + n * n + 2 * n)
    assert named["votes"].shape == (p, 2, heads + 2 * p)
    assert named["result"].shape == (p, 2, heads + 2 * n)


def test_the_page_of_a_processor_is_its_own():
    """Memory protection goes by pages: nothing of two processors may share one."""
    layout = Layout(4, 4)
    assert layout.page_words % 512 == layout.input_words % 512 == layout.process_words % 512 == 0
    blocks = blocks_of(layout)
    shared = layout.views(*blocks)
    for k in range(4):
        for message in (shared.data, shared.votes, shared.result):
            message[k] = 1 + k
    for k, page in enumerate(blocks[1].reshape(4, -1)):
        assert set(page.tolist()) == {0, 1 + k}


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4), st.integers(2, 2**40))
def test_what_is_written_is_read_in_its_tick_alone(data, tick):
    message = Layout(3, 2).private().result
    out = np.zeros(5, np.int64)
    write_message(message, 1, tick, 0b101, np.array(data))
    assert read_message(message, 1, tick, 4, out)[0] == Comparison.MISSING
    stamp_message(message, 1, tick)
    found, echo = read_message(message, 1, tick, 4, out)
    assert (found, echo) == (Comparison.SAME, claimed_checksum(message, 1, tick))
    assert out.tolist() == [0b101, *data]
    for other in (tick - 1, tick + 1, tick + 2):
        assert read_message(message, 1, other, 4, out)[0] == Comparison.MISSING
    assert read_message(message, 0, tick, 4, out)[0] == Comparison.MISSING


def test_one_flipped_bit_is_found_wherever_it_is():
    message = Layout(3, 2).private().result
    out = np.zeros(5, np.int64)
    write_message(message, 0, 7, 3, np.arange(4))
    stamp_message(message, 0, 7)
    good = read_message(message, 0, 7, 4, out)[1]
    for word, bit in itertools.product(range(5), range(64)):
        flip = np.int64(np.uint64(1) << np.uint64(bit))
        body(message, 0, 7)[word] ^= flip
        found, echo = read_message(message, 0, 7, 4, out)
        assert found == Comparison.BAD_CHECKSUM and echo not in (0, good)
        body(message, 0, 7)[word] ^= flip
    assert read_message(message, 0, 7, 4, out) == (Comparison.SAME, good)


def test_equal_echoes_stand_for_equal_words():
    """Whatever is torn, whoever echoes the same has read the same, claim included."""
    message = Layout(3, 1).private().data
    faces = np.random.default_rng(4).integers(0, 3, (2, 4))
    pages = []
    for face in faces:
        write_message(message, 0, 7, int(face[0]), face[1:])
        stamp_message(message, 0, 7)
        pages.append(message[0, 1].copy())
    seen = {}
    for pick in itertools.product(range(2), repeat=pages[0].size):
        message[0, 1] = [pages[which][k] for k, which in enumerate(pick)]
        found, echo = read_message(message, 0, 7, 3, np.zeros(4, np.int64))
        words = tuple(message[0, 1].tolist())
        assert echo != 0
        assert seen.setdefault(echo, (words, found)) == (words, found)
    assert len({found for _, found in seen.values()}) == 2
    assert combine(0, 0) != 0


def test_what_is_written_again_is_noticed():
    message = Layout(3, 2).private().result
    out = np.zeros(5, np.int64)
    write_message(message, 2, 8, 0, np.arange(4))
    stamp_message(message, 2, 8)
    _, echo = read_message(message, 2, 8, 4, out)
    assert not rewritten(message, 2, 8, 4, echo)
    body(message, 2, 8)[3] += 1  # damaged
    assert rewritten(message, 2, 8, 4, echo)
    write_message(message, 2, 8, 0, np.arange(4))  # no stamp
    assert rewritten(message, 2, 8, 4, echo)
    stamp_message(message, 2, 8)
    assert not rewritten(message, 2, 8, 4, echo)
    write_message(message, 2, 8, 0, np.arange(1, 5))  # another face, well-formed
    stamp_message(message, 2, 8)
    assert rewritten(message, 2, 8, 4, echo)


def test_who_is_alive_is_a_set():
    table = Layout(5, 1).private().processes
    table.alive[:] = [1, 0, 0, 1, 1]
    assert alive_set(table) == 0b11001
