"""Structs in Spark's own state, which can't change: they have the fields that the state began with.

A field that came later goes beside its struct, spelled as JSON in a map that is empty at first.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.documents import JsonObject
from penstock.errors import FlowError
from penstock.process.columns.lineage import Lineage, lineage_of

ADDED = "_added"
_ADDED_TYPE = "map<string,string>"
_WRITTEN = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "ignoreNullFields": "false",
}
_READ = {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"}
Written = JsonObject


@dataclass
class Pins:
    """The structs of a flow's state by what they are; `taken` are those that a plan has, as they are kept.

    A flow that `began` without pins, with an older version of the platform, has no room for added fields.
    """

    before: Mapping[str, Written] = field(default_factory=dict)
    began: bool = False
    taken: dict[str, Written] = field(default_factory=dict)
    _asked: dict[tuple[str, str], "Pin"] = field(default_factory=dict)

    def pin(self, label: str, schema: StructType) -> "Pin":
        """Return how a struct is kept; asked again for the same one, the same."""
        asked = (label, schema.json())
        if asked not in self._asked:
            number = sum(other == label for other, _ in self._asked)
            self._asked[asked] = self._made(f"{label} {number}", schema)
        return self._asked[asked]

    def _made(self, place: str, schema: StructType) -> "Pin":
        lineage = lineage_of(schema)
        present = {lineage.fields[each.name].original(each.name): each for each in schema}
        fresh = {"fields": {name: each.dataType.simpleString() for name, each in present.items()}}
        kept = self.before.get(place, {**fresh, "room": not self.began})
        self.taken[place] = kept
        return Pin(schema, kept["fields"], kept["room"])


_pins: ContextVar[Pins | None] = ContextVar("pins", default=None)


@contextmanager
def pinning(pins: Pins) -> Iterator[None]:
    """While plans are made here, let structs in Spark's state be as they were."""
    before = _pins.set(pins)
    try:
        yield
    finally:
        _pins.reset(before)


def pinned(label: str, schema: StructType, *, streaming: bool) -> "Pin":
    """Return how the struct of some columns is kept; only a stream keeps it for long."""
    if not streaming:
        return Pin(schema, None, room=False)
    return (_pins.get() or Pins()).pin(label, schema)


@dataclass(frozen=True)
class Pin:
    """A struct of the columns that are there, kept as the fields that it began with, with their types.

    Fields stand under their oldest names; None are all that there are. Only where there is `room`, those that
    came later go beside it.
    """

    schema: StructType
    fields: Mapping[str, str] | None
    room: bool

    @property
    def held(self) -> list[str]:
        """The columns that are there and are kept in the struct."""
        return [each.name for name, each in self._present.items() if name in self._kept]

    def columns(self) -> list[Column]:
        """What is kept in the struct; null where a field is no more."""
        there = self._present
        return [
            _column(there[name]) if name in there else F.lit(None).cast(type).alias(name)
            for name, type in self._kept.items()
        ]

    def beside(self) -> list[Column]:
        """What is kept beside the struct."""
        if not self.room:
            return []
        pairs = [
            (F.lit(name), F.to_json(F.struct(_column(each)), _WRITTEN)) for name, each in self._added.items()
        ]
        added = F.create_map(*(column for pair in pairs for column in pair)) if pairs else F.lit(None)
        return [added.cast(_ADDED_TYPE).alias(ADDED)]

    def whole(self, kept: Column, beside: Column, *more: str) -> Column:
        """Return the struct with the fields that there are now, and `more` that was put in it.

        One that was kept before a field came has the default there.
        """
        if list(self._kept) == list(self._present) or (self._added and not self.room):
            return kept
        fields = [
            (self._valued(name, each, beside) if name in self._added else kept[each.name]).alias(each.name)
            for name, each in self._present.items()
        ]
        return F.when(kept.isNotNull(), F.struct(*fields, *(kept[name].alias(name) for name in more)))

    def refuse_required(self, what: str) -> None:
        """Refuse a field that came later, where what was kept before is asked for it and has no default."""
        for each in self._added.values():
            if self.room and self._lineage.fields[each.name].required:
                raise FlowError(
                    f"{what} has a new field {each.name!r} without a default, which rows that are kept lack",
                    hint="give it a default, in its class or by an upcaster of the topic",
                )

    @property
    def _lineage(self) -> Lineage:
        return lineage_of(self.schema)

    @property
    def _present(self) -> dict[str, StructField]:
        lineage = self._lineage
        return {lineage.fields[each.name].original(each.name): each for each in self.schema}

    @property
    def _kept(self) -> Mapping[str, str]:
        if self.fields is None:
            return {name: each.dataType.simpleString() for name, each in self._present.items()}
        return self.fields

    @property
    def _added(self) -> dict[str, StructField]:
        return {name: each for name, each in self._present.items() if name not in self._kept}

    def _valued(self, name: str, field: StructField, beside: Column) -> Column:
        type = StructType([StructField(field.name, field.dataType)])
        default = json.dumps({field.name: self._lineage.fields[field.name].default})
        text = F.when(F.map_contains_key(beside, name), beside[name]).otherwise(F.lit(default))
        return F.from_json(text, type, _READ)[field.name]


def _column(field: StructField) -> Column:
    return F.col(f"`{field.name}`")
