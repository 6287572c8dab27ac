"""The events of a binary log, taken apart."""

import zlib
from struct import Struct
from typing import NamedTuple

from penstock.errors import CaptureError

_HEADER = Struct("<IBIIIH").unpack_from
_GTID = Struct("<QIB").unpack_from
_QUERY = Struct("<IIBHH").unpack_from
_SHORT, _NUMBER, _LONG = Struct("<H").unpack_from, Struct("<I").unpack_from, Struct("<Q").unpack_from

QUERY, STOP, ROTATE, FORMAT, XID, TABLE, INCIDENT, HEARTBEAT = 2, 3, 4, 15, 16, 19, 26, 27
XA_PREPARE, GTID, QUERY_COMPRESSED, START_ENCRYPTION = 38, 162, 165, 164
LOADS = (17, 18)  # LOAD DATA as a statement: the file's bytes, and what is done with it
# The kinds of rows' events: as (operation, whether it has the extra header of version 2, is compressed).
ROWS = {
    23: ("c", False, False), 24: ("u", False, False), 25: ("d", False, False),
    30: ("c", True, False), 31: ("u", True, False), 32: ("d", True, False),
    166: ("c", False, True), 167: ("u", False, True), 168: ("d", False, True),
    169: ("c", True, True), 170: ("u", True, True), 171: ("d", True, True),
}  # fmt: skip
STANDALONE = 1  # a flag of a GTID: the group is one statement, without an end of its own


class Event(NamedTuple):
    """An event: `ends` is where it ends in its file, 0 if it is in none."""

    kind: int
    at: int  # seconds since 1970
    server: int
    size: int
    ends: int
    body: bytes


class Gtid(NamedTuple):
    """The name of a group of events, a transaction or a statement."""

    domain: int
    server: int
    sequence: int
    flags: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


class Query(NamedTuple):
    thread: int
    database: str
    text: str


class RowsOf(NamedTuple):
    """Rows of a table, still packed; of updates each has two."""

    op: str
    table: int
    columns: int
    present: tuple[bytes, ...]
    data: bytes


def event(data: bytes, checked: bool) -> Event:
    """Take an event's header off; with `checked`, its last four bytes are its sum."""
    at, kind, server, size, ends, _ = _HEADER(data, 0)
    if not checked:
        return Event(kind, at, server, size, ends, data[19:])
    if not has_sum(data):
        raise CaptureError(
            f"an event of the binary log that ends at {ends} is damaged: its checksum is wrong",
            hint="look at the server's disk; `mariadb-binlog --verify-binlog-checksum` checks the file",
        )
    return Event(kind, at, server, size, ends, data[19:-4])


def has_sum(data: bytes) -> bool:
    """Whether the last four bytes of an event are the checksum of the others."""
    return bool(zlib.crc32(data[:-4]) == _NUMBER(data, len(data) - 4)[0])


def is_checked(format: bytes) -> bool:
    """Whether events have checksums, as the whole event that describes their format says."""
    return format[-5] == 1


def gtid(event: Event) -> Gtid:
    sequence, domain, flags = _GTID(event.body, 0)
    return Gtid(domain, event.server, sequence, flags)


def rotate(event: Event) -> tuple[str, int]:
    """Return the file that comes next, and where its first event is."""
    return event.body[8:].decode(), _LONG(event.body, 0)[0]


def query(event: Event) -> Query:
    body = event.body
    thread, _, size, _, variables = _QUERY(body, 0)
    start = 13 + variables
    text = body[start + size + 1 :]
    if event.kind == QUERY_COMPRESSED:
        text = _uncompressed(text)
    return Query(thread, body[start : start + size].decode(), text.decode(errors="replace"))


def table_id(body: bytes) -> int:
    return int.from_bytes(body[:6], "little")


def rows(event: Event) -> RowsOf:
    op, has_more, is_compressed = ROWS[event.kind]
    body, at = event.body, 8
    if has_more:
        at += _SHORT(body, at)[0]
    count, at = number(body, at)
    wide, present = (count + 7) // 8, []
    for _ in range(2 if op == "u" else 1):
        present.append(body[at : at + wide])
        at += wide
    data = _uncompressed(body[at:]) if is_compressed else body[at:]
    return RowsOf(op, table_id(body), count, tuple(present), data)


def number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number that is as long as its first byte says, and what is behind it."""
    first = data[at]
    if first < 251:
        return first, at + 1
    wide = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + wide], "little"), at + 1 + wide


def _uncompressed(data: bytes) -> bytes:
    wide = data[0] & 7
    if data[0] & 0x70:
        raise CaptureError("an event is compressed in a way that is not known", hint="log_bin_compress = OFF")
    return zlib.decompress(data[1 + wide :])
