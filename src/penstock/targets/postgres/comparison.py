"""A table compared, in the database, with the rows that it should hold."""

import hashlib
from dataclasses import dataclass

from psycopg.sql import SQL, Identifier
from pyspark.sql import DataFrame

from penstock.errors import SinkError
from penstock.log.ledger import Batch
from penstock.settings import Settings
from penstock.targets.compared import Compared
from penstock.targets.postgres.columns import columns_of
from penstock.targets.postgres.connection import Connection, asking, connect
from penstock.targets.postgres.sink import PostgresSink
from penstock.targets.postgres.staging import SCHEMA
from penstock.targets.postgres.table import DeclaredTable
from penstock.targets.sink import SinkOptions

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 2))"
_COUNTED = """
    CREATE TEMPORARY TABLE penstock_counted AS
    SELECT line, count(*) FILTER (WHERE due) AS due, count(*) FILTER (WHERE NOT due) AS found
    FROM (SELECT row({columns})::text AS line, true AS due FROM {beside}
          UNION ALL SELECT row({columns})::text, false FROM {table}) AS sides
    GROUP BY line"""
_SUMS = """
    SELECT coalesce(sum(due), 0), coalesce(sum(found), 0), coalesce(sum(greatest(due - found, 0)), 0),
        coalesce(sum(found - due) FILTER (WHERE due > 0 AND found > due), 0),
        coalesce(sum(found) FILTER (WHERE due = 0), 0)
    FROM penstock_counted"""
_EXAMPLES = """
    SELECT CASE WHEN due > found THEN 'missing ' WHEN due > 0 THEN 'repeated ' ELSE 'unexpected ' END
        || left(line, 200)
    FROM penstock_counted WHERE due <> found LIMIT 5"""


@dataclass(frozen=True)
class _Beside(DeclaredTable):
    """A table in the schema of our own, where no flow writes and nobody else has tables."""

    @property
    def path(self) -> tuple[str, str]:
        return SCHEMA, self.name

    def _check_name(self) -> None:
        """It is in a schema that is reserved for us."""


def compare_table(table: DeclaredTable, rows: DataFrame, settings: Settings, id: str) -> Compared:
    """Write the rows into a table of our own, as a sink would, and compare the two row by row."""
    address = table.address(settings)
    name = f"verify_{hashlib.sha256(id.encode()).hexdigest()[:32]}"
    beside = _Beside(name, key=table.key, write=table.write, dsn=address)
    with connect(address, id) as connection, asking("compare tables"):
        _be_the_only_one(connection, name, id)
        _forget(connection, beside, f"{id}.verify")
        sink = PostgresSink(beside, rows.schema, SinkOptions(settings, f"{id}.verify"))
        try:
            sink.open()
            sink.write(rows, Batch("verify", 0))
            names = [column.name for column in columns_of(table, rows.schema)]
            return _compared(connection, table, beside, names)
        finally:
            sink.close()
            _forget(connection, beside, f"{id}.verify")


def _compared(
    connection: Connection, table: DeclaredTable, beside: DeclaredTable, names: list[str]
) -> Compared:
    columns = SQL(", ").join(map(Identifier, names))
    connection.execute(
        SQL(_COUNTED).format(columns=columns, beside=beside.identifier, table=table.identifier)
    )
    sums = connection.execute(_SUMS).fetchone() or ()
    examples = connection.execute(_EXAMPLES).fetchall()
    return Compared.of([int(each) for each in sums], (str(row[0]) for row in examples))


def _be_the_only_one(connection: Connection, name: str, id: str) -> None:
    if connection.execute(_LOCK, [name]).fetchone() != (True,):
        raise SinkError(
            f"{id!r} is being verified by another process", hint="wait until it is done, then try again"
        )


def _forget(connection: Connection, beside: DeclaredTable, id: str) -> None:
    """Leave no trace of the comparison, nor of one that was broken off."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(beside.identifier))
    if connection.execute("SELECT to_regclass('penstock.ledger')").fetchone() != (None,):
        connection.execute("DELETE FROM penstock.ledger WHERE sink = %s", [id])
