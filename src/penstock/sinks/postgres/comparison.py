"""A table compared, in the database, with the rows that it should hold."""

from dataclasses import replace

from psycopg.sql import SQL, Identifier
from pyspark.sql import DataFrame

from penstock.log.ledger import Batch
from penstock.settings import Settings
from penstock.sinks.compared import Compared
from penstock.sinks.postgres.columns import columns_of
from penstock.sinks.postgres.connection import Connection, asking, connect
from penstock.sinks.postgres.sink import PostgresSink
from penstock.sinks.postgres.table import PostgresTable

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


def compare_table(table: PostgresTable, rows: DataFrame, settings: Settings, id: str) -> Compared:
    """Write the rows into a table beside, as a sink would, and compare the two row by row."""
    beside = replace(table, name=f"{table.name}__verify", dsn=table.address(settings))
    with connect(table.address(settings), id) as connection, asking("compare tables"):
        _forget(connection, beside, f"{id}.verify")
        sink = PostgresSink(beside, rows.schema, settings, f"{id}.verify", lanes=2)
        try:
            sink.open()
            sink.write(rows, Batch("verify", 0))
            names = [column.name for column in columns_of(table, rows.schema)]
            return _compared(connection, table, beside, names)
        finally:
            sink.close()
            _forget(connection, beside, f"{id}.verify")


def _compared(
    connection: Connection, table: PostgresTable, beside: PostgresTable, names: list[str]
) -> Compared:
    columns = SQL(", ").join(map(Identifier, names))
    connection.execute(
        SQL(_COUNTED).format(columns=columns, beside=beside.identifier, table=table.identifier)
    )
    sums = connection.execute(_SUMS).fetchone() or ()
    examples = connection.execute(_EXAMPLES).fetchall()
    return Compared.of([int(each) for each in sums], (str(row[0]) for row in examples))


def _forget(connection: Connection, beside: PostgresTable, id: str) -> None:
    """Leave no trace of the comparison, nor of one that was broken off."""
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(beside.identifier))
    if connection.execute("SELECT to_regclass('penstock.ledger')").fetchone() != (None,):
        connection.execute("DELETE FROM penstock.ledger WHERE sink = %s", [id])
