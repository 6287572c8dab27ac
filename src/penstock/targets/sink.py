"""What every sink guarantees; `penstock.testing.sink_contract` is the suite that each of them passes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from pyspark.sql import DataFrame

from penstock.log.ledger import Batch, Entry
from penstock.settings import Settings

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once"]
BeforeCommit = Callable[[DataFrame], None]


def nothing(_: DataFrame) -> None:
    """There is nothing to be done before the commit."""


@dataclass(frozen=True)
class SinkOptions:
    """What a sink is made with; `id` is its name in the ledger for as long as its flow lives.

    `lanes` is how many tasks may write at the same time, `timeout` how long a transaction may take.
    """

    settings: Settings
    id: str
    lanes: int = 2
    guarantee: Guarantee = "exactly-once"
    timeout: str | timedelta = "1 minute"


class Sink(Protocol):
    """Takes in the batches of one flow, each exactly once.

    `open` makes this process the sink's writer: an earlier one can't write any more, what it left undone is
    undone, and the last entries of the ledger are returned (one for each lane that is written by itself);
    `anew` forgets them. `take_over` only shuts an earlier writer out, without a look at the target where the
    ledger is not part of it: what is to be replaced may be damaged, or have other columns.
    `write` takes a batch in unless the ledger says that it was, and says whether it has read the rows; it
    raises LedgerError for a batch that does not follow, FencedError when another writer has taken over,
    SinkError when the target did not answer. Rows are read once, by executors; none come to the driver.
    `before_commit` is called when all rows have been computed and nothing is committed yet, with the
    DataFrame that was run; what it raises stops the batch. `entries` reads the ledger without becoming the
    writer.
    """

    id: str

    def entries(self) -> tuple[Entry, ...]: ...

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]: ...

    def take_over(self) -> tuple[Entry, ...]: ...

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool: ...

    def close(self) -> None: ...
