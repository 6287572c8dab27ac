"""Kafka's lanes: a transaction writes messages into topics, and the entry into the ledger's topic."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, repeat

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.identity import Identity
from penstock.log.broker import Broker
from penstock.log.client import asking
from penstock.log.last_record import last_record
from penstock.log.ledger import Entry
from penstock.log.transactional_writer import Message, TransactionalWriter
from penstock.points import reach
from penstock.settings import Settings
from penstock.targets.lanes import spread_by_number

_SPREAD, _LANE = "_spread", "_lane"
_COLUMNS = ("topic", "key", "value", "headers")


def read_entry(settings: Settings, sink: str, number: int) -> Entry:
    """Return what a lane wrote down last, without becoming its writer."""
    return Entry.from_record(last_record(settings, Identity(sink).ledger, number, wait_for_open=False))


class KafkaLane:
    """Writes messages and their entry in one transaction."""

    def __init__(self, settings: Settings, sink: str, number: int, timeout_ms: int) -> None:
        self._number, self._sink, identity = number, sink, Identity(sink)
        self._writer = TransactionalWriter(
            settings, identity.transactional_id(number), identity.ledger, timeout_ms
        )
        self.entry = Entry.from_record(self._writer.last_record(number))
        reach("sink.kafka.opened", sink)

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None:
        """Write rows as messages."""
        self.send(messages(rows), entry)

    def send(self, messages: Iterable[Message], entry: Entry) -> int:
        """Write messages; return how many."""

        def sent_all() -> None:
            if entry.batch is not None:
                reach("sink.kafka.sent", self._sink)

        sent = self._writer.write(messages, (self._number, entry.to_json()), sent_all)
        self.entry = entry
        return sent

    def close(self) -> None:
        """Nothing is held that the next writer could not end."""


@dataclass(frozen=True)
class KafkaLanes:
    """The lanes of a sink, which are the partitions of its ledger, a topic compacted to the last entries.

    Rows go by `_spread`, a number that does not depend on what they hold; where it is null they go by their
    key, and their first header says which lane it was. A lane is written in the order of `_order`. Neither
    column need be there.
    """

    kafka: dict[str, str] = field(repr=False)
    sink: str
    timeout_ms: int
    kind: str = "kafka"

    def prepare(self, wanted: int) -> int:
        topic, broker = Identity(self.sink).ledger, Broker(self._settings)
        broker.ensure(topic, wanted, {"cleanup.policy": "compact", "retention.ms": "-1"})
        return broker.topic(topic).partitions

    def read(self) -> tuple[Entry, ...]:
        topic = Identity(self.sink).ledger
        found = Broker(self._settings).topics([topic])
        count = found[topic].partitions if found else 0
        with asking(f"read the ledger of {self.sink!r}"):
            return tuple(read_entry(self._settings, self.sink, number) for number in range(count))

    def open(self, number: int) -> KafkaLane:
        return KafkaLane(self._settings, self.sink, number, self.timeout_ms)

    def spread(self, rows: DataFrame, count: int) -> DataFrame:
        by_key = F.hash(F.coalesce("key", "value")).cast("long")
        spread = F.coalesce(_SPREAD, by_key) if _SPREAD in rows.columns else by_key
        numbered = rows.withColumn(_LANE, F.pmod(spread, F.lit(count)).cast("int"))
        if _SPREAD in rows.columns:
            numbered = numbered.withColumn("headers", _with_lane())
        return spread_by_number(numbered, count).select(*_COLUMNS)

    @property
    def _settings(self) -> Settings:
        return Settings(kafka=self.kafka)


def _with_lane() -> Column:
    """Headers whose first one also names the lane of a row that was spread by its key."""
    name = F.concat(F.lit(" lane/"), F.col(_LANE).cast("string")).cast("binary")

    def named(header: Column, place: Column) -> Column:
        laned = header.withField("value", F.concat(header["value"], name))
        return F.when(place == 0, laned).otherwise(header)

    return F.when(F.col(_SPREAD).isNull(), F.transform("headers", named)).otherwise(F.col("headers"))


def messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Yield the rows of Arrow batches as messages."""
    for batch in batches:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        topics, headers = _texts(batch.column("topic")), _headers(batch.column("headers"))
        yield from zip(topics, keys, values, headers, strict=True)


def _texts(column: pa.StringArray) -> Iterable[str]:
    """Nearly always they are all the same: a text for each row would be made for nothing."""
    different = column.unique().to_pylist()
    return repeat(different[0], len(column)) if len(different) == 1 else column.to_pylist()


def _headers(column: pa.ListArray) -> Iterable[list[tuple[str, bytes]]]:
    """All pairs are made at once: a list of structs, turned into Python row by row, takes twice as long."""
    names, values = column.flatten().flatten()
    pairs = list(zip(_texts(names), values.to_pylist(), strict=True))
    lengths = column.value_lengths().fill_null(0)
    if pairs and len(pairs) == len(lengths) and lengths.unique().to_pylist() == [1]:
        return map(list, zip(pairs, strict=True))
    ends = list(accumulate(lengths.to_pylist()))
    return [pairs[start:end] for start, end in zip([0, *ends], ends, strict=False)]
