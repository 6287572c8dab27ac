"""Changes of captured tables: each is a row, the deletion of one, or what is wrong with the message."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.events.kinds import Field, Fixed, Maybe
from penstock.log import Table, Topic
from penstock.process.columns.names import CHANGE, DELETED
from penstock.process.wire.debezium.envelope import (
    AFTER,
    BEFORE,
    OP,
    PROVENANCE,
    change_parsers,
    change_parts,
    change_type,
    part_name,
)
from penstock.process.wire.debezium.message_key import (
    KEY_MARK,
    KEY_SCHEMA_ID,
    key_columns,
    key_of,
    key_parsers,
)
from penstock.process.wire.debezium.rows import row_fields, unavailable, understood_values
from penstock.process.wire.decoding import ERROR, EVENT, KAFKA, applies, error_of, key_only
from penstock.process.wire.event_fields import EventFields
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.parsing import MARK, SCHEMA_ID, Parser, mark, schema_id, texts
from penstock.schemas import spark_schema

_WRITES, _DELETE, _TRUNCATE = ("c", "u", "r"), "d", "t"
_KEY = "_key"
_TRUNCATED = (
    "the table was truncated (op 't'): all its rows are gone, which no row of a Table says; delete rows "
    "instead, or read it as a Topic, where such a change has no key"
)
_NO_CHANGE = "op '%s' is no change of a row: expected c, u, r, d or t"
_PRECISE = "; if Debezium writes it as bytes, set decimal.handling.mode=string"


@dataclass(frozen=True)
class _Draft:
    """What a parser gives of a change, with its rows before and after."""

    parser: Parser
    after: EventFields
    before: EventFields

    def part(self, name: str) -> Column:
        """A part of the change, as it was parsed."""
        return F.col(part_name(self.parser, name))


def decoded_changes(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    """Return Kafka's rows with the event, whether it is gone and how it changed, or the error.

    Each step is a projection of its own, as in `decoded`.
    """
    found = change_parsers(topic, known.schemas)
    rows = rows.select(*KAFKA, schema_id().alias(SCHEMA_ID), mark(topic).alias(MARK), *key_columns(topic))
    rows = rows.select("*", *texts(topic))
    rows = rows.select("*", *(parser.parsed.alias(parser.name) for parser in found))
    good = [parser for parser in found if parser.refusal is None]
    rows = rows.select("*", *(part for parser in good for part in change_parts(rows, parser)))
    rows = rows.select("*", *(value for parser in good for value in _understood(topic, parser)))
    drafts = [_draft(rows, topic, parser) for parser in good]
    rows = rows.select("*", *(column for draft in drafts for column in _coerced(draft)))
    faults = {draft.parser.name: _fault(topic, draft) for draft in drafts}
    error = error_of(topic, found, faults, known.unknown)
    change, event = _change(topic, drafts), _event(topic, drafts)
    made = [change.alias(CHANGE), event.alias(EVENT), error.alias(ERROR)]
    return _with_keys(rows.select(*KAFKA, KEY_SCHEMA_ID, KEY_MARK, *made), topic, known)


def _understood(topic: Topic[Any], parser: Parser) -> list[Column]:
    return [value for part in (AFTER, BEFORE) for value in understood_values(topic, parser, part)]


def _draft(rows: DataFrame, topic: Topic[Any], parser: Parser) -> _Draft:
    after, before = (row_fields(rows, topic, parser, part) for part in (AFTER, BEFORE))
    return _Draft(parser, after, before)


def _coerced(draft: _Draft) -> list[Column]:
    return [
        F.when(draft.part(part).isNotNull(), fields.coerced()).alias(fields.name)
        for part, fields in ((AFTER, draft.after), (BEFORE, draft.before))
    ]


def _change(topic: Topic[Any], drafts: list[_Draft]) -> Column:
    """How the row changed; null where there is nothing but a key."""
    row = spark_schema(topic.event).toNullable()
    change = F.when(F.lit(False), F.lit(None).cast(change_type(topic.event)))
    for draft in drafts:
        op, before = draft.part(OP), F.col(draft.before.name).cast(row)
        parts = {OP: op, BEFORE: before} | {name: draft.part(name) for name in PROVENANCE}
        made = F.struct(*(column.alias(name) for name, column in parts.items()))
        change = change.when(applies(draft.parser) & op.isNotNull(), made)
    return change


def _event(topic: Topic[Any], drafts: list[_Draft]) -> Column:
    event = F.when(F.lit(False), F.lit(None).cast(spark_schema(topic.event)))
    for draft in drafts:
        event = event.when(applies(draft.parser), draft.after.filled())
    return event


def _fault(topic: Topic[Any], draft: _Draft) -> Column:
    """Say what is wrong, what says most first; null if nothing is.

    The row before is not checked: for columns that the database did not log, Debezium makes values up.
    """
    parser, op = draft.parser, draft.part(OP)
    nothing = F.when(F.lit(False), F.lit(None).cast("string"))
    what = f"{'JSON' if parser.texts else 'Avro'} of a change of {topic.event.__name__}"
    fault = F.when(parser.value.isNull() | ~parser.closed, F.lit(f"the value is not {what}"))
    if isinstance(topic, Table):
        fault = fault.when(op == _TRUNCATE, F.lit(_TRUNCATED))
    is_change = F.coalesce(op.isin(*_WRITES, _DELETE, _TRUNCATE), F.lit(False))
    fault = fault.when(~is_change, F.format_string(_NO_CHANGE, F.coalesce(op, F.lit(""))))
    is_write = op.isin(*_WRITES)
    fault = fault.when(
        is_write & draft.part(AFTER).isNull(), F.format_string("op '%s' has no row 'after'", op)
    )
    row = F.coalesce(
        draft.after.faults(nothing, _note if parser.texts else _silent), unavailable(draft.after)
    )
    part = F.when(~parser.complete, F.lit(f"a part of the value is not {what}"))
    return F.coalesce(fault, F.when(is_write, row), part)


def _note(field: Field) -> str:
    kind = field.kind.inner if isinstance(field.kind, Maybe) else field.kind
    return _PRECISE if isinstance(kind, Fixed) else ""


def _silent(_: Field) -> str:
    return ""


def _with_keys(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    """Give deletions their key, of the row before or else of Kafka's key; one without a key is an error."""
    found, op = key_parsers(topic, known), F.col(CHANGE)[OP]
    is_tombstone, own = F.col("value").isNull(), F.col(CHANGE)[BEFORE][str(topic.key)]
    lacks = is_tombstone | ((op == _DELETE) & own.isNull())
    rows = rows.select("*", *(F.when(lacks, parser.parsed).alias(parser.name) for parser in found))
    key = F.when(lacks, key_of(rows, topic, found, known)).when(op == _DELETE, own)
    rows = rows.select(*KAFKA, CHANGE, EVENT, ERROR, key.alias(_KEY))
    gone = F.coalesce(is_tombstone | op.isin(_DELETE, _TRUNCATE), F.lit(False))
    error = F.when(~is_tombstone, F.col(ERROR))
    no_key = F.when(
        (is_tombstone | (op == _DELETE)) & F.col(_KEY).isNull(),
        F.lit(f"a deletion, and neither the row before nor Kafka's key has a {topic.key!r}"),
    )
    event = F.when(gone, key_only(topic, F.col(_KEY))).otherwise(F.col(EVENT))
    return rows.select(
        *KAFKA,
        event.alias(EVENT),
        F.coalesce(error, no_key).alias(ERROR),
        gone.alias(DELETED),
        F.col(CHANGE),
    )
