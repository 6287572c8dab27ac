"""What a step keeps, described so that it can be compared when the flow is started the next time.

Spark shows of a Python processor only the column that it puts out. Its metadata hold the description, and
checkpoints of the first releases know state by its name alone: both are written and read here.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from penstock.documents import Json, JsonObject
from penstock.process.columns.lineage import NOTHING, Lineage, lineage_of

_STATE = "penstock.state"  # in the metadata of what a processor puts out
_NAMED = re.compile(
    r", in \d+ buckets by (.*) binary$"
)  # a column and its type, as `StateDescription.column`
Written = Mapping[str, Json]


@dataclass(frozen=True)
class FieldDescription:
    """A column of state or a field in it: its name, former ones, and whether it can't be made up.

    `type` is what Spark calls it; a struct is its fields, a list or a map what it is of, as they are written.
    """

    name: str
    names: tuple[str, ...]
    required: bool
    type: Json

    @classmethod
    def read(cls, written: Written) -> Self:
        """Return the field that was written down."""
        return cls(written["name"], tuple(written["names"]), written["required"], written["type"])

    def to_json(self) -> JsonObject:
        """Return the field as it is written down."""
        return {"name": self.name, "names": list(self.names), "required": self.required, "type": self.type}


@dataclass(frozen=True)
class StateDescription:
    """The key of state, its buckets and its columns; `kind` names everything else that it depends on.

    Key and columns stand under their oldest names. State that is `declared` by the user may get columns, and
    wider ones; other state only fields of structs. `title` and `labels` are what the kind and the key are
    called today, of which the column is named, and `present` are the key's columns: they are not compared.
    """

    kind: str
    by: tuple[str, ...]
    buckets: int
    declared: bool
    columns: Mapping[str, FieldDescription]
    title: str = field(default="", compare=False)
    labels: tuple[str, ...] = field(default=(), compare=False)
    present: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        kind: str,
        columns: StructType,
        by: Sequence[str],
        buckets: int,
        *,
        declared: bool = False,
        title: str | None = None,
        labels: Sequence[str] | None = None,
    ) -> Self:
        """Describe columns that are kept by some of them, which are the labels unless others are given."""
        fields = {name: FieldDescription.read(each) for name, each in _fields(columns).items()}
        lineage = lineage_of(columns)
        key = tuple(lineage.fields[name].original(name) for name in by)
        called = tuple(by if labels is None else labels)
        return cls(kind, key, buckets, declared, fields, title or kind, called, tuple(by))

    @classmethod
    def read(cls, written: Written) -> Self:
        """Return the description that was written down."""
        columns = {name: FieldDescription.read(each) for name, each in written["columns"].items()}
        by, declared = tuple(written["by"]), written.get("declared", False)
        return cls(written["kind"], by, written["buckets"], declared, columns)

    @classmethod
    def of_column(cls, metadata: Mapping[str, Json]) -> Self | None:
        """Return the description that goes with a column, if one does."""
        found = metadata.get(_STATE)
        return None if found is None else cls.read(json.loads(found))

    def to_json(self) -> JsonObject:
        """Return the description as it is written down."""
        parts = {"kind": self.kind, "by": list(self.by), "buckets": self.buckets, "declared": self.declared}
        return parts | {"columns": {name: each.to_json() for name, each in self.columns.items()}}

    def to_metadata(self) -> JsonObject:
        """Return what goes with the column that a processor puts out."""
        return {_STATE: json.dumps(self.to_json())}

    @property
    def column(self) -> str:
        """The name of the column that a processor puts out."""
        return f"{self.title}, in {self.buckets} buckets by {', '.join(self.labels)}"

    @property
    def key(self) -> list[str]:
        """The columns of the key as they are called now; another column may have the old name of one."""
        return [*self.present] or [self.columns[original].name for original in self.by]

    @property
    def former_names(self) -> Lineage:
        """The names of columns, by which frames of older versions are read."""
        return Lineage(fields={each.name: Lineage(names=each.names) for each in self.columns.values()})


def stored_key(steps: Iterable[Written]) -> tuple[list[str], Lineage]:
    """Return the key of the first step in a checkpoint's description that has one, and former names."""
    steps = list(steps)
    for state in (StateDescription.read(step["frame"]) for step in steps if "frame" in step):
        if state.by:
            return state.key, state.former_names
    found = [_NAMED.search(column) for step in steps for column in step["shape"]]
    return next((match[1].split(", ") for match in found if match and match[1]), []), NOTHING


def _fields(struct: StructType, lineage: Lineage | None = None) -> JsonObject:
    found, known = {}, lineage_of(struct) if lineage is None else lineage
    for column in struct:
        own = known.fields[column.name]
        type = _type(column.dataType, own)
        described = FieldDescription(column.name, own.names, own.required, type)
        found[own.original(column.name)] = described.to_json()
    return found


def _type(type: DataType, lineage: Lineage) -> Json:
    match type:
        case StructType():
            return {"struct": _fields(type, lineage)}
        case ArrayType():
            return {"list": _type(type.elementType, lineage)}
        case MapType():
            return {"map": _type(type.valueType, lineage)}
    return type.simpleString()
