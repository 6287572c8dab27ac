"""Records into the table of events: one, some or many at once, by the same rules.

The event before the first of each stream has to be there, not be later, and come first in the store's order:
a transaction that got its number before that event's did is refused. What does not fit is not inserted.
"""

from collections.abc import Sequence
from typing import LiteralString

import msgspec
from psycopg import Rollback

from penstock.sourcing.database import Connection, Database
from penstock.sourcing.recorded import Recorded

_MANY = 50  # events from which on copying is worth its round trips
_encode = msgspec.json.Encoder().encode
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_ONE = """
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
_SOME = """
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
_COPY = """
    COPY {schema}.events (topic, stream, version, id, type, at, record, command, ordinal) FROM STDIN"""
_UNFIT = """
    SELECT FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::timestamptz[])
        AS given (topic, stream, version, at)
    LEFT JOIN {schema}.events AS before ON before.topic = given.topic AND before.stream = given.stream
        AND before.version = given.version - 1
    WHERE given.version > 1 AND
        (before.version IS NULL OR before.at > given.at OR before.transaction > pg_current_xact_id())"""


def insert(
    database: Database, connection: Connection, records: Sequence[Recorded], command: str | None
) -> bool:
    """Insert records, all or none, and return whether they fit what is there."""
    if len(records) >= _MANY:
        return _copied(database, connection, records, command)
    make = _one if len(records) == 1 else _some
    statement, given = make(database, records, command)
    return connection.execute(database.sql(statement), given).rowcount == len(records)


Statement = tuple[LiteralString, list[object]]


def _one(database: Database, records: Sequence[Recorded], command: str | None) -> Statement:
    only = records[0]
    place = [database.schema, only.category, only.stream, only.version]
    return _ONE, [*place, only.id, only.type, only.at, _encode(only).decode(), command]


def _some(database: Database, records: Sequence[Recorded], command: str | None) -> Statement:
    """Several records go as one text: the database takes it apart faster than lists are made for it."""
    texts = b",".join(map(_encode, records)).decode()
    return _SOME, [database.schema, f"[{texts}]", [place + 1 for place in _firsts(records)], command]


def _copied(
    database: Database, connection: Connection, records: Sequence[Recorded], command: str | None
) -> bool:
    fits = False
    with connection.transaction():
        with connection.cursor().copy(database.sql(_COPY)) as copy:
            copy.write(_lines(database.schema, records, command))
        firsts = [records[place] for place in _firsts(records)]
        given = [
            [f"{database.schema}.{each.category}" for each in firsts],
            [each.stream for each in firsts],
            [each.version for each in firsts],
            [each.at for each in firsts],
        ]
        fits = connection.execute(database.sql(_UNFIT), given).rowcount == 0
        if not fits:
            raise Rollback
    return fits


def _lines(schema: str, records: Sequence[Recorded], command: str | None) -> str:
    """Return records as COPY reads them; of JSON, only the backslashes mean something to it."""
    done = "\\N" if command is None else command.translate(_ESCAPED)
    at, lines = records[0].at.isoformat(), []
    for ordinal, each in enumerate(records, 1):
        record = _encode(each).decode().replace("\\", "\\\\")
        stream, type = each.stream.translate(_ESCAPED), each.type.translate(_ESCAPED)
        lines.append(
            f"{schema}.{each.category}\t{stream}\t{each.version}\t{each.id}\t{type}\t{at}\t{record}\t{done}\t{ordinal}\n"
        )
    return "".join(lines)


def _firsts(records: Sequence[Recorded]) -> list[int]:
    """Return the places at which another stream begins."""
    streams = [(each.category, each.stream) for each in records]
    return [place for place, each in enumerate(streams) if place == 0 or each != streams[place - 1]]
