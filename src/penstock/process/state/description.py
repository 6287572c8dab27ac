"""What a step keeps as frames, described so that it can be compared when the flow is started the next time.

Spark shows of a Python processor only the column that it puts out: the description is in that one's metadata.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.process.columns.lineage import Lineage, lineage_of

STATE = "penstock.state"  # in the metadata of what a processor puts out
_WIDER = {
    ("tinyint", "smallint"),
    ("tinyint", "int"),
    ("tinyint", "bigint"),
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
}
Described = Mapping[str, Any]


@dataclass(frozen=True)
class StateDescription:
    """The columns of state, its key and its buckets; `kind` names everything else that it depends on.

    State that is `declared` by the user may get columns, and wider ones; other state only fields of structs.
    """

    kind: str
    columns: StructType
    by: tuple[str, ...]
    buckets: int
    declared: bool = False

    @property
    def lineage(self) -> Lineage:
        """The lineage of its columns."""
        return lineage_of(self.columns)

    def to_metadata(self) -> dict[str, Any]:
        """What goes with the column that a processor puts out."""
        by = [self.lineage.fields[name].original(name) for name in self.by]
        columns = _columns(self.columns, self.lineage)
        parts = {"kind": self.kind, "by": by, "buckets": self.buckets, "declared": self.declared}
        return {STATE: json.dumps(parts | {"columns": columns})}


def described(metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the description that is in a column's metadata, as it is written down."""
    found = metadata.get(STATE)
    return None if found is None else dict(json.loads(found))


def key_names(state: Described) -> list[str]:
    """Return the columns of the key as they are called now."""
    return [state["columns"][original]["name"] for original in state["by"]]


def top_lineage(state: Described) -> Lineage:
    """Return the names of columns, by which frames of older versions are read."""
    columns = state["columns"].values()
    return Lineage(fields={each["name"]: Lineage(names=tuple(each["names"])) for each in columns})


def difficulties(before: Described, after: Described) -> Iterator[str]:
    """Yield what of state that was kept before can't be brought to what is kept now."""
    for part in ("kind", "by", "buckets"):
        if before[part] != after[part]:
            yield f"it was {_spelled(before[part], part)}, and would be {_spelled(after[part], part)}"
    yield from _columns_differ(before, after)
    for name, column in before["columns"].items():
        now = after["columns"].get(name)
        if now is not None:
            wider = after["declared"] and name not in after["by"]
            yield from _names_differ(name, column, now)
            yield from _types_differ(name, column["type"], now["type"], wider=wider)


def _spelled(value: Any, part: str) -> str:
    match part:
        case "by":
            return f"by {', '.join(value) or 'nothing'}"
        case "buckets":
            return f"in {value} buckets"
    return str(value)


def _columns_differ(before: Described, after: Described) -> Iterator[str]:
    gone = [name for name in before["columns"] if name not in after["columns"]]
    come = [name for name in after["columns"] if name not in before["columns"]]
    if gone:
        yield f"it had {', '.join(gone)}"
    if come and not after["declared"]:
        yield f"it would have {', '.join(come)}"


def _names_differ(path: str, before: Described, after: Described) -> Iterator[str]:
    """Frames may have any name that a field has had: going back to an older one would not find it."""
    known = {after["name"], *after["names"]}
    lost = [name for name in (before["name"], *before["names"]) if name not in known]
    if lost:
        yield f"{path} was called {', '.join(lost)}, which no upcaster says"


def _types_differ(path: str, before: Any, after: Any, *, wider: bool = False) -> Iterator[str]:
    match before, after:
        case {"list": one}, {"list": other}:
            yield from _types_differ(path, one, other)
        case {"map": one}, {"map": other}:
            yield from _types_differ(path, one, other)
        case {"struct": one}, {"struct": other}:
            yield from _fields_differ(path, one, other)
        case _ if before != after and not (wider and (before, after) in _WIDER):
            yield f"{path} was {_kind(before)}, and would be {_kind(after)}"


def _fields_differ(path: str, before: Described, after: Described) -> Iterator[str]:
    for name, field in after.items():
        if name in before:
            yield from _names_differ(f"{path}.{name}", before[name], field)
            yield from _types_differ(f"{path}.{name}", before[name]["type"], field["type"])
        elif field["required"]:
            yield f"{path}.{field['name']} is new, and has no default"


def _kind(type: Any) -> str:
    return type if isinstance(type, str) else f"a {next(iter(type))}"


def _columns(struct: StructType, lineage: Lineage) -> dict[str, Any]:
    found = {}
    for column in struct:
        own = lineage.fields[column.name]
        found[own.original(column.name)] = {
            "name": column.name,
            "names": list(own.names),
            "required": own.required,
            "type": _type(column.dataType, own),
        }
    return found


def _type(type: DataType, lineage: Lineage) -> Any:
    match type:
        case StructType():
            return {"struct": _columns(type, lineage)}
        case ArrayType():
            return {"list": _type(type.elementType, lineage)}
        case MapType():
            return {"map": _type(type.valueType, lineage)}
    return type.simpleString()
