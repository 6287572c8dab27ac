"""A webhook's lanes: requests one after the other, with the ledger and dead letters in Kafka."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import PenstockError, SinkError
from penstock.identity import Identity
from penstock.log.ledger import Entry
from penstock.log.transactional_writer import Message, TransactionalWriter
from penstock.points import reach
from penstock.process.columns.names import SOURCE
from penstock.process.columns.naming import quoted
from penstock.process.wire.messages import EXACT_JSON
from penstock.settings import Settings
from penstock.targets.kafka.lane import KafkaLanes
from penstock.targets.lanes import ORDER, spread_by
from penstock.targets.webhook.batch_work import BatchWork
from penstock.targets.webhook.circuit import CircuitState
from penstock.targets.webhook.client import Answer, Client
from penstock.targets.webhook.delivery import Delivery, Rules
from penstock.targets.webhook.endpoint import Endpoint
from penstock.targets.webhook.event import COLUMNS, Event, Format, Request, events_of, requests_of
from penstock.targets.webhook.letters import ensure_letters
from penstock.targets.webhook.record import Progress, Record

DELIVERY = "_delivery"  # what a receiver knows a duplicate by, where that is not the row's id


@dataclass(frozen=True)
class Shape:
    """What a request looks like, and how long it may take."""

    key: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    batch: int | None = None
    format: Format = "json"
    timeout: str | timedelta = "10 seconds"
    connect_timeout: str | timedelta = "5 seconds"


@dataclass(frozen=True)
class WebhookLanes:
    """The lanes of a webhook; each has a partition of the ledger, and is fenced by its transactional id."""

    kafka: dict[str, str] = field(repr=False)
    sink: str
    endpoint: Endpoint
    shape: Shape
    rules: Rules
    timeout_ms: int
    kind: str = "webhook"

    def prepare(self, wanted: int) -> int:
        ensure_letters(self.settings, self.sink)
        return self._ledger.prepare(wanted)

    def read(self) -> tuple[Entry, ...]:
        return self._ledger.read()

    def open(self, number: int) -> "WebhookLane":
        return WebhookLane(self, number)

    def spread(self, rows: DataFrame, count: int) -> DataFrame:
        """Make each row an event; those of one key come to one lane."""
        return spread_by(event_rows(rows, self.shape), count, ["key"])

    @property
    def settings(self) -> Settings:
        return Settings(kafka=self.kafka)

    @property
    def _ledger(self) -> KafkaLanes:
        return KafkaLanes(self.kafka, self.sink, self.timeout_ms)


def event_rows(rows: DataFrame, shape: Shape) -> DataFrame:
    """Return results as events: an id, a key, the JSON, and where their sources are."""
    hidden = (SOURCE, ORDER, DELIVERY)
    names = shape.columns or tuple(name for name in rows.columns if name not in hidden)
    sent = ("id", *(name for name in names if name != "id"))
    body = F.to_json(F.struct(*map(quoted, sent)), EXACT_JSON)
    known = quoted(DELIVERY if DELIVERY in rows.columns else "id").cast("string")
    id = F.coalesce(known, F.md5(body))
    key = F.to_json(F.struct(*map(quoted, shape.key)), EXACT_JSON) if shape.key else id
    order = [quoted(ORDER)] if ORDER in rows.columns else []
    values = (id, key, body, *_source(rows))
    return rows.select(*(each.alias(name) for name, each in zip(COLUMNS, values, strict=True)), *order)


def _source(rows: DataFrame) -> tuple[Column, ...]:
    """Where the source of a result is, if the results say so."""
    kinds = {"topic": "string", "partition": "int", "offset": "long"}
    known = rows.select(f"{SOURCE}.*").columns if SOURCE in rows.columns else []
    return tuple(
        F.col(SOURCE)[name].cast(kind) if name in known else F.lit(None).cast(kind)
        for name, kind in kinds.items()
    )


class WebhookLane:
    """Delivers events, then writes their entry; dead letters are in the transaction of the record of them.

    Before the first request of a batch a record is written: who was shut out meanwhile sends nothing.
    """

    def __init__(self, lanes: WebhookLanes, number: int) -> None:
        self._lanes, self._number, identity = lanes, number, Identity(lanes.sink)
        self._writer = TransactionalWriter(
            lanes.settings, identity.transactional_id(number), identity.ledger, lanes.timeout_ms
        )
        self._record = Record.from_value(self._writer.last_record(number))
        self.entry = self._record.entry
        shape = lanes.shape
        self._client = Client(lanes.endpoint, lanes.sink, shape.timeout, shape.connect_timeout)

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None:
        """Deliver rows, and write their entry down when all of them are settled."""
        events = events_of(rows)
        first = next(events, None)
        if first is None:
            self._write(self._record.claimed(entry))
            return
        work = BatchWork(self._lanes.sink, self._write, self._record, self._progress(entry))
        work.save(self._record.circuit)
        circuit = self._deliver(work.left(chain([first], events)), work)
        reach("sink.webhook.sent", self._lanes.sink)
        self._write(work.record.finished(entry, work.progress, circuit), work.letters)

    def close(self) -> None:
        """Let go of the connection; nothing else is held that the next writer could not end."""
        self._client.close()

    def _progress(self, entry: Entry) -> Progress:
        """How far the batch is already."""
        found = self._record.progress
        return found if found is not None and found.batch == entry.batch else Progress(entry.batch)

    def _deliver(self, events: Iterator[Event], work: BatchWork) -> CircuitState:
        """Deliver events; what a failure leaves settled is written down, so that it is not sent again."""
        shape, rules = self._lanes.shape, self._lanes.rules
        delivery = Delivery(self._post, rules, self._lanes.endpoint.name, self._record.circuit)
        try:
            for settled in delivery.deliver(requests_of(events, shape.batch, shape.format)):
                work.add(settled)
                if work.is_due:
                    work.save(delivery.state)
        except SinkError:
            with suppress(PenstockError):  # the first failure is the one to be reported
                work.save(delivery.state)
            raise
        return delivery.state

    def _post(self, request: Request, attempt: int) -> Answer:
        return self._client.post(request, attempt, again=not self._lanes.rules.once)

    def _write(self, record: Record, letters: Iterable[Message] = ()) -> None:
        self._writer.write(letters, (self._number, record.to_json()))
        self._record, self.entry = record, record.entry
