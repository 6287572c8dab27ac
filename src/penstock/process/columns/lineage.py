"""Where a column comes from: what a topic's class and upcasters say of a field goes with its column.

It is kept in the metadata of Spark's schemas, which go on through selections and structs, so that state that
holds a column can be followed when the class changes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from penstock.documents import Json, JsonObject
from penstock.process.columns.side_output import SIDE_OUTPUT, STORED

LINEAGE = "penstock.lineage"  # in the metadata of a column


@dataclass(frozen=True)
class Lineage:
    """What a field was called, newest name first, and what stands for it in events that lack it.

    One that is `required` can't be made up. `since` says up from which version it has its name, where another
    field had it before. `fields` are those of a struct, also of one in a list or a map.
    """

    names: tuple[str, ...] = ()
    default: Json = None  # as JSON has it
    required: bool = False
    since: int | None = None
    fields: Mapping[str, "Lineage"] = field(default_factory=dict)

    def original(self, name: str) -> str:
        """The oldest name of a field that is called `name`: it stays when the field is renamed."""
        oldest = self.names[-1] if self.names else name
        return oldest if self.since is None else f"{oldest}@{self.since}"

    def to_metadata(self, name: str) -> JsonObject:
        """What goes with the column of that name; under another one it is not the field any more."""
        return {LINEAGE: json.dumps({"name": name, **msgspec.to_builtins(self)})}

    @classmethod
    def read(cls, column: str, metadata: Mapping[str, Json]) -> Self:
        """Return the lineage in the metadata of a column."""
        written = json.loads(metadata.get(LINEAGE, "{}"))
        name = written.pop("name", column)
        found = msgspec.convert(written, cls)
        return found if name == column else replace(found, names=(), since=None)


NOTHING = Lineage()


def lineage_of(schema: StructType) -> Lineage:
    """Return the lineage of all columns of a schema, and of those in their structs."""
    return Lineage(fields=_of_columns(schema))


def original(schema: StructType, name: str) -> str:
    """Return the oldest name of a column; one that is no column of the schema stays what it is."""
    return lineage_of(schema).fields.get(name, NOTHING).original(name)


def _of_column(column: StructField) -> Lineage:
    own = Lineage.read(column.name, column.metadata or {})
    struct = struct_in(column.dataType)
    if struct is None:
        return own
    found = _of_columns(struct)
    fields = {
        name: own.fields.get(name, NOTHING) if each == NOTHING else each for name, each in found.items()
    }
    return replace(own, fields=fields)


def _of_columns(struct: StructType) -> dict[str, Lineage]:
    found = {each.name: _of_column(each) for each in struct}
    if SIDE_OUTPUT in found and STORED not in found:
        found[SIDE_OUTPUT] = replace(found[SIDE_OUTPUT], names=(STORED,))
    return found


def struct_in(type: DataType) -> StructType | None:
    """Return the struct that a type is, or that its lists or maps are of."""
    match type:
        case StructType():
            return type
        case ArrayType():
            return struct_in(type.elementType)
        case MapType():
            return struct_in(type.valueType)
    return None
