"""Captures as values: which tables of which database become which topics, and how."""

import hashlib
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Self

import msgspec

from penstock.capture.records import FORMATS, Format
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.values import DECIMALS, INTERVALS, Decimals, Encoding, Intervals
from penstock.durations import duration
from penstock.errors import CaptureError
from penstock.identity import Identity
from penstock.log.topic import check_name

SnapshotMode = Literal["initial", "never", "when-needed"]
SNAPSHOTS: tuple[SnapshotMode, ...] = ("initial", "never", "when-needed")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SQL_NAME = re.compile(r"[a-z0-9_]{0,63}")
_PATH = re.compile(r"[^.]+\..+")
LARGEST = str(64 * 1024 * 1024)  # bytes of a record
_MILLISECOND, _DAY = timedelta(milliseconds=1), timedelta(days=1)


@dataclass(frozen=True)
class Outbox:
    """A table whose rows are events of their own: each goes to the topic that it names."""

    table: str
    topic: str = "aggregatetype"
    key: str = "aggregateid"
    type: str = "type"
    payload: str = "payload"
    id: str = "id"


@dataclass(frozen=True)
class Capture:
    """Tables of a database as topics, one for each.

    >>> Capture("shop", tables=("public.orders",)).topic("public.orders")
    'shop.public.orders'

    `connection` is one of the settings', the local database without it. `format` is "debezium-json",
    "debezium-avro" or "flat-json" (rows as they are, and tombstones). `snapshot` says what becomes of rows
    that are there at the start: "initial" writes them first, "never" leaves them out, "when-needed" writes
    them again where changes were lost. Of each key the newest record is kept, and every one for as long as
    `compaction_lag`. `messages` has the prefixes of `pg_logical_emit_message` that are captured. With
    `transactions`, the beginning and end of each transaction go to a topic, too.
    """

    name: str
    tables: tuple[str, ...] = ()
    connection: str | None = None
    format: Format = "debezium-json"
    snapshot: SnapshotMode = "initial"
    prefix: str = ""
    slot: str = ""
    publication: str = ""
    partitions: int = 1
    compaction_lag: str = "7 days"
    decimals: Decimals = "string"
    intervals: Intervals = "string"
    heartbeat: str = "10 seconds"
    outbox: Outbox | None = None
    messages: tuple[str, ...] = ()
    failover: bool = True
    transactions: bool = False
    requests: tuple[SnapshotRequest, ...] = field(default=(), kw_only=True)  # where the log takes none
    paused: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise CaptureError(
                f"{self.name!r} is not a capture's name",
                hint="use up to 40 small letters, digits and _, a letter first: slots are named so",
            )
        if not self.tables and not self.outbox and not self.messages:
            raise CaptureError(f"capture {self.name!r} has no tables", hint="name them: public.orders")
        for path in self.paths:
            if not _PATH.fullmatch(path):
                raise CaptureError(f"{path!r} is not a table", hint="name it with its schema: public.orders")
            check_name(self.topic(path))
        topics = [self.topic(path) for path in self.paths]
        doubled = next((each for each in topics if topics.count(each) > 1), None)
        if doubled is not None:
            raise CaptureError(f"two tables would have the topic {doubled!r}", hint="capture them apart")
        _check_choice("format", self.format, FORMATS)
        _check_choice("snapshot", self.snapshot, SNAPSHOTS)
        _check_choice("decimals", self.decimals, DECIMALS)
        _check_choice("intervals", self.intervals, INTERVALS)
        for each in (self.slot, self.publication):
            if not _SQL_NAME.fullmatch(each):
                raise CaptureError(f"{each!r} is not a slot's name", hint="use small letters, digits and _")
        if self.transactions and self.format == "flat-json":
            raise CaptureError(
                "flat rows have no place for their transaction", hint="use debezium-json or debezium-avro"
            )
        if self.partitions < 1:
            raise CaptureError(f"capture {self.name!r} has {self.partitions} partitions, expected at least 1")
        duration(self.heartbeat)
        duration(self.compaction_lag, zero=True)

    @property
    def paths(self) -> tuple[str, ...]:
        """All tables that are published."""
        return (*self.tables, *([self.outbox.table] if self.outbox else []))

    @property
    def encoding(self) -> Encoding:
        return Encoding(self.decimals, self.intervals)

    def topic(self, path: str) -> str:
        """Return the topic of a table; what Kafka takes no name with becomes an underscore."""
        return re.sub(r"[^A-Za-z0-9._-]", "_", f"{self.prefix or self.name}.{path}")

    def topic_config(self, *, keyed: bool) -> dict[str, str]:
        """Return the settings of a table's topic; rows without a key are kept for ever."""
        if not keyed:
            return {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": LARGEST}
        lag = duration(self.compaction_lag, zero=True)
        return {
            "cleanup.policy": "compact",
            "max.message.bytes": LARGEST,
            "min.compaction.lag.ms": str(lag // _MILLISECOND),
            "delete.retention.ms": str(max(lag, _DAY) // _MILLISECOND),
        }

    def identity(self, namespace: str) -> Identity:
        return Identity.of_capture(namespace, self.name)

    def slot_name(self, namespace: str) -> str:
        return self.slot or _joined(namespace, self.name)

    def publication_name(self, namespace: str) -> str:
        return self.publication or _joined(namespace, self.name)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        return msgspec.json.decode(text, type=cls)


def _joined(namespace: str, name: str) -> str:
    """Return a name for SQL; no two captures have the same."""
    if not namespace:
        return f"penstock_{name}"
    sum = hashlib.sha256(f"{namespace}:{name}".encode()).hexdigest()[:8]
    return f"penstock_{namespace.replace('-', '_')[:12]}_{name[:32]}_{sum}"


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise CaptureError(f"{name} is {value!r}", hint=f"use one of {', '.join(choices)}")
