"""The messages of PostgreSQL's plug-in pgoutput, taken apart."""

from struct import Struct
from typing import Final, NamedTuple

_NUMBER = Struct(">I").unpack_from
_SHORT = Struct(">H").unpack_from
_BEGIN = Struct(">qqI").unpack_from
_COMMIT = Struct(">Bqqq").unpack_from
_COLUMN = Struct(">Ii").unpack_from
_MESSAGE = Struct(">Bq").unpack_from
_EPOCH = 946_684_800_000_000  # of PostgreSQL, the year 2000, in microseconds of everybody else's
_NULL, _UNCHANGED = ord("n"), ord("u")
_KEY_FLAG = 1


class Unchanged:
    """Stands for a large value that an update did not touch, and that PostgreSQL therefore does not send."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
Value = bytes | None | Unchanged
Values = list[Value]


class Begin(NamedTuple):
    commit_lsn: int
    committed: int  # microseconds since 1970
    xid: int


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int


class Column(NamedTuple):
    name: str
    type: int
    modifier: int
    in_key: bool


class Relation(NamedTuple):
    """A table as the stream describes it before its first change, and whenever its shape has changed."""

    id: int
    schema: str
    table: str
    identity: str
    columns: tuple[Column, ...]


class Change(NamedTuple):
    """A row that was inserted, updated or deleted; `before` is what the replica identity gives of it."""

    op: str
    relation: int
    before: Values | None
    after: Values | None
    key_only: bool  # `before` holds the key's columns, and null in all others


class Truncate(NamedTuple):
    relations: tuple[int, ...]


class Message(NamedTuple):
    """What `pg_logical_emit_message` wrote; one that is not transactional comes at once."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


class StreamedCommit(NamedTuple):
    xid: int
    commit_lsn: int
    end_lsn: int
    committed: int


class StreamedAbort(NamedTuple):
    xid: int
    part: int  # the subtransaction that was rolled back; the transaction itself if it is the same


def begin(data: bytes) -> Begin:
    lsn, committed, xid = _BEGIN(data, 1)
    return Begin(lsn, committed + _EPOCH, xid)


def commit(data: bytes) -> Commit:
    _, lsn, end, _ = _COMMIT(data, 1)
    return Commit(lsn, end)


def streamed_commit(data: bytes) -> StreamedCommit:
    (xid,) = _NUMBER(data, 1)
    _, lsn, end, committed = _COMMIT(data, 5)
    return StreamedCommit(xid, lsn, end, committed + _EPOCH)


def streamed_abort(data: bytes) -> StreamedAbort:
    return StreamedAbort(_NUMBER(data, 1)[0], _NUMBER(data, 5)[0])


def number(data: bytes, at: int) -> int:
    found: int = _NUMBER(data, at)[0]
    return found


def relation(data: bytes, at: int = 1) -> Relation:
    (id,) = _NUMBER(data, at)
    schema, at = _text(data, at + 4)
    table, at = _text(data, at)
    identity, (count,) = chr(data[at]), _SHORT(data, at + 1)
    at, columns = at + 3, []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        type, modifier = _COLUMN(data, at)
        columns.append(Column(name, type, modifier, bool(flags & _KEY_FLAG)))
        at += 8
    return Relation(id, schema or "pg_catalog", table, identity, tuple(columns))


def change(data: bytes, at: int = 1) -> Change:
    """Take an insert, an update or a delete apart."""
    kind, (id,) = data[0], _NUMBER(data, at)
    mark, at = data[at + 4], at + 5
    if kind == 73:  # I
        return Change("c", id, None, _row(data, at)[0], False)
    before, key_only = None, False
    if mark != 78:  # N: only an update begins with it, if its key stayed as it was
        key_only = mark == 75  # K, or O for the whole old row
        before, at = _row(data, at)
        at += 1
    if kind == 68:  # D
        return Change("d", id, before, None, key_only)
    return Change("u", id, before, _row(data, at)[0], key_only)


def truncate(data: bytes, at: int = 1) -> Truncate:
    (count,) = _NUMBER(data, at)
    return Truncate(Struct(f">{count}I").unpack_from(data, at + 5))


def message(data: bytes, at: int = 1) -> Message:
    flags, lsn = _MESSAGE(data, at)
    prefix, at = _text(data, at + 9)
    (size,) = _NUMBER(data, at)
    return Message(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + size])


def _row(data: bytes, at: int) -> tuple[Values, int]:
    """Read a row's values as PostgreSQL spells them, and where the row ends."""
    (count,) = _SHORT(data, at)
    at += 2
    values: Values = []
    add, size_at = values.append, _NUMBER
    for _ in range(count):
        kind = data[at]
        if kind == _NULL:
            add(None)
            at += 1
        elif kind == _UNCHANGED:
            add(UNCHANGED)
            at += 1
        else:
            end = at + 5 + size_at(data, at + 1)[0]
            add(data[at + 5 : end])
            at = end
    return values, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
