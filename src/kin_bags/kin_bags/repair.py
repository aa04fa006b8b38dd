"""Bags whose writer was killed: cut off what is not whole, and write what is missing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kin_bags.writer import MARKER, write_metadata
from kin_core.errors import InvalidInput

__all__ = ["is_damaged", "repair_bag"]

_MAGIC = b"\x89MCAP0\r\n"
_DATA_END, _FOOTER = 0x0F, 0x02


def is_damaged(path: Path) -> bool:
    """Whether a folder is a bag that was not closed."""
    return path.is_dir() and not (path / "metadata.yaml").exists() and bool(_files(path))


def _files(path: Path) -> list[Path]:
    found = [file for ending in ("*.mcap", "*.db3") for file in path.rglob(ending)]
    return sorted(found, key=lambda file: (len(file.stem), file.stem))


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Refuse while the writer lives."""
    marker = path / MARKER
    if not marker.exists():
        yield
        return
    with marker.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(str(path), "is still being recorded") from None
        yield
    marker.unlink(missing_ok=True)


def repair_bag(path: Path) -> int:
    """Make a bag readable whose writer was killed.

    Returns:
        The number of bytes that were cut off because they were not whole.

    Raises:
        InvalidInput: It is still being written, or holds no file of a bag.
    """
    files = _files(path)
    if not files:
        raise InvalidInput(str(path), "holds no bag")
    cut = 0
    with _alone(path):
        compress = False
        with contextlib.suppress(OSError, ValueError):
            compress = bool(json.loads((path / MARKER).read_text()).get("compress"))
        whole = []
        for file in files:
            cut += _repair_mcap(file) if file.suffix == ".mcap" else _repair_sqlite3(file)
            if file.parent != path:
                folder = file.parent
                file = file.replace(path / file.name)
                shutil.rmtree(folder)
            whole.append(file)
        storage = "mcap" if whole[0].suffix == ".mcap" else "sqlite3"
        write_metadata(path, whole, storage, compress=compress)
    return cut


def _repair_mcap(file: Path) -> int:
    """Keep all whole records of an mcap file and close it; returns the bytes cut off."""
    with file.open("r+b") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise InvalidInput(str(file), "is not an mcap file")
        end = stream.tell()
        while True:
            head = stream.read(9)
            if len(head) < 9:
                break
            code, length = struct.unpack("<BQ", head)
            if code in (_FOOTER, _DATA_END) or end + 9 + length > size:
                break
            end = stream.seek(end + 9 + length)
        if _code_at(stream, end) == _DATA_END and _ends_well(stream, size):
            return 0
        stream.seek(end)
        stream.truncate()
        stream.write(struct.pack("<BQI", _DATA_END, 4, 0))
        stream.write(struct.pack("<BQQQI", _FOOTER, 20, 0, 0, 0))
        stream.write(_MAGIC)
        return size - end


def _code_at(stream: BinaryIO, position: int) -> int | None:
    """The kind of the record at a position of an mcap file."""
    stream.seek(position)
    code = stream.read(1)
    return code[0] if code else None


def _ends_well(stream: BinaryIO, size: int) -> bool:
    stream.seek(max(0, size - len(_MAGIC)))
    return bool(stream.read() == _MAGIC)


def _repair_sqlite3(file: Path) -> int:
    """Have sqlite roll back what was not committed."""
    try:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("SELECT count(*) FROM messages").fetchone()
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise InvalidInput(str(file), f"cannot be repaired ({error})") from None
    return 0
