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
        SELECT %s || '.' || category AS topic, stream, version, id, type, at, record, ordinal
        FROM json_array_elements(%s::json) WITH ORDINALITY AS each (record, ordinal), json_to_record(record)
            AS held (category text, stream text, version bigint, id uuid, type text, at timestamptz)
    ), unfit AS MATERIALIZED (
        SELECT FROM unnest(%s::int[]) AS first (place)
        JOIN given ON ordinal = place AND given.version > 1
        LEFT JOIN {schema}.events AS before ON before.topic = given.topic AND before.stream = given.stream
            AND before.version = given.version - 1
        WHERE before.version IS NULL OR before.at > given.at OR before.transaction > pg_current_xact_id()
    )
    INSERT INTO {schema}.events (topic, stream, version, id, type, at, record, command, ordinal)
    SELECT topic, stream, version, id, type, at, record, %s, ordinal FROM given
    WHERE NOT EXISTS (SELECT FROM unfit) ORDER BY ordinal"""
# One event, as most commands have it, by the same rules.
INSERT_ONE = """
    INSERT INTO {schema}.events (topic, stream, version, id, type, at, record, command, ordinal)
    SELECT given.* FROM (
        VALUES (
            %s || '.' || %s, %s::text, %s::bigint, %s::uuid, %s::text, %s::timestamptz, %s::json, %s::text, 1
        )
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
        first = self._checked(at, context)
        shared = vars(first)
        made = []
        for version, event in enumerate(self.events, self.expected + 1):
            record = object.__new__(Recorded)  # the checks of the first one hold for what is shared
            record.__dict__.update(
                shared,
                id=new_id(),
                version=version,
                type=event.event_type,
                schema_version=event.schema_version,
                data=self.types.data_of(event),
            )
            made.append(encrypted(record, event, keys) if event.personal else record)
        return made

    def _checked(self, at: datetime, context: "Context") -> Recorded:
        """Return what its records share, as a record."""
        return Recorded(
            category=self.category,
            stream=self.stream,
            version=self.expected,
            type="",
            schema_version=0,
            at=at,
            data="",
            actor=context.actor,
            correlation=context.correlation,
            causation=context.causation,
        )


@dataclass(frozen=True)
class Context:
    """Who does it, in the course of what (`correlation`), and because of what (`causation`)."""

    actor: str | None = None
    correlation: str | None = None
    causation: str | None = None


def parameters(store: str, records: Sequence[Recorded], command: str | None) -> list[object]:
    """Return the arguments of INSERT, or of INSERT_ONE for one record.

    Many records go as one text: the database takes them apart faster than lists are made for it.
    """
    texts = [_encode(each) for each in records]
    if len(records) == 1:
        only = records[0]
        place = [store, only.category, only.stream, only.version]
        return [*place, only.id, only.type, only.at, texts[0].decode(), command]
    streams = [(each.category, each.stream) for each in records]
    firsts = [place for place, each in enumerate(streams, 1) if place == 1 or each != streams[place - 2]]
    return [store, f"[{b','.join(texts).decode()}]", firsts, command]
