"""Topics as values: what is kept under a name, how it is spread, and for how long."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar
from uuid import UUID

from penstock.durations import duration
from penstock.errors import TopicError
from penstock.events import Event, fields_of, time_field
from penstock.events.kinds import Choice, Field, Maybe, Scalar
from penstock.schemas import Codec, Format, JsonCodec, ProtobufCodec, SchemaDirectory, Upcast
from penstock.schemas.codec import FORMATS, UNKNOWN, Unknown
from penstock.schemas.compatibility.protobuf import extra
from penstock.schemas.formats import CAPTURED, CODECS, REGISTERED

E = TypeVar("E", bound=Event)
DEAD_LETTERS = ".dead-letters"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_KEY_KINDS = (str, int, bytes, UUID)
_ANY_TIME = str(2**63 - 1)


@dataclass(frozen=True)
class Topic(Generic[E]):
    """A partitioned, replayable log of one event class.

    >>> from dataclasses import dataclass
    >>> from datetime import datetime
    >>> @dataclass(frozen=True)
    ... class Click(Event):
    ...     user: str
    ...     at: datetime
    >>> clicks = Topic("clicks", Click, key="user", partitions=4, retention="7 days")
    >>> clicks.config["retention.ms"]
    '604800000'

    Events with the same `key` field keep their order; without a key they are spread evenly. `time` names
    the field with the event's time, if it isn't the class's own. `retention` is a duration or "forever".
    `format` is "json" (plain), or "avro", "json-schema" or "protobuf" (messages name their schema in the
    registry, so that it may change), or "debezium-json" or "debezium-avro" for the changes of a table that
    was captured, which flows read and never write; `upcasts` bring events of older versions to the class.
    `unknown` says what readers, flows included, do with JSON or Protobuf that has fields which the class does
    not have: "ignore" them, or "refuse" the message. `settings` are Kafka's own topic settings, passed
    through. `replication` -1 is the broker's default.
    """

    name: str
    event: type[E]
    key: str | None = None
    time: str | None = None
    partitions: int = 1
    retention: str | timedelta | None = None
    format: Format = "json"
    upcasts: tuple[Upcast, ...] = ()
    replication: int = -1
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    unknown: Unknown = "ignore"

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.partitions < 1:
            raise TopicError(f"topic {self.name!r} has {self.partitions} partitions, expected at least 1")
        if self.format not in FORMATS:
            raise TopicError(
                f"topic {self.name!r} has the format {self.format!r}", hint=f"use one of {', '.join(FORMATS)}"
            )
        if self.unknown not in UNKNOWN:
            raise TopicError(
                f"topic {self.name!r} has unknown={self.unknown!r}", hint=f"use one of {', '.join(UNKNOWN)}"
            )
        if self.commit_time is None:
            time_field(self.event, self.time)
        if self.key is not None:
            self._check_key()
        if self.is_captured:
            self._check_captured()
        if self.format == "protobuf":
            self._check_protobuf()
        _ = self.config  # a duration that can't be read is refused here, not at the broker

    @cached_property
    def config(self) -> dict[str, str]:
        """The topic's settings, by Kafka's names."""
        # The broker would otherwise refuse what is dated more than an hour ahead: that is for flows to judge.
        own = {"message.timestamp.after.max.ms": _ANY_TIME}
        if self.retention == "forever":
            own["retention.ms"] = "-1"
        elif self.retention is not None:
            own["retention.ms"] = str(duration(self.retention) // timedelta(milliseconds=1))
        return own | {name: str(value) for name, value in self.settings.items()}

    @property
    def subject(self) -> str:
        """The name under which the registry keeps the schemas of the topic's events."""
        return f"{self.name}-value"

    @property
    def key_subject(self) -> str:
        """The name under which the registry keeps the schemas of the topic's keys, where they have any."""
        return f"{self.name}-key"

    @property
    def is_captured(self) -> bool:
        """Whether its messages are changes of a database's table, in Debezium's envelope."""
        return self.format in CAPTURED

    @property
    def commit_time(self) -> str | None:
        """The column of a captured change's commit, its event time where the class has no field for one."""
        name = self.time or self.event.event_time
        has_field = any(each.name == name for each in fields_of(self.event))
        return name if self.is_captured and not has_field else None

    @property
    def is_registered(self) -> bool:
        """Whether its messages name their schema in the registry."""
        return self.format in REGISTERED

    def codec(self, schemas: SchemaDirectory | None = None) -> Codec[E]:
        """Return a codec of the topic's events; all formats but plain JSON need a directory of schemas."""
        if self.format == "json":
            return JsonCodec(self.event, self.unknown)
        if self.is_captured:
            raise TopicError(
                f"topic {self.name!r} is {self.format}, which only flows and penstock.process.read decode",
                hint="let a flow bring what you need of it to a topic of json or avro",
            )
        if schemas is None:
            raise TopicError(
                f"topic {self.name!r} is {self.format}, whose messages name their schema",
                hint="give schemas=Registry(settings)",
            )
        return CODECS[self.format](self.event, self.subject, schemas, self.upcasts, self.unknown)

    @cached_property
    def key_of(self) -> Callable[[E], bytes | None]:
        """Return an event's key as bytes; None spreads events evenly."""
        name = self.key
        if name is None:
            return lambda _: None
        return lambda event: key_bytes(getattr(event, name))

    def time_of(self, event: E) -> datetime:
        """Return when the event happened."""
        happened: datetime = getattr(event, time_field(self.event, self.time))
        return happened

    def _check_protobuf(self) -> None:
        if not extra.has_protobuf():
            raise TopicError(f"topic {self.name!r} is protobuf, which is not installed", hint=extra.HINT)
        ProtobufCodec.schema_text(self.event)  # a class that has no schema is refused here

    def _check_captured(self) -> None:
        if self.key is None:
            raise TopicError(
                f"topic {self.name!r} is {self.format} and has no key",
                hint="name the field of the table's primary key, by which deletions are known",
            )
        if self.upcasts or self.unknown != "ignore":
            raise TopicError(
                f"topic {self.name!r} is {self.format} and has {'upcasts' if self.upcasts else 'unknown='}",
                hint="leave it out: a captured table changes when the database does",
            )
        field = next((each for each in fields_of(self.event) if _is_ambiguous(each)), None)
        if field is not None:
            raise TopicError(
                f"topic {self.name!r} is {self.format}, and {self.event.__name__}.{field.name} may be None "
                f"but is {field.default!r} by default",
                hint="give it the default None: a column without a value is null there",
            )

    def _check_key(self) -> None:
        found = next((each for each in fields_of(self.event) if each.name == self.key), None)
        kind = found.kind.inner if found and isinstance(found.kind, Maybe) else found and found.kind
        if not isinstance(kind, Choice) and kind not in [Scalar(python) for python in _KEY_KINDS]:
            raise TopicError(
                f"topic {self.name!r} has the key {self.key!r}, which "
                + (f"{self.event.__name__} has no field for" if found is None else "can't be a key"),
                hint="name a field of str, int, bytes, UUID or an Enum",
            )


@dataclass(frozen=True)
class Table(Topic[E]):
    """A compacted topic: the latest event of each key is kept, and a tombstone deletes the key.

    One that was captured belongs to what captures it: it is read as a table and not compacted by Penstock.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key is None:
            raise TopicError(f"table {self.name!r} has no key", hint="name the field that identifies a row")

    @cached_property
    def config(self) -> dict[str, str]:
        """The topic's settings, by Kafka's names."""
        compacted = {} if self.is_captured else {"cleanup.policy": "compact"}
        return compacted | super().config


def check_name(name: str, of: str = "topic") -> str:
    """Return the name if Kafka takes it for a topic or a group, or say what it may hold."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise TopicError(f"{name!r} is not a {of}'s name", hint="use 1 to 249 letters, digits, and . _ -")
    return name


def _is_ambiguous(field: Field) -> bool:
    return isinstance(field.kind, Maybe) and not field.required and field.default is not None


def key_bytes(value: object) -> bytes | None:
    """Return a key as it is written to the log, the same for every producer."""
    if value is None or isinstance(value, bytes):
        return value
    return str(value.value if isinstance(value, Enum) else value).encode()
