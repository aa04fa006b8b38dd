"""Messages in shared memory: laid out without overlap, checked, and echoed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ft_controller.atomics import checksum, combine
from ft_controller.messages import Layout, alive_set, read_message, stamp_message, write_message
from ft_controller.voting import Comparison


def parts(shared):
    """All views that may be written, by name."""
    yield "control", shared.input.control
    for field in shared.input.header.dtype.names:
        yield f"header.{field}", shared.input.header[field]
    for field in shared.input.joints.dtype.names:
        yield f"joints.{field}", shared.input.joints[field]
    for field in shared.input.faults.dtype.names:
        yield f"faults.{field}", shared.input.faults[field]
    for name in ("data", "votes", "result"):
        for field in ("stamp", "checksum", "body"):
            yield f"{name}.{field}", getattr(getattr(shared, name), field)
    yield "heartbeat", shared.processes.heartbeat
    for field in shared.processes.records.dtype.names:
        yield f"process.{field}", shared.processes.records[field]


@pytest.mark.parametrize("p, n", [(3, 1), (4, 4), (16, 2), (5, 50)])
def test_no_two_fields_share_a_word(p, n):
    layout = Layout(p, n)
    shared = layout.private()
    named = dict(parts(shared))
    for number, view in enumerate(named.values(), 1):
        view[...] = number
    for number, (name, view) in enumerate(named.items(), 1):
        assert (view == number).all(), name
    assert (shared.input.stamp == shared.input.header["tick"]).all()
    assert shared.data.body.shape == (p, 2, 1 + n * n + 2 * n)
    assert shared.votes.body.shape == (p, 2, 1 + 2 * p)
    assert shared.result.body.shape == (p, 2, 1 + 2 * n)


def test_the_page_of_a_processor_is_its_own():
    """Memory protection goes by pages: nothing of two processors may share one."""
    layout = Layout(4, 4)
    words = np.zeros(4 * layout.page_words, np.int64)
    assert layout.page_words % 512 == layout.input_words % 512 == layout.process_words % 512 == 0
    shared = layout.views(
        np.zeros(layout.input_words, np.int64), words, np.zeros(layout.process_words, np.int64)
    )
    for k in range(4):
        for message in (shared.data, shared.votes, shared.result):
            for view in message:
                view[k] = 1 + k
    for k, page in enumerate(words.reshape(4, -1)):
        assert set(page.tolist()) == {0, 1 + k}


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4), st.integers(2, 2**40))
def test_what_is_written_is_read_in_its_tick_alone(data, tick):
    message = Layout(3, 2).private().result
    out = np.zeros(5, np.int64)
    write_message(message, 1, tick, 0b101, np.array(data))
    assert read_message(message, 1, tick, 4, out)[0] == Comparison.MISSING
    stamp_message(message, 1, tick)
    assert read_message(message, 1, tick, 4, out) == (
        Comparison.SAME,
        message.checksum[1, tick & 1],
    )
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
        message.body[0, 1, word] ^= flip
        found, echo = read_message(message, 0, 7, 4, out)
        assert found == Comparison.BAD_CHECKSUM and echo not in (0, good)
        message.body[0, 1, word] ^= flip
    assert read_message(message, 0, 7, 4, out) == (Comparison.SAME, good)


def test_equal_echoes_stand_for_equal_words():
    """Whatever is torn, whoever echoes the same has read the same, claim included."""
    message = Layout(3, 1).private().data
    rng = np.random.default_rng(4)
    faces = rng.integers(0, 3, (2, 4))
    claims = [checksum(face, 4, 7) for face in faces]
    message.stamp[0, 1] = 7
    seen = {}
    for pick in itertools.product(range(2), repeat=5):
        message.checksum[0, 1] = claims[pick[0]]
        message.body[0, 1] = [faces[which, k] for k, which in enumerate(pick[1:])]
        found, echo = read_message(message, 0, 7, 3, np.zeros(4, np.int64))
        words = (int(message.checksum[0, 1]), *message.body[0, 1].tolist())
        assert echo != 0
        assert seen.setdefault(echo, (words, found)) == (words, found)
    assert len({found for _, found in seen.values()}) == 2
    assert combine(0, 0) != 0


def test_who_is_alive_is_a_set():
    table = Layout(5, 1).private().processes
    table.records["alive"] = [1, 0, 0, 1, 1]
    assert alive_set(table) == 0b11001
