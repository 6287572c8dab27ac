"""The target: results as the rows that Kafka's sink takes, each to its topic, with where it came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructType

from penstock.errors import FlowError
from penstock.events.event import time_field
from penstock.log import Table, Topic
from penstock.process.columns.names import END, FINAL, HEADERS, JOINED, POSITION, SOURCE
from penstock.process.columns.side_output import SIDE_OUTPUT, STORED
from penstock.process.wire.route import Route, check_columns
from penstock.schemas import NumberedSchema

MADE_BY = "penstock.made-by"
SPREAD, ORDER = "_spread", "_order"
MESSAGE = "_message"
MESSAGE_TYPE = f"struct<topic:string,key:binary,value:binary,headers:{HEADERS},{SPREAD}:bigint>"
EXACT_JSON = {
    "timeZone": "UTC",
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def encoded(
    results: DataFrame,
    topic: Topic[Any],
    *,
    flow: str,
    side_outputs: Mapping[str, Topic[Any]] | None = None,
    schemas: Mapping[str, NumberedSchema] | None = None,
    one_to_one: bool = False,
    shuffled: bool = False,
    maker: str | None = None,
    passed_on: Sequence[str] = (),
) -> DataFrame:
    """Return a flow's results as Kafka's rows: topic, key, value and headers, and where its sink puts them.

    Results of one partition of a source have one `_spread`, so that they stay together whatever they hold.
    Where they may have been `shuffled`, `_order` is their order: that of the log, or else of their times;
    changes of a table keep the order in which they were made, unless they are windows.

    What can't be as described raises a FlowError now; a row that has no place in its topic, such as one with
    a null in a required field, fails the query when it comes. Rows whose `_side_output` is set go to the
    topic of that name. Without an `id`, one is made, as `with_id` says. `maker` is what results say they were
    made by, the flow unless it is said; `passed_on` names headers that they have of their event.
    """
    results, named = with_id(results, flow, one_to_one=one_to_one), schemas or {}
    routes = [Route("_result", topic, flow, None, _schema(topic, flow, named))]
    if SIDE_OUTPUT in results.columns:
        routes += _side_routes(side_outputs or {}, flow, named)
    check_columns(results.schema, [route.topic for route in routes], flow)
    schema = results.schema
    headers = _headers(schema, flow, maker or flow, passed_on)
    own = [headers.alias("headers"), _spread(schema).alias(SPREAD)]
    if shuffled and (SOURCE in schema.names or _are_windows(schema) or not isinstance(topic, Table)):
        own.append(_order(schema, routes).alias(ORDER))
    made = _with_events(results, routes).select(_routed(schema, routes, flow).alias(MESSAGE), *own)
    return made.select(f"{MESSAGE}.*", *made.columns[1:])


def with_messages(
    results: DataFrame,
    *,
    flow: str,
    side_outputs: Mapping[str, Topic[Any]],
    schemas: Mapping[str, NumberedSchema],
    one_to_one: bool = False,
    maker: str | None = None,
    passed_on: Sequence[str] = (),
) -> DataFrame:
    """Return results for a table, with the message of each that goes to a topic instead in `MESSAGE`."""
    results = with_id(results, flow, one_to_one=one_to_one)
    if SIDE_OUTPUT not in results.columns and STORED in results.columns:
        raise FlowError(
            f"flow {flow!r} has side outputs and gives a column {STORED!r}, as it was once called",
            hint=f"call it {SIDE_OUTPUT}, or rename your own column",
        )
    if SIDE_OUTPUT not in results.columns:
        nothing = F.lit(None).cast(MESSAGE_TYPE)
        return results.withColumn(MESSAGE, nothing)
    schema, routes = results.schema, _side_routes(side_outputs, flow, schemas)
    message, headers = _routed(schema, routes, flow), _headers(schema, flow, maker or flow, passed_on)
    placed = message.withField("headers", headers).withField(SPREAD, _spread(schema))
    routed = F.when(F.col(SIDE_OUTPUT).isNotNull(), placed)
    kept = [F.col(f"`{name}`") for name in results.columns if name != SIDE_OUTPUT]
    return _with_events(results, routes).select(*kept, routed.alias(MESSAGE))


def with_id(results: DataFrame, flow: str, *, one_to_one: bool = False) -> DataFrame:
    """Return results with an `id`: the same for the same row of the same flow, whenever it is made.

    Where an event has at most one result (`one_to_one`), flow and source make the id; otherwise it is made of
    the source and of what the row holds. The source of a join of streams may name all events of a row.
    """
    if "id" in results.columns:
        return results
    parts = [F.lit(flow).alias("flow")]
    if SOURCE in results.columns:
        source = results.schema[SOURCE].dataType
        known = [JOINED] if isinstance(source, StructType) and JOINED in source.names else []
        parts += [F.col(SOURCE)[part].alias(part) for part in (*POSITION, *known)]
    if not (one_to_one and SOURCE in results.columns):
        parts.append(_held(results).alias("row"))
    return results.select(F.md5(F.to_json(F.struct(*parts), EXACT_JSON)).alias("id"), "*")


def with_order(results: DataFrame) -> DataFrame:
    """Return results with their `_order`: that of the log, or of windows that end one after the other."""
    kind = results.schema[SOURCE].dataType if SOURCE in results.columns else None
    if isinstance(kind, StructType) and {*POSITION} <= {*kind.names}:
        return results.withColumn(ORDER, F.struct(*(F.col(SOURCE)[part] for part in POSITION)))
    return results.withColumn(ORDER, F.struct(END)) if _are_windows(results.schema) else results


def _are_windows(schema: StructType) -> bool:
    return END in schema.names and FINAL in schema[END].metadata


def _held(results: DataFrame) -> Column:
    return F.struct(*(F.col(f"`{name}`").alias(stored) for stored, name in stored_names(results.schema)))


def stored_names(schema: StructType) -> list[tuple[str, str]]:
    """Return what an id is made of: the columns in order, each by the name that ids have it under."""
    names = [each.name for each in schema if not isinstance(each.dataType, NullType)]
    return sorted((STORED if name == SIDE_OUTPUT else name, name) for name in names if name != SOURCE)


def _side_routes(
    side_outputs: Mapping[str, Topic[Any]], flow: str, schemas: Mapping[str, NumberedSchema]
) -> list[Route]:
    return [
        Route(f"_side_output_{number}", topic, flow, name, _schema(topic, flow, schemas))
        for number, (name, topic) in enumerate(side_outputs.items())
    ]


def _with_events(results: DataFrame, routes: list[Route]) -> DataFrame:
    """The events are a projection of their own, because what is used twice would be computed twice in one."""
    return results.select("*", *(route.event(results.schema).alias(route.name) for route in routes))


def _schema(topic: Topic[Any], flow: str, schemas: Mapping[str, NumberedSchema]) -> NumberedSchema | None:
    if topic.is_registered and topic.name not in schemas:
        raise FlowError(
            f"flow {flow!r} writes {topic.format} to {topic.name!r}, and its schema has no number",
            hint="give the pipeline a registry",
        )
    return schemas.get(topic.name)


def _routed(schema: StructType, routes: list[Route], flow: str) -> Column:
    if SIDE_OUTPUT not in schema.names:
        return routes[0].message(schema)
    message = F.when(routes[0].applies(schema), routes[0].message(schema))
    for route in routes[1:]:
        message = message.when(route.applies(schema), route.message(schema))
    astray = F.format_string("flow '%s': no side output is called '%s'", F.lit(flow), F.col(SIDE_OUTPUT))
    return message.otherwise(F.raise_error(astray))


def _spread(schema: StructType) -> Column:
    """A number that the results of a partition have in common; null where they come from no event."""
    if SOURCE not in schema.names:
        return F.lit(None).cast("long")
    return F.hash(F.col(SOURCE)["topic"]).cast("long") + F.col(SOURCE)["partition"]


def _order(schema: StructType, routes: list[Route]) -> Column:
    times = [F.col(each.name)[time_field(each.topic.event, each.topic.time)] for each in routes]
    at = F.unix_micros(F.coalesce(*times))
    return F.coalesce(F.col(SOURCE)["offset"], at) if SOURCE in schema.names else at


def _headers(schema: StructType, flow: str, maker: str, passed_on: Sequence[str]) -> Column:
    if passed_on:
        _check_has_headers(schema, flow, passed_on)
    if SOURCE not in schema.names:
        return F.array(made_by(maker))
    source = F.concat_ws("/", *(F.col(SOURCE)[part].cast("string") for part in POSITION))
    own = F.array(made_by(maker, F.when(F.col(SOURCE).isNotNull(), source)))
    if not passed_on:
        return own
    theirs = F.filter(F.col(SOURCE)["headers"], lambda each: each["key"].isin(*passed_on))
    return F.concat(own, F.coalesce(theirs, F.array().cast(HEADERS)))


def _check_has_headers(schema: StructType, flow: str, passed_on: Sequence[str]) -> None:
    source = schema[SOURCE].dataType if SOURCE in schema.names else None
    if not isinstance(source, StructType) or "headers" not in source.names:
        raise FlowError(
            f"flow {flow!r} passes on {', '.join(passed_on)}, but its results are of no one event",
            hint=f"select {SOURCE!r} with them; a window or a view is of many events and has no headers",
        )


def made_by(maker: str, source: Column | None = None) -> Column:
    """Return the header that says which flow made a row, in which version, and of which event.

    It is one header, because headers are what takes a Python producer the most time.
    """
    text = F.concat_ws(" ", F.lit(maker), *([] if source is None else [source]))
    return F.struct(F.lit(MADE_BY).alias("key"), text.cast("binary").alias("value"))
