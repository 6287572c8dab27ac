"""What every sink promises; `tests/integration/sink_contract.py` is the suite that each of them passes."""

from typing import Protocol

from pyspark.sql import DataFrame

from penstock.log.ledger import Batch, Entry


class Sink(Protocol):
    """Takes in the batches of one flow, each exactly once.

    `open` makes this process the sink's writer: an earlier one can't write any more, what it left undone is
    undone, and the last entries of the ledger are returned (one for each lane that is written by itself).
    `write` takes a batch in unless the ledger says that it was, and says whether it has read the rows; it
    raises LedgerError for a batch that does not follow, FencedError when another writer has taken over,
    SinkError when the target did not answer. Rows are read once, by executors; none come to the driver.
    """

    id: str

    def open(self) -> tuple[Entry, ...]: ...

    def write(self, rows: DataFrame, batch: Batch) -> bool: ...

    def close(self) -> None: ...
