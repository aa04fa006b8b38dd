"""Bags in the byte layout of rosbag2's own writers, for what the library's writer cannot write.

No recording of a real ``ros2 bag record`` is at hand here: these files are made from the formats'
definitions (mcap: header, chunk with its message indexes, data end, summary, footer; sqlite3: the
tables of schema version 4). As rosbag2 0.26 does, a type whose definition it does not find gets the
encoding "unknown" and no text.
"""

import sqlite3
import struct
from pathlib import Path

import yaml

MAGIC = b"\x89MCAP0\r\n"


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(data)) + data


def record(code, body):
    return struct.pack("<BQ", code, len(body)) + body


def write_mcap(file, topics, messages):
    """One chunk with everything in it, and a whole summary.

    Args:
        file: To make.
        topics: Topic, type, encoding and text of the definition, of each.
        messages: Number of the topic, time [ns] and CDR bytes, of each.
    """
    qos = text("offered_qos_profiles") + text("[]")
    schemas = [
        record(3, struct.pack("<H", k + 1) + text(kind) + text(encoding) + text(definition))
        for k, (_, kind, encoding, definition) in enumerate(topics)
    ]
    channels = [
        record(4, struct.pack("<HH", k + 1, k + 1) + text(topic) + text("cdr") + text(qos))
        for k, (topic, *_) in enumerate(topics)
    ]
    chunk, indexes = b"".join(schemas + channels), {}
    for number, (topic, stamp, raw) in enumerate(messages):
        indexes.setdefault(topic + 1, []).append((stamp, len(chunk)))
        chunk += record(5, struct.pack("<HIQQ", topic + 1, number, stamp, stamp) + raw)
    stamps = [stamp for _, stamp, _ in messages]
    head = MAGIC + record(1, text("ros2") + text("libmcap 1.1.0"))
    body = struct.pack("<QQQI", min(stamps), max(stamps), len(chunk), 0) + text("")
    whole = record(6, body + struct.pack("<Q", len(chunk)) + chunk)
    data, offsets = head + whole, b""
    for channel, entries in indexes.items():
        offsets += struct.pack("<HQ", channel, len(data))
        packed = b"".join(struct.pack("<QQ", *entry) for entry in entries)
        data += record(7, struct.pack("<H", channel) + text(packed))
    length = len(data) - len(head) - len(whole)
    data += record(15, struct.pack("<I", 0))
    start = len(data)
    counts = b"".join(struct.pack("<HQ", c, len(e)) for c, e in indexes.items())
    sizes = (len(messages), len(topics), len(topics), 0, 0, 1, min(stamps), max(stamps))
    summary = [*schemas, *channels, record(11, struct.pack("<QHIIIIQQ", *sizes) + text(counts))]
    index = struct.pack("<QQQQ", min(stamps), max(stamps), len(head), len(whole)) + text(offsets)
    index += struct.pack("<Q", length) + text("") + struct.pack("<QQ", len(chunk), len(chunk))
    summary.append(record(8, index))
    data += b"".join(summary) + record(2, struct.pack("<QQI", start, 0, 0)) + MAGIC
    Path(file).write_bytes(data)


def write_sqlite3(file, topics, messages):
    """The tables that rosbag2 makes; arguments as above."""
    with sqlite3.connect(file) as bag:
        bag.executescript(
            "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);"
            "CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL,"
            " metadata TEXT NOT NULL);"
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
            " serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL,"
            " type_description_hash TEXT NOT NULL);"
            "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL,"
            " encoding TEXT NOT NULL, encoded_message_definition TEXT NOT NULL,"
            " type_description_hash TEXT NOT NULL);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
            " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        )
        bag.execute("INSERT INTO schema VALUES (4, 'jazzy')")
        for k, (topic, kind, encoding, definition) in enumerate(topics, 1):
            bag.execute("INSERT INTO topics VALUES (?, ?, ?, 'cdr', '[]', '')", (k, topic, kind))
            row = (k, kind, encoding, definition)
            bag.execute("INSERT INTO message_definitions VALUES (?, ?, ?, ?, '')", row)
        for topic, stamp, raw in messages:
            row = (topic + 1, stamp, raw)
            bag.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)", row)


def write_bag(path, storage, topics, messages):
    """A bag of one file with its metadata; arguments as above."""
    path.mkdir()
    file = path / f"{path.name}_0.{'mcap' if storage == 'mcap' else 'db3'}"
    (write_mcap if storage == "mcap" else write_sqlite3)(file, topics, messages)
    stamps = [stamp for _, stamp, _ in messages]
    begin = {"nanoseconds_since_epoch": min(stamps)}
    length = {"nanoseconds": max(stamps) - min(stamps)}
    information = {
        "version": 9,
        "storage_identifier": storage,
        "duration": length,
        "starting_time": begin,
        "message_count": len(messages),
        "topics_with_message_count": [
            {
                "topic_metadata": {
                    "name": topic,
                    "type": kind,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [],
                    "type_description_hash": "",
                },
                "message_count": sum(which == k for which, _, _ in messages),
            }
            for k, (topic, kind, *_) in enumerate(topics)
        ],
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file.name],
        "files": [
            {
                "path": file.name,
                "starting_time": begin,
                "duration": length,
                "message_count": len(messages),
            }
        ],
        "custom_data": None,
        "ros_distro": "jazzy",
    }
    content = yaml.safe_dump({"rosbag2_bagfile_information": information}, sort_keys=False)
    (path / "metadata.yaml").write_text(content)
    return path
