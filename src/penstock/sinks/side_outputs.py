"""A table with side outputs: of each batch, what has a message goes to topics, and the rest to the table."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.errors import LedgerError
from penstock.log.ledger import Batch, Entry
from penstock.points import reach
from penstock.sinks.sink import BeforeCommit, Sink, nothing

MESSAGE = "_message"  # the column with a side output's message, null in the table's rows


class TableWithSideOutputs:
    """Writes a batch's side outputs, then its table; each is exactly once, by its own ledger.

    The two are not one transaction. What dies in between leaves the side outputs one batch ahead of the
    table, which gets its part when the batch is repeated. The rows are kept while both are written: computed
    twice, they might go different ways.
    """

    def __init__(self, id: str, topics: Sink, table: Sink) -> None:
        self.id = id
        self._topics, self._table = topics, table

    def entries(self) -> tuple[Entry, ...]:
        """What both have written down last."""
        return (*self._topics.entries(), *self._table.entries())

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the writer of both."""
        topics, table = self._topics.open(anew=anew), self._table.open(anew=anew)
        for entry in topics:
            _refuse_apart(entry.batch, table[0].batch, self.id)
        return (*topics, *table)

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write what either of them has not; say whether the rows were read."""
        kept = rows.persist()
        try:
            sent = self._topics.write(messages_of(kept), batch, before_commit)
            reach("sink.side-outputs.written", self.id)
            return self._table.write(table_rows(kept), batch, before_commit) or sent
        finally:
            kept.unpersist()

    def close(self) -> None:
        self._topics.close()
        self._table.close()


def messages_of(rows: DataFrame) -> DataFrame:
    """The side outputs among rows, as Kafka's sink takes them."""
    return rows.where(F.col(MESSAGE).isNotNull()).select(f"{MESSAGE}.*")


def table_rows(rows: DataFrame) -> DataFrame:
    """The rows that are no side outputs, as the table's sink takes them."""
    return rows.where(F.col(MESSAGE).isNull()).drop(MESSAGE)


def _refuse_apart(side: Batch | None, table: Batch | None, id: str) -> None:
    """Side outputs may be new, as far as the table, or one batch ahead of it."""
    if side is None or side == table:
        return
    if side.number != 0 if table is None else not side.follows(table):
        raise LedgerError(
            f"sink {id!r} has written {side} to its side outputs, and {table or 'nothing'} to its table",
            hint="one of the ledgers was lost, or the flow ran without its side outputs for a while: bring "
            "the ledger back, or give the flow another name",
        )
