"""Lanes of an index: rows first, each with a version of its own, then the entry."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.log.ledger import Entry
from penstock.process.columns.naming import quoted
from penstock.targets.lanes import spread_by
from penstock.targets.opensearch.bulk import Item, chunks, send
from penstock.targets.opensearch.client import Client, Server
from penstock.targets.opensearch.indices import describe, find, live, prepare
from penstock.targets.opensearch.ledger import LaneLedger, lane_count
from penstock.targets.opensearch.sources import Sources
from penstock.targets.search.description import Description

_ROWS = 44  # bits of a version that count rows; those above are the writer's epoch


class OpenSearchLane:
    """Writes rows that may be there already, with the versions that they had then.

    A version is the writer's epoch and the number of the row among all that the lane has written. A batch
    that is repeated has the same rows, so the same versions; what an older writer sends late has a lower one.
    """

    def __init__(self, lanes: "OpenSearchLanes", number: int) -> None:
        self._client = Client(lanes.server)
        self._generation = live(self._client, lanes.name)
        describe(self._client, self._generation).check_same(lanes.description, lanes.name)
        self._sources = Sources(lanes.description)
        self._ledger = LaneLedger(self._client, self._generation, lanes.sink, number)
        self._ledger.take()
        self.entry = Entry.from_json(self._ledger.held.note.entry)

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None:
        """Write rows, then the entry."""
        before, written = self._ledger.held.note, 0
        for chunk in chunks(self._items(rows, entry.epoch, before.rows)):
            self._ledger.check()
            send(self._client, self._generation, chunk)
            written += len(chunk)
        note = msgspec.structs.replace(before, entry=entry.to_json().decode(), rows=before.rows + written)
        self._ledger.write(note)
        self.entry = entry

    def close(self) -> None:
        self._client.close()

    def _items(self, rows: Iterable[pa.RecordBatch], epoch: int, before: int) -> Iterator[Item]:
        changes = (change for batch in rows for change in self._sources.changes(batch))
        for (key, source), number in zip(changes, count(before + 1), strict=False):
            yield Item(key, source, (epoch << _ROWS) + number)


@dataclass(frozen=True)
class OpenSearchLanes:
    """The lanes of a sink; a key's rows are all in one of them."""

    server: Server = field(repr=False)
    name: str
    description: Description
    sink: str
    kind: str = "opensearch"

    def prepare(self, wanted: int) -> int:
        client = Client(self.server)
        return lane_count(client, prepare(client, self.name, self.description), self.sink, wanted)

    def read(self) -> tuple[Entry, ...]:
        client = Client(self.server)
        generation = find(client, self.name)
        if generation is None:
            return ()
        lanes = range(lane_count(client, generation, self.sink, None))
        found = [LaneLedger(client, generation, self.sink, number).read() for number in lanes]
        return tuple(Entry.from_json(each.note.entry) for each in found if each.place is not None)

    def open(self, number: int) -> OpenSearchLane:
        return OpenSearchLane(self, number)

    def spread(self, rows: DataFrame, count: int) -> DataFrame:
        kept = (*self.description.types(), "_order", "_deleted")
        chosen = rows.select(*(quoted(name) for name in rows.columns if name in kept))
        return spread_by(chosen, count, [quoted(name) for name in self.description.key])
