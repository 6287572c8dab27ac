"""Routes: the way of a result to its topic, as an event of the topic's class and then as a message."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NullType, StringType, StructType

from penstock.errors import FlowError
from penstock.events.kinds import Field, Maybe, fields_of
from penstock.log import Table, Topic
from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.wire.coercion import Seen, coerced, literal, takes
from penstock.process.wire.encoding import key_bytes, value_bytes
from penstock.schemas import NumberedSchema, spark_schema


@dataclass(frozen=True)
class Route:
    """The topic of one side output, or of results without one; `name` is the column of their events."""

    name: str
    topic: Topic[Any]
    flow: str
    side_output: str | None
    schema: NumberedSchema | None

    def applies(self, schema: StructType) -> Column:
        """Whether a result goes this way."""
        if SIDE_OUTPUT not in schema.names:
            return F.lit(True)
        named = F.col(SIDE_OUTPUT).cast("string")
        return named.isNull() if self.side_output is None else named.eqNullSafe(F.lit(self.side_output))

    def event(self, schema: StructType) -> Column:
        """The event of a result, in which a deleted row has its key only; null if it goes another way."""
        fields, gone = fields_of(self.topic.event), self._deleted(schema)
        columns = []
        for field in fields:
            column = self._column(schema, field)
            if gone is not None and field.name != self.topic.key:
                column = F.when(~gone, column)
            columns.append(column.alias(field.name))
        return F.when(self.applies(schema), F.struct(*columns))

    def message(self, schema: StructType) -> Column:
        """The message of an event that goes this way, without its headers."""
        event = {field.name: F.col(self.name)[field.name] for field in fields_of(self.topic.event)}
        gone, is_there = self._deleted(schema), F.col(self.name).isNotNull()
        if gone is not None:
            is_there = is_there & ~gone
        key, value = key_bytes(self.topic, event), value_bytes(self.topic, event, self.schema, is_there)
        if isinstance(self.topic, Table):
            key = F.coalesce(key, self._failed("the key is null", "binary"))
        if gone is not None:
            value = F.when(~gone, value)
        return F.struct(F.lit(self.topic.name).alias("topic"), key.alias("key"), value.alias("value"))

    def _deleted(self, schema: StructType) -> Column | None:
        if DELETED in schema.names and isinstance(self.topic, Table):
            return F.coalesce(F.col(DELETED), F.lit(False))
        return None

    def _column(self, schema: StructType, field: Field) -> Column:
        """A result's column as a field of the class; a value that has no place there fails the query."""
        target = spark_schema(self.topic.event)[field.name].dataType
        if field.name not in schema.names:
            if field.required:
                raise self._refusal(f"no column {field.name!r}, which {self._target} needs")
            return literal(field.kind, target, field.default)
        seen, column = schema[field.name].dataType, F.col(field.name)
        if not takes(field.kind, target, seen):
            raise self._refusal(
                f"the column {field.name!r} as {seen.simpleString()}, {self._target} has "
                f"{target.simpleString()}",
                hint="cast it",
            )
        value = coerced(field.kind, target, Seen(column, seen, texts=False))
        failed = self._failed(f"column {field.name!r} is null or no {target.simpleString()}", target)
        good = F.coalesce(value, failed)
        return F.when(column.isNotNull(), good) if isinstance(field.kind, Maybe) else good

    @property
    def _target(self) -> str:
        return f"{self.topic.event.__name__} in topic {self.topic.name!r}"

    def _refusal(self, what: str, hint: str | None = None) -> FlowError:
        return FlowError(f"flow {self.flow!r} gives {what}", hint=hint)

    def _failed(self, what: str, type: DataType | str) -> Column:
        said = f"flow {self.flow!r} made a row that does not fit {self._target}: {what}"
        return F.raise_error(F.lit(said)).cast(type)


def check_columns(schema: StructType, topics: list[Topic[Any]], flow: str) -> None:
    """Refuse columns that no topic takes: what is not written would be lost without a word."""
    fields = {field.name for topic in topics for field in fields_of(topic.event)}
    own = {SOURCE, SIDE_OUTPUT} | ({DELETED} if any(isinstance(topic, Table) for topic in topics) else set())
    for name in schema.names:
        if name not in fields | own:
            names = " or ".join(repr(topic.name) for topic in topics)
            hint = "only a table takes deletions: filter them out" if name == DELETED else "drop it"
            raise FlowError(
                f"flow {flow!r} gives a column {name!r}, which {names} has no field for", hint=hint
            )
    _check_type(schema, SIDE_OUTPUT, StringType, flow)
    _check_type(schema, SOURCE, StructType, flow)


def _check_type(schema: StructType, name: str, type: type, flow: str) -> None:
    if name in schema.names and not isinstance(schema[name].dataType, type | NullType):
        seen = schema[name].dataType.simpleString()
        raise FlowError(f"flow {flow!r} gives `{name}` as {seen}, expected {type.__name__}")
