"""Decoding: the rows of a topic, each with the event it holds or with what is wrong with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from penstock.errors import ConfigurationError
from penstock.events.kinds import Maybe, Scalar, fields_of
from penstock.log import Table, Topic
from penstock.process.wire.coercion import Seen, coerced
from penstock.process.wire.event_fields import EventFields
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.parsing import MARK, SCHEMA_ID, Parser, mark, parsers, schema_id, texts
from penstock.schemas import spark_schema
from penstock.schemas.upcasting import Native

EVENT, ERROR = "_event", "_error"
KAFKA = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_UNKNOWN_SCHEMA = "penstock:unknown-schema"
_SINCE = "a schema that the registry did not have when the query was planned"
_UNKNOWN = re.compile(rf"{_UNKNOWN_SCHEMA}:([A-Za-z0-9._-]+):(\d+)")


@dataclass(frozen=True)
class Draft:
    """The values that a parser gives, upcast but not yet coerced, and why a row could not be upcast."""

    parser: Parser
    fields: EventFields
    broken: Column


def decoded(rows: DataFrame, topic: Topic[Any], known: KnownSchemas) -> DataFrame:
    """Return Kafka's rows with the event, or the error where there is none.

    Each step is a projection of its own, because what is used twice would be computed twice in one.
    """
    found = parsers(topic, known.schemas)
    rows = rows.select(*KAFKA, schema_id().alias(SCHEMA_ID), mark(topic).alias(MARK))
    rows = rows.select("*", *texts(topic))
    rows = rows.select("*", *(parser.parsed.alias(parser.name) for parser in found))
    drafts = [
        _draft(rows, topic, parser) for parser in found if parser.refusal is None and not parser.decides
    ]
    rows = rows.select("*", *(_coerced(draft).alias(draft.fields.name) for draft in drafts))
    faults = {draft.parser.name: _fault(topic, draft) for draft in drafts}
    error, event = error_of(topic, found, faults, known.unknown), _event(topic, found, drafts)
    if isinstance(topic, Table):
        error, event = _with_tombstones(topic, error, event)
    return rows.select(*KAFKA, event.alias(EVENT), error.alias(ERROR))


def unknown_schema(error_text: str) -> tuple[str, int] | None:
    """Find in a failed query's error the topic and the number of the schema that was not known."""
    found = _UNKNOWN.search(error_text)
    return (found[1], int(found[2])) if found else None


def _draft(rows: DataFrame, topic: Topic[Any], parser: Parser) -> Draft:
    native = _upcast(parser, _columns(rows, parser))
    types = rows.select(*(column.alias(name) for name, column in native.columns.items())).schema
    seen = {name: Seen(column, types[name].dataType, parser.texts) for name, column in native.columns.items()}
    broken = [F.coalesce(each, F.lit(False)) for each in native.broken]
    fields = EventFields(topic.event, f"{parser.name}_coerced", seen)
    return Draft(parser, fields, reduce(Column.__or__, broken, F.lit(False)))


def _columns(rows: DataFrame, parser: Parser) -> Native:
    """Return the parsed fields; the steps of an upcast would mend what is not UTF-8."""
    type = rows.select(parser.value).schema[0].dataType
    types = {field.name: field.dataType for field in type} if isinstance(type, StructType) else {}
    columns = {name: parser.value[name] for name in types}
    texts = [columns[name] for name, each in types.items() if isinstance(each, StringType)]
    checked = texts if parser.upcasts and not parser.texts else []
    return Native(columns, tuple(~F.is_valid_utf8(each) for each in checked))


def _upcast(parser: Parser, native: Native) -> Native:
    for upcast in parser.upcasts:
        try:
            native = upcast.compile(native)
        except KeyError as missing:
            raise ConfigurationError(
                f"the upcast of version {upcast.since} wants the field {missing}, which is not there"
            ) from missing
    return native


def _coerced(draft: Draft) -> Column:
    return F.when(draft.parser.value.isNotNull(), draft.fields.coerced())


def _event(topic: Topic[Any], found: list[Parser], drafts: list[Draft]) -> Column:
    event = F.when(F.lit(False), F.lit(None).cast(spark_schema(topic.event)))
    for parser in found:
        if parser.decides:
            event = event.when(applies(parser), parser.value)
    for draft in drafts:
        event = event.when(applies(draft.parser), draft.fields.filled())
    return event


def applies(parser: Parser) -> Column:
    """Whether a message has the schema that a parser is for."""
    return F.lit(True) if parser.schema_id is None else F.col(SCHEMA_ID) == parser.schema_id


def error_of(
    topic: Topic[Any], found: list[Parser], faults: Mapping[str, Column], unknown: frozenset[int]
) -> Column:
    """Return what is wrong with a message, or null; `faults` are those that parsers find, by their names."""
    error = F.when(
        F.col("value").isNull(), F.lit(f"a message without a value is not a {topic.event.__name__}")
    )
    if not topic.is_registered:
        return error.otherwise(faults[found[0].name])
    id = F.col(SCHEMA_ID)
    error = error.when(id.isNull(), F.lit("the value does not begin with a schema's number"))
    for parser in found:
        error = error.when(applies(parser), faults.get(parser.name, parser.verdict))
    error = error.when(id.isin(list(unknown)), F.format_string("schema id %d is unknown", id))
    return error.otherwise(not_known(topic, id))


def not_known(topic: Topic[Any], id: Column) -> Column:
    """Fail the query because of a schema that has to be asked for; `unknown_schema` finds its number."""
    return F.raise_error(F.format_string(f"{_UNKNOWN_SCHEMA}:{topic.name}:%d, {_SINCE}", id))


def _fault(topic: Topic[Any], draft: Draft) -> Column:
    """Say what is wrong, what says most first; null if nothing is."""
    parser = draft.parser
    what = f"{'JSON' if parser.texts else 'Avro'} of {topic.event.__name__}"
    damaged = F.lit(f"the value is not {what}")
    fault = F.when(parser.value.isNull() | ~parser.closed, damaged)
    if parser.unknown is not None:
        fault = fault.when(
            parser.unknown.isNotNull(), F.format_string("field '%s' is unknown", parser.unknown)
        )
    fault = fault.when(draft.broken, F.lit(f"it can't be upcast from version {parser.version}"))
    fault = draft.fields.faults(fault)
    return fault.when(~parser.complete, F.lit(f"a part of the value is not {what}"))


def _with_tombstones(topic: Table[Any], error: Column, event: Column) -> tuple[Column, Column]:
    """A table's row without a value deletes its key, which is all that it holds."""
    gone, key = F.col("value").isNull(), _key(topic)
    no_key = F.when(key.isNull(), F.lit(f"a message without a value, and its key is no {topic.key!r}"))
    return F.when(gone, no_key).otherwise(error), F.when(gone, key_only(topic, key)).otherwise(event)


def key_only(topic: Topic[Any], key: Column) -> Column:
    """Return the event of a deletion: its key, and null for all the rest."""
    types = spark_schema(topic.event)
    columns = {name: F.lit(None).cast(types[name].dataType) for name in types.names}
    return F.struct(*(column.alias(name) for name, column in (columns | {str(topic.key): key}).items()))


def _key(topic: Table[Any]) -> Column:
    """Return Kafka's key as the value of the key's field, or null."""
    field = next(each for each in fields_of(topic.event) if each.name == topic.key)
    kind = field.kind.inner if isinstance(field.kind, Maybe) else field.kind
    if kind == Scalar(bytes):
        return F.col("key")
    text = F.col("key").cast("string")
    if kind == Scalar(int):
        return F.when(text.rlike("^(0|-?[1-9][0-9]*)$"), text.try_cast("long"))
    return coerced(
        kind, spark_schema(topic.event)[field.name].dataType, Seen(text, StringType(), texts=False)
    )
