"""How far events are looked for that may be behind a result: first the nearest, then wider and wider."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType, StructField, StructType

from penstock.log import Topic
from penstock.ops.why.wanted import Wanted
from penstock.process.columns.names import SOURCE, START
from penstock.process.columns.naming import quoted

_LONGEST = 200  # values of a list in a result that are looked for
_EVERY, _NONE = "true", "false"


@dataclass(frozen=True)
class Reach:
    """Conditions on the events of each argument, in a few words."""

    words: str
    conditions: Mapping[str, Column]


def reaches(
    wanted: Wanted, topics: Mapping[str, Topic[Any]], schemas: Mapping[str, StructType]
) -> Iterator[Reach]:
    """Yield the event that a result names, those of its key, of any of its values, and then all."""
    if wanted.source is not None:
        yield Reach("the event that it names", {name: _is_source(wanted, topics[name]) for name in topics})
    no_more = dict[str, Column | None].fromkeys(topics)
    in_window = {name: _in_window(wanted, topics[name], schemas[name]) for name in topics}
    kinds: dict[str, Mapping[str, Column | None]] = {
        "its key": {name: _of_key(wanted, schema) for name, schema in schemas.items()},
        "its values": {name: _of_values(wanted, schema) for name, schema in schemas.items()},
        "any key": no_more,
    }
    seen = set[str]()
    for words, own in kinds.items():
        in_its = " in its window" if any(each is not None for each in in_window.values()) else ""
        for also, more in ((in_its, in_window), ("", no_more)):
            conditions = {name: _both(own[name], more[name]) for name in topics}
            if str(conditions) not in seen:
                seen.add(str(conditions))
                yield Reach(f"events of {words}{also}", conditions)


def since_start(
    wanted: Wanted, topics: Mapping[str, Topic[Any]], schemas: Mapping[str, StructType]
) -> dict[str, Column]:
    """Return conditions on the events of its key that are not before its window begins."""
    return {
        name: _both(_same_key(wanted, schemas[name]), _not_before(wanted, topics[name], schemas[name]))
        for name in topics
    }


def grouping(
    wanted: Wanted, topics: Mapping[str, Topic[Any]], schemas: Mapping[str, StructType]
) -> dict[str, list[str]]:
    """Return by which columns events are grouped: those that results have, too, or else their topic's key."""
    shared = {
        name: [
            field.name
            for field in schema
            if field.name in wanted.values and field.name != "id" and _is_plain(field)
        ]
        for name, schema in schemas.items()
    }
    keys = {name: [topic.key] if topic.key else [] for name, topic in topics.items()}
    return {name: shared[name] or keys[name] for name in topics}


def _both(one: Column | None, other: Column | None) -> Column:
    if one is None:
        return F.expr(_EVERY) if other is None else other
    return one if other is None else one & other


def _is_source(wanted: Wanted, topic: Topic[Any]) -> Column:
    place = wanted.source
    if place is None or place.topic != topic.name:
        return F.expr(_NONE)
    return F.expr(f"{SOURCE}.partition = {place.partition} and {SOURCE}.offset = {place.offset}")


def _of_key(wanted: Wanted, schema: StructType) -> Column:
    """Events with the same values in the key's columns of the same names; without such, of any value."""
    same = _same_key(wanted, schema)
    return _of_values(wanted, schema) if same is None else same


def _same_key(wanted: Wanted, schema: StructType) -> Column | None:
    shared = [name for name in wanted.keys if name in schema.names and _is_plain(schema[name])]
    equal = [quoted(name).eqNullSafe(F.lit(wanted.values[name])) for name in shared if name != "id"]
    return _every(equal) if equal else None


def _of_values(wanted: Wanted, schema: StructType) -> Column:
    """Events in which a text or number of the result stands, whatever its column is called."""
    texts, numbers = _found(wanted.values.values(), str), _found(wanted.values.values(), int)
    some = []
    for field in schema:
        values = texts if isinstance(field.dataType, StringType) else numbers
        if _is_plain(field) and values:
            some.append(quoted(field.name).isin(*values))
    return _any(some)


def _found(values: Iterable[Any], kind: type) -> list[Any]:
    """The values of a kind, those in lists and the parts of composed ids included."""
    found = dict[Any, None]()
    for value in values:
        inner = value[:_LONGEST] if isinstance(value, list) else [value]
        for each in inner:
            if isinstance(each, kind) and not isinstance(each, bool):
                found[each] = None
            if kind is str and isinstance(each, str) and "/" in each:
                found |= dict.fromkeys((each.rpartition("/")[0], each.partition("/")[0]))
    return list(found)


def _in_window(wanted: Wanted, topic: Topic[Any], schema: StructType) -> Column | None:
    window = wanted.window()
    time = topic.time or topic.event.event_time
    if window is None or time not in schema.names:
        return None
    return quoted(time).between(F.lit(window[0]), F.lit(window[1]))  # a sliding one ends with its event


def _not_before(wanted: Wanted, topic: Topic[Any], schema: StructType) -> Column | None:
    time = topic.time or topic.event.event_time
    return quoted(time) >= F.lit(wanted.values[START]) if time in schema.names else None


def _is_plain(field: StructField) -> bool:
    return isinstance(field.dataType, StringType | IntegralType)


def _every(conditions: list[Column]) -> Column:
    made = conditions[0]
    for each in conditions[1:]:
        made = made & each
    return made


def _any(conditions: list[Column]) -> Column:
    made = F.expr(_NONE)
    for each in conditions:
        made = made | F.coalesce(each, F.lit(False))
    return made
