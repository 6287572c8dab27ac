"""Rows as flows see those of a topic: the event's columns, where it stands in the log, and if it is gone."""

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
from pyspark.sql.types import BooleanType, StructType, TimestampType

from penstock.errors import FlowError, TopicError
from penstock.log import Table, Topic
from penstock.process.columns.names import CHANGE, DELETED, SOURCE, SOURCE_TYPE
from penstock.process.wire.debezium.envelope import change_type
from penstock.schemas import spark_schema

_AS_THEY_ARE = (bytes, datetime, date, Decimal)  # an Enum is its value, a UUID its text


@dataclass(frozen=True)
class Sent:
    """An event as it stands in the log: when it was written, in which partition, with which headers."""

    event: Any
    written: datetime | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Tombstone:
    """The deletion of a table's row; it was written when the row sent before it was, unless it says when."""

    key: Any
    written: datetime | None = None
    partition: int = 0


class TopicRows:
    """Makes rows of a topic's events, one behind the other."""

    def __init__(self, topic: Topic[Any]) -> None:
        self._topic = topic
        self._next: Counter[int] = Counter()  # the next offset of each partition
        self._written: datetime | None = None
        self.schema = StructType(spark_schema(topic.event).fields)
        if topic.commit_time is not None:
            self.schema.add(topic.commit_time, TimestampType())
        self.schema.add(SOURCE, StructType.fromDDL(SOURCE_TYPE))
        if isinstance(topic, Table) or topic.is_captured:
            self.schema.add(DELETED, BooleanType())
        if topic.is_captured:
            self.schema.add(CHANGE, change_type(topic.event))
        self.schema = self.schema.toNullable()

    def row(self, given: Any) -> dict[str, Any]:
        """Return the row of an event, of one that is `Sent`, or of a `Tombstone`."""
        if isinstance(given, Tombstone):
            return self._tombstone(given)
        sent = given if isinstance(given, Sent) else Sent(given)
        if type(sent.event) is not self._topic.event:
            expected, seen = self._topic.event.__name__, type(sent.event).__name__
            raise TopicError(f"topic {self._topic.name!r} takes {expected}, got a {seen}")
        values: dict[str, Any] = msgspec.to_builtins(sent.event, builtin_types=_AS_THEY_ARE)
        written = sent.written or self._time_of(sent.event)
        return values | self._place(sent.partition, written, sent.headers) | self._marks("c", written)

    def _tombstone(self, gone: Tombstone) -> dict[str, Any]:
        if not isinstance(self._topic, Table) and not self._topic.is_captured:
            raise TopicError(f"topic {self._topic.name!r} is no table: nothing in it can be deleted")
        written = gone.written or self._written
        if written is None:
            raise FlowError(
                f"nothing was sent to {self._topic.name!r} before the tombstone of {gone.key!r}",
                hint="say when it was written: Tombstone(key, written=…)",
            )
        key = msgspec.to_builtins(gone.key, builtin_types=_AS_THEY_ARE)
        place = self._place(gone.partition, written, ())
        return {str(self._topic.key): key} | place | self._marks("d", written)

    def _time_of(self, event: Any) -> datetime:
        if self._topic.commit_time is None:
            return self._topic.time_of(event)
        raise FlowError(
            f"{type(event).__name__} has no event time of its own, but that of its commit",
            hint="say when it was written: Sent(event, written=…)",
        )

    def _marks(self, op: str, written: datetime) -> dict[str, Any]:
        """What says how a row changed; a captured one was committed when it was written."""
        change = {"op": op, "before": None, "lsn": None, "transaction": None}
        marks = {DELETED: op == "d", CHANGE: change | {"committed": written, "snapshot": False}}
        return marks if self._topic.commit_time is None else marks | {self._topic.commit_time: written}

    def _place(
        self, partition: int, written: datetime, headers: tuple[tuple[str, bytes], ...]
    ) -> dict[str, Any]:
        offset, self._written = self._next[partition], written
        self._next[partition] += 1
        source = {"topic": self._topic.name, "partition": partition, "offset": offset}
        return {SOURCE: source | {"written": written, "headers": list(headers) or None}}
