"""Shared memory without names: nothing is left behind, whichever process dies.

The blocks are anonymous files (memfd). A process maps a block read-only through a descriptor that
was opened read-only, so it cannot even ask for the right to write later; the owner maps its own
part through the writable descriptor on top.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

from ft_controller.errors import ReplicaError
from ft_controller.records import Words

__all__ = ["Block", "create", "read_only"]

_PROT_READ, _PROT_WRITE = 1, 2
_MAP_SHARED, _MAP_FIXED, _MAP_POPULATE = 0x01, 0x10, 0x8000
_FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def create(name: str, words: int) -> int:
    """Make an anonymous file of zeros and return its descriptor."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.ftruncate(descriptor, 8 * words)
    return descriptor


def read_only(descriptor: int) -> int:
    """A second descriptor of the same file that gives no right to write."""
    return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)


class Block:
    """A mapping of ``words`` words, read-only but for one stretch.

    Attributes:
        words: The words as integers, shape (words,).
    """

    words: Words

    def __init__(
        self, words: int, reader: int, writer: int | None = None, own: tuple[int, int] | None = None
    ) -> None:
        """Map the block.

        Args:
            words: Length [words].
            reader: Descriptor that is open for reading.
            writer: Descriptor that is open for writing; needed with ``own``.
            own: First word and number of words that may be written; whole memory pages.
        """
        self._size = 8 * words
        self._address = _map(None, self._size, _PROT_READ, _MAP_SHARED, reader, 0)
        if own is not None and writer is not None:
            first, count = own
            _map(
                self._address + 8 * first,
                8 * count,
                _PROT_READ | _PROT_WRITE,
                _MAP_SHARED | _MAP_FIXED | _MAP_POPULATE,
                writer,
                8 * first,
            )
        raw = memoryview((ctypes.c_char * self._size).from_address(self._address))
        self.words = np.frombuffer(raw, dtype=np.int64)

    @property
    def address(self) -> int:
        """Where the block lies in this process."""
        return self._address

    def close(self) -> None:
        """Give the mapping back; the arrays must not be used afterwards."""
        if self._address:
            self.words = np.zeros(0, np.int64)
            _libc.munmap(self._address, self._size)
            self._address = 0

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _map(
    address: int | None, size: int, protection: int, flags: int, descriptor: int, offset: int
) -> int:
    result = _libc.mmap(address, size, protection, flags, descriptor, offset)
    if result is None or result == _FAILED:
        raise ReplicaError(f"cannot map shared memory: {os.strerror(ctypes.get_errno())}")
    return int(result)
