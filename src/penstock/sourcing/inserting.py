"""Records into the table of events: one, some or many at once, by the same rules.

The event before the first of each stream has to be there, not be later, and come first in the store's order:
a transaction that got its number before that event's did is refused. What does not fit is not inserted.
"""

from itertools import accumulate
from typing import LiteralString

import msgspec

from penstock.sourcing.batch import Batch
from penstock.sourcing.binary_rows import binary_rows
from penstock.sourcing.database import Connection, Database

_MANY = 50  # events from which on copying is worth its round trips
_encode = msgspec.json.Encoder().encode
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
    COPY {schema}.events (topic, stream, version, id, type, at, record, command, ordinal)
    FROM STDIN (FORMAT BINARY)"""
_UNFIT = """
    SELECT FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS given (topic, stream, version)
    LEFT JOIN {schema}.events AS before USING (topic, stream, version)
    WHERE given.version > 0 AND
        (before.version IS NULL OR before.at > %s OR before.transaction > pg_current_xact_id_if_assigned())"""


def insert(database: Database, connection: Connection, batch: Batch, command: str | None) -> bool:
    """Insert a batch, all or none, and return whether it fits what is there."""
    if len(batch) >= _MANY:
        return _copied(database, connection, batch, command)
    make = _one if len(batch) == 1 else _some
    statement, given = make(database, batch, command)
    return connection.execute(database.sql(statement), given).rowcount == len(batch)


Statement = tuple[LiteralString, list[object]]


def _one(database: Database, batch: Batch, command: str | None) -> Statement:
    (only,) = batch.records
    place = [database.schema, only.category, only.stream, only.version]
    return _ONE, [*place, only.id, only.type, only.at, _encode(only).decode(), command]


def _some(database: Database, batch: Batch, command: str | None) -> Statement:
    """Several records go as one text: the database takes it apart faster than lists are made for it."""
    texts = b",".join(map(_encode, batch.records)).decode()
    ends = accumulate(len(each.events) for each in batch.appends)
    firsts = [1, *(end + 1 for end in ends)][:-1]
    return _SOME, [database.schema, f"[{texts}]", firsts, command]


def _copied(database: Database, connection: Connection, batch: Batch, command: str | None) -> bool:
    """Look whether it fits, and copy: what it follows stays as it is, and who comes between is a conflict.

    Outside of a transaction, the copy's number is given out later than that of all that was seen.
    """
    given = [
        [f"{database.schema}.{each.category}" for each in batch.appends],
        [each.stream for each in batch.appends],
        [each.expected for each in batch.appends],
        batch.at,
    ]
    fits = connection.execute(database.sql(_UNFIT), given).rowcount == 0
    if fits:
        with connection.cursor().copy(database.sql(_COPY)) as copy:
            for rows in binary_rows(database.schema, batch, command):
                copy.write(rows)
    return fits
