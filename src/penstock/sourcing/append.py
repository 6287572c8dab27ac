"""What is appended to streams, and the one statement that does it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from penstock.errors import ConfigurationError
from penstock.events import new_id
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.event_types import EventTypes
from penstock.sourcing.personal import encrypted
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

_encode = msgspec.json.Encoder().encode
# The event before the first of each stream has to be there, not be later, and come first in the store's
# order: a transaction that got its number before that event's did is refused.
INSERT = """
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(
            %s::text[], %s::text[], %s::bigint[], %s::uuid[], %s::text[], %s::timestamptz[], %s::text[]
        ) WITH ORDINALITY AS each (topic, stream, version, id, type, at, record, ordinal)
    ), unfit AS MATERIALIZED (
        SELECT FROM unnest(%s::int[]) AS first (place)
        JOIN given ON ordinal = place AND given.version > 1
        LEFT JOIN {schema}.events AS before ON before.topic = given.topic AND before.stream = given.stream
            AND before.version = given.version - 1
        WHERE before.version IS NULL OR before.at > given.at OR before.transaction > pg_current_xact_id()
    )
    INSERT INTO {schema}.events (topic, stream, version, id, type, at, record, command, ordinal)
    SELECT topic, stream, version, id, type, at, record::json, %s, ordinal FROM given
    WHERE NOT EXISTS (SELECT FROM unfit) ORDER BY ordinal"""
# One event, as most commands have it, by the same rules.
INSERT_ONE = """
    INSERT INTO {schema}.events (topic, stream, version, id, type, at, record, command, ordinal)
    SELECT given.* FROM (
        VALUES (%s::text, %s::text, %s::bigint, %s::uuid, %s::text, %s::timestamptz, %s::json, %s::text, 1)
    ) AS given (topic, stream, version, id, type, at, record, command, ordinal)
    WHERE given.version = 1 OR EXISTS (
        SELECT FROM {schema}.events AS before
        WHERE before.topic = given.topic AND before.stream = given.stream
            AND before.version = given.version - 1 AND before.at <= given.at
            AND before.transaction <= pg_current_xact_id()
    )"""


@dataclass(frozen=True)
class Append:
    """Events for one stream, which has `expected` events now."""

    category: str
    stream: str
    expected: int
    events: tuple[DomainEvent, ...]
    types: EventTypes

    def __post_init__(self) -> None:
        if not self.stream or len(self.stream) > 250 or "\x00" in self.stream:
            raise ConfigurationError(f"{self.stream!r} is not a stream's name", hint="use 1 to 250 letters")
        if self.expected < 0:
            raise ConfigurationError(f"expected={self.expected}", hint="0 is a stream without events")

    def records(self, at: datetime, context: "Context", keys: SubjectKeys) -> list[Recorded]:
        """Return its records, numbered on from the expected version, with what is personal encrypted."""
        plain = [
            Recorded(
                id=new_id(),
                category=self.category,
                stream=self.stream,
                version=self.expected + place,
                type=event.event_type,
                schema_version=event.schema_version,
                at=at,
                data=self.types.data_of(event),
                actor=context.actor,
                correlation=context.correlation,
                causation=context.causation,
            )
            for place, event in enumerate(self.events, 1)
        ]
        return [encrypted(record, event, keys) for record, event in zip(plain, self.events, strict=True)]


@dataclass(frozen=True)
class Context:
    """Who does it, in the course of what (`correlation`), and because of what (`causation`)."""

    actor: str | None = None
    correlation: str | None = None
    causation: str | None = None


def parameters(records: Sequence[Recorded], topics: Sequence[str], command: str | None) -> list[object]:
    """Return the arguments of INSERT, or of INSERT_ONE for one record."""
    texts = [_encode(each).decode() for each in records]
    if len(records) == 1:
        only = records[0]
        return [topics[0], only.stream, only.version, only.id, only.type, only.at, texts[0], command]
    firsts = [
        place
        for place, (record, before) in enumerate(zip(records, [None, *records], strict=False), 1)
        if before is None or (record.category, record.stream) != (before.category, before.stream)
    ]
    return [
        list(topics),
        [each.stream for each in records],
        [each.version for each in records],
        [each.id for each in records],
        [each.type for each in records],
        [each.at for each in records],
        texts,
        firsts,
        command,
    ]
