"""Reading rosbag2 bags, made here or by ``ros2 bag record``: mcap or sqlite3, zstd or not."""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.interfaces import MessageDefinitionFormat
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import McapReader, Schema
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader, apsw

from kin_bags.questions import owner_of
from kin_bags.repair import is_damaged, repair_bag
from kin_bags.types import TypeRegistry
from kin_core.errors import InvalidInput
from kin_core.texts import shortened

__all__ = ["Bag", "Record", "Selection", "open_bag", "open_storage"]


@dataclass(frozen=True)
class Record:
    """One message of a bag.

    Attributes:
        topic: Topic, after remapping.
        type: Name of the message type.
        stamp: Time of reception [ns].
        raw: The message as CDR.
        number: Position among the messages of its topic, from 0.
    """

    topic: str
    type: str
    stamp: int
    raw: bytes
    number: int


@dataclass(frozen=True)
class Selection:
    """Which messages of a bag are wanted, and under which names.

    The name of a service or action stands for its requests and answers.

    Attributes:
        topics: Only these topics of the bag; None: all.
        exclude: Not these.
        remaps: New names of topics.
        start: Time after the bag's begin before which messages are left out [s].
        end: Time after the bag's begin from which messages are left out [s]; None: no limit.
    """

    topics: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    remaps: tuple[tuple[str, str], ...] = ()
    start: float = 0.0
    end: float | None = None

    def wants(self, topic: str) -> bool:
        """Whether a topic is among those that are wanted."""
        names = {topic, owner_of(topic)}
        return (self.topics is None or bool(names & self.topics)) and not names & self.exclude

    def name(self, topic: str) -> str:
        """The name of a topic after remapping."""
        new = dict(self.remaps)
        owner = owner_of(topic)
        if owner in new and topic not in new:
            return new[owner] + topic[len(owner) :]
        return new.get(topic, topic)


# rosbag2 writes the encoding "unknown", and nothing else, for types whose definition it does not
# find: feedback of actions, events of services. The library knows no such encoding; for it these
# are types without a definition.

_ENCODINGS = ("ros2msg", "ros2idl")
_DEFINITION = ("topic_type", "encoding", "encoded_message_definition", "type_description_hash")
#: The hooks of apsw are those of the whole process.
_HOOKING = threading.Lock()


class _Schemas(dict[int, Schema]):
    def __setitem__(self, key: int, schema: Schema) -> None:
        known = schema.encoding in (*_ENCODINGS, "omgidl")
        super().__setitem__(key, schema if known else schema._replace(encoding="", data=""))


class _McapReader(McapReader):
    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self.schemas = _Schemas()


class _Sqlite3Reader(Sqlite3Reader):
    def open(self) -> None:
        opened: list[apsw.Connection] = []

        def known(cursor: apsw.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
            columns = tuple(column[0] for column in cursor.get_description())
            if columns == _DEFINITION and row[1] not in _ENCODINGS:
                return row[0], _ENCODINGS[0], "unknown", row[3]  # which cannot be parsed
            return row

        def watch(connection: apsw.Connection) -> None:
            connection.row_trace = known
            opened.append(connection)

        with _HOOKING:
            apsw.connection_hooks.append(watch)
            try:
                super().open()
            finally:
                apsw.connection_hooks.remove(watch)
        for connection in opened:
            connection.row_trace = None


class _DirectoryReader(DirectoryReader):
    STORAGE_PLUGINS = {"mcap": _McapReader, "sqlite3": _Sqlite3Reader}  # noqa: RUF012


class _Reader(Reader):
    STORAGE_PLUGINS = {  # noqa: RUF012
        "dir": _DirectoryReader,
        ".mcap": _McapReader,
        ".db3": _Sqlite3Reader,
    }


@contextlib.contextmanager
def open_storage(path: Path) -> Iterator[Any]:
    """A rosbags reader of a bag or of a single file of one, with errors in a sentence.

    Raises:
        InvalidInput: It cannot be read.
    """
    try:
        reader = _Reader(path)
        reader.open()
    except Exception as error:  # decompressors, and parsers of damaged files, have their own
        raise InvalidInput(str(path), f"is not a bag that can be read ({_said(error)})") from None
    try:
        _agree(reader)
        yield reader
    finally:
        reader.close()


def _said(error: Exception) -> str:
    """What an error says, or its kind if it says nothing."""
    return shortened(str(error) or type(error).__name__, 300)


def _agree(reader: Any) -> None:
    """Let the files of a bag describe a topic as its metadata does.

    The library passes over the messages of a topic, without a word, whose quality of service or
    type hash is written in another way in the file than in the metadata: so in bags that were
    converted, or recorded by older releases.
    """
    for storage in getattr(reader.storage, "storages", ()):
        for index, held in enumerate(storage.connections):
            for told in reader.connections:
                if (told.topic, told.msgtype) == (held.topic, held.msgtype):
                    storage.connections[index] = held._replace(ext=told.ext, digest=told.digest)


class Bag:
    """An open bag."""

    def __init__(self, path: Path, reader: Any) -> None:
        self.path = path
        self._reader = reader
        self.types = TypeRegistry()
        self._begin: int | None = None
        for connection in reader.connections:
            name, definition = connection.msgtype, connection.msgdef
            if definition.format != MessageDefinitionFormat.NONE:
                idl = definition.format == MessageDefinitionFormat.IDL
                with contextlib.suppress(InvalidInput):
                    self.types.learn_from_bag(name, definition.data, idl=idl)
            # Else as it is installed. A type that cannot be understood takes nothing from the
            # others; decoding says so.
            with contextlib.suppress(InvalidInput):
                self.types.learn(name)

    @property
    def connections(self) -> list[Any]:
        """Topics with type, definition, quality of service and count."""
        return list(self._reader.connections)

    @property
    def count(self) -> int:
        """Number of messages."""
        return int(self._reader.message_count)

    @property
    def begin(self) -> int:
        """Time of the first message [ns]; 0 if there is none.

        The one in the metadata is not to be relied on: bags that were cut or converted keep an old
        one.
        """
        if self._begin is None:
            try:
                first = (
                    next(self._in_order(self.connections, None, None), None) if self.count else None
                )
            except Exception as error:  # decompressors have errors of their own
                raise InvalidInput(str(self.path), f"is damaged ({_said(error)})") from None
            self._begin = 0 if first is None else int(first[1])
        return self._begin

    @property
    def duration(self) -> float:
        """Time from the first to the last message [s]."""
        return max(0, int(self._reader.duration) - 1) * 1e-9 if self.count else 0.0

    @property
    def compression(self) -> str:
        """What the messages are compressed with; empty for nothing, or for mcap's own way."""
        return str(self._reader.compression_format or "")

    def type_of(self, topic: str) -> str:
        """The type of a topic.

        Raises:
            InvalidInput: The bag has no such topic.
        """
        for connection in self.connections:
            if topic in (connection.topic, owner_of(connection.topic)):
                return str(connection.msgtype)
        known = ", ".join(sorted({c.topic for c in self.connections})) or "none"
        raise InvalidInput(topic, f"is not in {self.path} (topics: {known})")

    def records(self, selection: Selection | None = None) -> Iterator[Record]:
        """The messages in the order of their times.

        Raises:
            InvalidInput: The selection names a topic that is not there, or the bag is damaged.
        """
        selection = selection or Selection()
        for topic in sorted((selection.topics or frozenset()) | selection.exclude):
            self.type_of(topic)
        for old, _ in selection.remaps:
            self.type_of(old)
        wanted = [c for c in self.connections if selection.wants(c.topic)]
        if not wanted or not self.count:
            return
        start = self.begin + int(selection.start * 1e9) if selection.start else None
        stop = None if selection.end is None else self.begin + int(selection.end * 1e9)
        numbers: dict[str, int] = {}
        try:
            for connection, stamp, raw in self._in_order(wanted, start, stop):
                number = numbers.get(connection.topic, 0)
                numbers[connection.topic] = number + 1
                yield Record(
                    selection.name(connection.topic), connection.msgtype, stamp, bytes(raw), number
                )
        except Exception as error:  # decompressors have errors of their own
            raise InvalidInput(str(self.path), f"is damaged ({_said(error)})") from None

    def _in_order(self, wanted: list[Any], start: int | None, stop: int | None) -> Iterator[Any]:
        """Files of one bag may overlap by a few messages; keep them in order all the same."""
        waiting: list[tuple[int, int, Any, bytes]] = []
        for serial, (connection, stamp, raw) in enumerate(
            self._reader.messages(wanted, start=start, stop=stop)
        ):
            heapq.heappush(waiting, (stamp, serial, connection, raw))
            if len(waiting) > 256:
                stamp, _, connection, raw = heapq.heappop(waiting)
                yield connection, stamp, raw
        while waiting:
            stamp, _, connection, raw = heapq.heappop(waiting)
            yield connection, stamp, raw


@contextlib.contextmanager
def open_bag(path: Path, say: Callable[[str], None] = lambda _: None) -> Iterator[Bag]:
    """Open a bag; one whose writer was killed is repaired first.

    Args:
        path: The bag's folder, or one .mcap or .db3 file.
        say: Told in a sentence if the bag had to be repaired.

    Raises:
        InvalidInput: It cannot be read.
    """
    if not path.exists():
        raise InvalidInput(str(path), "there is no such bag")
    if is_damaged(path):
        cut = repair_bag(path)
        say(f"{path} was not closed; it is repaired, {cut} bytes that were not whole are cut off")
    with open_storage(path) as reader:
        yield Bag(path, reader)
