"""Writing rosbag2 bags that survive a kill.

A bag is written in parts, each of which is closed when it is large or old enough. What has been
flushed of the part that is open when the writer is killed can be read after
:func:`kin_bags.repair.repair_bag`, which opening the bag does by itself.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rosbags.interfaces import Qos
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.metadata import dump_qos_v9

from kin_bags.types import TypeRegistry, is_hidden
from kin_core.errors import InvalidInput

__all__ = ["MARKER", "BagWriter", "Channel", "write_metadata"]

#: Stands in a bag that is being written, locked for as long as the writer lives.
MARKER = ".recording"
_SUFFIX = {"mcap": "mcap", "sqlite3": "db3"}
_VERSION = 9


@dataclass(frozen=True)
class Channel:
    """A topic in a bag."""

    topic: str
    type: str
    qos: tuple[Qos, ...]
    digest: str
    definition: str


class _Part:
    """One file of a bag."""

    def __init__(self, folder: Path, storage: str, compress: bool) -> None:
        self.folder = folder
        self.storage = storage
        self.writer = Writer(
            folder, version=_VERSION, storage_plugin=StoragePlugin[storage.upper()]
        )
        if compress:
            # mcap compresses its chunks; sqlite3 each message, which a kill leaves readable too.
            mode = CompressionMode.STORAGE if storage == "mcap" else CompressionMode.MESSAGE
            self.writer.set_compression(mode, CompressionFormat.ZSTD)
        self.writer.open()
        self.connections: dict[Channel, Any] = {}
        self.size = 0
        self.start: int | None = None

    def connection(self, channel: Channel) -> Any:
        """The channel as the file has it; announced there the first time."""
        if channel not in self.connections:
            self.connections[channel] = self.writer.add_connection(
                channel.topic,
                channel.type,
                msgdef=channel.definition,
                rihs01=channel.digest,
                offered_qos_profiles=channel.qos,
            )
        return self.connections[channel]

    def write(self, channel: Channel, stamp: int, raw: bytes) -> None:
        self.writer.write(self.connection(channel), stamp, raw)
        self.size += len(raw)
        self.start = stamp if self.start is None else self.start

    def flush(self) -> None:
        """Bring what was written to the file, in a form that can be read without the rest."""
        storage: Any = self.writer.storage
        if self.storage == "mcap":
            if storage.chunk.bio.tell():
                storage.close_chunk()
            storage.bio.flush()
        else:
            storage.conn.commit()

    def close(self) -> Path:
        """Finish the file and move it beside the others; returns its path."""
        self.writer.close()
        name = f"{self.folder.name}.{_SUFFIX[self.storage]}"
        target = self.folder.parent / name
        (self.folder / name).replace(target)
        shutil.rmtree(self.folder)
        return target


class BagWriter:
    """Writes one bag.

    Args:
        path: Folder to make.
        storage: ``mcap`` or ``sqlite3``.
        compress: Use zstd.
        split_size: Begin a new file after so many bytes of messages; 0: never.
        split_duration: Begin a new file after so long [s]; 0: never.
        types: Where definitions come from.

    Raises:
        InvalidInput: The folder exists or cannot be made.
    """

    def __init__(
        self,
        path: Path,
        *,
        storage: str = "mcap",
        compress: bool = False,
        split_size: int = 0,
        split_duration: float = 0.0,
        types: TypeRegistry | None = None,
    ) -> None:
        if storage not in _SUFFIX:
            raise InvalidInput("storage", f"must be mcap or sqlite3, not {storage}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise InvalidInput(str(path), "exists already; bags are never overwritten") from None
        except OSError as error:
            raise InvalidInput(str(path), f"cannot be made ({error.strerror})") from None
        self.path = path
        self.types = types or TypeRegistry()
        self._storage = storage
        self._compress = compress
        self._split_size = split_size
        self._split_duration = split_duration
        self._marker = (path / MARKER).open("w")
        fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        json.dump({"storage": storage, "compress": compress}, self._marker)
        self._marker.flush()
        self._files: list[Path] = []
        self._part: _Part | None = None
        self._channels: dict[tuple[str, str], Channel] = {}
        self.count = 0

    def channel(self, topic: str, kind: str, qos: tuple[Qos, ...], digest: str = "") -> Channel:
        """Announce a topic.

        Raises:
            InvalidInput: No installed package has the type.
        """
        key = (topic, kind)
        if key not in self._channels:
            definition = self.types.definition(kind)
            digest = digest or self.types.digest(kind)
            self._channels[key] = Channel(topic, kind, qos, digest, definition)
        return self._channels[key]

    def write(self, channel: Channel, stamp: int, raw: bytes) -> None:
        """Add a message, serialized as CDR, at a time [ns]."""
        part = self._part
        if part is not None and (
            (self._split_size and part.size >= self._split_size)
            or (
                self._split_duration
                and part.start is not None
                and stamp - part.start >= self._split_duration * 1e9
            )
        ):
            self._files.append(part.close())
            part = None
        if part is None:
            part = self._part = self._new_part()
        part.write(channel, stamp, raw)
        self.count += 1

    def _new_part(self) -> _Part:
        name = f"{self.path.name}_{len(self._files)}"
        return _Part(self.path / name, self._storage, self._compress)

    def flush(self) -> None:
        """Make everything written so far safe against a kill."""
        if self._part is not None:
            self._part.flush()

    def close(self) -> None:
        """Finish the bag."""
        if self._part is None and not self._files:
            self._part = self._new_part()
            for channel in self._channels.values():
                self._part.connection(channel)
        if self._part is not None:
            self._files.append(self._part.close())
            self._part = None
        write_metadata(self.path, self._files, self._storage, compress=self._compress)
        self._marker.close()
        (self.path / MARKER).unlink(missing_ok=True)

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_metadata(path: Path, files: list[Path], storage: str, *, compress: bool) -> None:
    """Write metadata.yaml (version 9, that of Jazzy) from what is in the files."""
    from kin_bags.reader import open_storage

    topics: dict[tuple[str, str], dict[str, Any]] = {}
    entries = []
    begin, end, total = None, 0, 0
    for file in files:
        with open_storage(file) as reader:
            count = reader.message_count
            start = reader.start_time if count else 0
            stop = reader.end_time - 1 if count else 0
            for connection in reader.connections:
                key = (connection.topic, connection.msgtype)
                topic = topics.setdefault(
                    key,
                    {
                        "topic_metadata": {
                            "name": connection.topic,
                            "type": connection.msgtype,
                            "serialization_format": "cdr",
                            "offered_qos_profiles": dump_qos_v9(
                                connection.ext.offered_qos_profiles
                            ),
                            "type_description_hash": connection.digest or _digest(connection),
                        },
                        "message_count": 0,
                    },
                )
                topic["message_count"] += connection.msgcount
        if count:
            begin = start if begin is None else min(begin, start)
            end = max(end, stop)
        total += count
        entries.append(
            {
                "path": file.name,
                "starting_time": {"nanoseconds_since_epoch": start},
                "duration": {"nanoseconds": stop - start},
                "message_count": count,
            }
        )
    messages = compress and storage == "sqlite3"
    content = {
        "rosbag2_bagfile_information": {
            "version": _VERSION,
            "storage_identifier": storage,
            "duration": {"nanoseconds": end - begin if begin is not None else 0},
            "starting_time": {"nanoseconds_since_epoch": begin or 0},
            "message_count": total,
            "topics_with_message_count": list(topics.values()),
            "compression_format": "zstd" if messages else "",
            "compression_mode": "message" if messages else "",
            "relative_file_paths": [file.name for file in files],
            "files": entries,
            "custom_data": None,
            "ros_distro": "jazzy",
        }
    }
    fresh = path / ".metadata.yaml"
    fresh.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    fresh.replace(path / "metadata.yaml")


def _digest(connection: Any) -> str:
    """The hash of a type from the definition in the file, which mcap keeps without it."""
    registry = TypeRegistry()
    registry.learn_from_bag(connection.msgtype, connection.msgdef.data)
    if is_hidden(connection.msgtype):  # its parts have other names here than they really have
        return registry.digest(connection.msgtype)
    return str(registry.store.hash_rihs01(connection.msgtype))
