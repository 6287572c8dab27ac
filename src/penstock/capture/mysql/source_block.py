"""The block that says where a change comes from, as Debezium's connector for MariaDB writes it."""

from dataclasses import dataclass

import msgspec

from penstock.capture.avro_schema import MARIADB_SOURCE
from penstock.capture.debezium_records import VERSION, SourceBlock, inner, tail
from penstock.capture.mysql.place import RowPlace, number, offset
from penstock.capture.records import Origin
from penstock.capture.tables import TableShape


@dataclass(frozen=True)
class BinlogOrigin(Origin):
    """Where a change comes from: its transaction's id, and the server that it was made on."""

    gtid: str | None = None
    server: int = 0


class MariaDbSource:
    """The blocks of a server whose log's files have this name."""

    def __init__(self, log: str) -> None:
        self._log = log

    def of_table(self, name: str, shape: TableShape) -> SourceBlock:
        return _MariaDbBlock(name, self._log, shape)


class _MariaDbBlock:
    """The block of one table's changes."""

    schema = MARIADB_SOURCE

    def __init__(self, name: str, log: str, shape: TableShape) -> None:
        self._head = inner({"version": VERSION, "connector": "mariadb", "name": name})
        self._database, self._table = inner({"db": shape.schema}), inner({"table": shape.name})
        self._log = msgspec.json.encode(log)[1:-1].replace(b"%", b"%%")
        self._seen: tuple[Origin | None, bytes, bytes] = (None, b"", b"")

    def of(self, origin: Origin, lsn: int) -> tuple[bytes, bytes]:
        """What all changes of a transaction have in common is put together once."""
        if self._seen[0] is not origin:
            self._seen = (origin, self._made(origin), tail(origin.now))
        row = lsn.row if isinstance(lsn, RowPlace) else 0
        return self._seen[1] % (number(lsn), offset(lsn), row), self._seen[2]

    def _made(self, origin: Origin) -> bytes:
        micros, gtid, server = origin.committed, None, 0
        if isinstance(origin, BinlogOrigin):
            gtid, server = origin.gtid, origin.server
        return b"".join(
            (
                b',"source":{', self._head, b',"ts_ms":%d' % (micros // 1000),
                b',"snapshot":"%b",' % origin.snapshot.encode(), self._database,
                b',"sequence":null,"ts_us":%d,"ts_ns":%d,' % (micros, micros * 1000), self._table,
                b',"server_id":%d,"gtid":%b' % (server, b'"%b"' % gtid.encode() if gtid else b"null"),
                b',"file":"%b.%%06d","pos":%%d,"row":%%d,"thread":null,"query":null}' % self._log,
            )
        )  # fmt: skip
