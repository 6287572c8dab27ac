"""Debezium's envelope, field by field, as its JSON converter writes it without schemas."""

from typing import Protocol

import msgspec

from penstock.capture.avro_schema import POSTGRES_SOURCE, SourceSchema
from penstock.capture.pgoutput import Change, Values
from penstock.capture.records import Keys, Origin, RowEncoder
from penstock.capture.tables import TableShape
from penstock.capture.values import Encoding
from penstock.log.transactional_writer import Message

_quote = msgspec.json.encode

KeyAndRow = tuple[bytes | None, bytes | None]
VERSION = "penstock"
TRUNCATED = b'{"__op":"t"}'


class SourceBlock(Protocol):
    """Writes where a change comes from, and what follows it in the envelope: each database has its own."""

    schema: SourceSchema

    def of(self, origin: Origin, lsn: int) -> tuple[bytes, bytes]:
        """Return the block, and a template for the change's place in its transaction and its operation."""


class SourceBlocks(Protocol):
    """The source blocks of a database's tables."""

    def of_table(self, name: str, shape: TableShape) -> SourceBlock:
        """Return the block of a table, under the name that its topics begin with."""


class DebeziumRecords:
    """Debezium's envelope, field by field, as its JSON converter writes it without schemas."""

    def __init__(self, topic: str, shape: TableShape, encoding: Encoding, source: SourceBlock) -> None:
        self.topic, self.has_key = topic, bool(shape.key)
        self._key = Keys(shape, encoding, plain=False)
        self._row = RowEncoder(shape.columns, encoding)
        self._source, self._path = source, shape.path
        self.source_schema = source.schema

    def key_of(self, values: Values) -> bytes | None:
        return self._key(values)

    def of(self, change: Change, origin: Origin, lsn: int) -> list[Message]:
        op, before, after = change.op, change.before, change.after
        old = None if before is None else self._row.write(before)
        new = None if after is None else self._row.write(after)
        key = self._key(after if after is not None else before or [])
        if op == "u" and before is not None and (gone := self._key(before)) != key:
            return self._moved(origin, lsn, (gone, old), (key, new))
        made: list[Message] = [(self.topic, key, self._envelope(op, old, new, origin, lsn), None)]
        if op == "d" and key is not None:
            made.append((self.topic, key, None, None))
        return made

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:
        return [
            (self.topic, key, self._envelope("d", key, None, origin, lsn), None),
            (self.topic, key, None, None),
        ]

    def truncation(self, origin: Origin, lsn: int) -> list[Message]:
        """A topic that is compacted takes no record without a key: this one has a key that no row has."""
        key = TRUNCATED if self.has_key else None
        return [(self.topic, key, self._envelope("t", None, None, origin, lsn), None)]

    def _moved(
        self,
        origin: Origin,
        lsn: int,
        old: tuple[bytes | None, bytes | None],
        new: tuple[bytes | None, bytes | None],
    ) -> list[Message]:
        """A change of the key: the old row is deleted, and the new one made; headers name each other."""
        gone = self._envelope("d", old[1], None, origin, lsn)
        come = self._envelope("c", None, new[1], origin, lsn)
        to_new, to_old = [("__debezium.newkey", new[0] or b"")], [("__debezium.oldkey", old[0] or b"")]
        return [
            (self.topic, old[0], gone, to_new),
            (self.topic, old[0], None, to_new),
            (self.topic, new[0], come, to_old),
        ]

    def _envelope(
        self, op: str, before: bytes | None, after: bytes | None, origin: Origin, lsn: int
    ) -> bytes:
        source, tail = self._source.of(origin, lsn)
        place = b"null" if origin.events is None else origin.events.place(self._path)
        return b"".join(
            (
                b'{"before":', before or b"null", b',"after":', after or b"null",
                source, tail % (place, op.encode()),
            )
        )  # fmt: skip


class PostgresSource:
    """The blocks of a PostgreSQL database."""

    def __init__(self, database: str) -> None:
        self._database = database

    def of_table(self, name: str, shape: TableShape) -> SourceBlock:
        return _PostgresBlock(name, self._database, shape)


class _PostgresBlock:
    """The block of one table's changes."""

    schema = POSTGRES_SOURCE

    def __init__(self, name: str, database: str, shape: TableShape) -> None:
        head = {"version": VERSION, "connector": "postgresql", "name": name}
        self._head, self._database = inner(head), inner({"db": database})
        self._place = inner({"schema": shape.schema, "table": shape.name})
        self._seen: tuple[Origin | None, bytes, bytes] = (None, b"", b"")

    def of(self, origin: Origin, lsn: int) -> tuple[bytes, bytes]:
        """What all changes of a transaction have in common is put together once."""
        if self._seen[0] is not origin:
            self._seen = (origin, self._made(origin), tail(origin.now))
        return self._seen[1] % (lsn, lsn), self._seen[2]

    def _made(self, origin: Origin) -> bytes:
        micros, last, xid = origin.committed, origin.last_commit, origin.xid
        before = b"null" if last is None else rb"\"%d\"" % last
        return b"".join(
            (
                b',"source":{', self._head, b',"ts_ms":%d' % (micros // 1000),
                b',"snapshot":"%b",' % origin.snapshot.encode(),
                self._database, rb',"sequence":"[%b,\"%%d\"]"' % before,
                b',"ts_us":%d,"ts_ns":%d,' % (micros, micros * 1000), self._place,
                b',"txId":%b,"lsn":%%d,"xmin":null' % (b"null" if xid is None else b"%d" % xid),
                b',"origin":null,"origin_lsn":null}',
            )
        )  # fmt: skip


def tail(now: int) -> bytes:
    """What follows a source block: a template for the transaction and the operation."""
    times = b'"ts_ms":%d,"ts_us":%d,"ts_ns":%d}' % (now // 1_000_000, now // 1000, now)
    return b',"transaction":%b,"op":"%b",' + times


def inner(object: dict[str, str]) -> bytes:
    """The inside of a JSON object, to be put into a template."""
    return _quote(object)[1:-1].replace(b"%", b"%%")
