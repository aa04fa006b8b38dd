import ctypes
import errno

import numpy as np
import pytest

from ft_controller import ReplicaError, memory

PAGE = 512  # words


@pytest.fixture
def files():
    """A file of two memory pages: its descriptor, and one that gives no right to write."""
    import os

    writer = memory.create("ft_test", 2 * PAGE)
    reader = memory.read_only(writer)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def test_a_block_is_read_only_but_for_the_own_part(files):
    reader, writer = files
    with (
        memory.Block(2 * PAGE, reader, writer, (PAGE, PAGE)) as mine,
        memory.Block(2 * PAGE, reader) as theirs,
    ):
        mine.words[PAGE:] = np.arange(PAGE)
        assert (theirs.words[PAGE:] == np.arange(PAGE)).all()
        assert not theirs.words[:PAGE].any()
        # Nobody gets the right to write what it did not open for writing.
        libc = ctypes.CDLL(None, use_errno=True)
        for address in (mine.address, theirs.address, theirs.address + 8 * PAGE):
            assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), 3) == -1
            assert ctypes.get_errno() == errno.EACCES


def test_a_closed_block_has_nothing_left(files):
    block = memory.Block(2 * PAGE, files[0])
    block.close()
    block.close()
    assert block.words.size == 0


def test_what_cannot_be_mapped_is_told():
    with pytest.raises(ReplicaError, match="shared memory"):
        memory.Block(PAGE, -1)
