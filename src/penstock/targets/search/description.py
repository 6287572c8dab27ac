"""What an index is made of: its columns, and how they can be searched."""

from dataclasses import dataclass
from typing import Self

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.documents import JsonObject
from penstock.errors import TargetError

FORMAT = 1
KEY, ROW, BUCKET, LEDGER = "_key", "_row", "_bucket", "_ledger"  # our own fields in the index
_LEFT_OUT = ("_source", "_order", "_deleted")
_SIMPLE = (
    StringType, BooleanType, IntegralType, FloatType, DoubleType, DecimalType, DateType, TimestampType,
    TimestampNTZType,
)  # fmt: skip
_NESTED = (ArrayType, MapType, StructType)


@dataclass(frozen=True)
class Description:
    """Columns as a schema of Spark in JSON, and which ones identify a row or are tokenised."""

    columns: JsonObject
    key: tuple[str, ...]
    text: tuple[str, ...]
    tokenizer: str
    format: int = FORMAT

    @classmethod
    def of(
        cls, place: str, schema: StructType, key: tuple[str, ...], text: tuple[str, ...], tokenizer: str
    ) -> Self:
        """Describe the index at a place for rows of a schema; refuse what it could not hold or find."""
        fields = [each for each in schema if each.name not in _LEFT_OUT]
        types = {each.name: each.dataType for each in fields}
        for name in types:
            _check_column(place, name, types[name])
        for name in key:
            _check_key(place, name, types)
        for name in text:
            _check_text(place, name, types)
        return cls(StructType(fields).jsonValue(), key, text, tokenizer)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        return msgspec.json.decode(text, type=cls)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def schema(self) -> StructType:
        return StructType.fromJson(self.columns)

    def types(self) -> dict[str, str]:
        """The columns' types as one reads them; whether they may be null is of no concern to an index."""
        return {each.name: each.dataType.simpleString() for each in self.schema}

    def check_same(self, wanted: "Description", place: str) -> None:
        """Refuse rows of another description than the one that the index was made with."""
        differences = self._differences(wanted)
        if differences:
            raise TargetError(
                f"the index at {place} was made otherwise: {'; '.join(differences)}",
                hint="rebuild the flow's target from the log, or give the index another path",
            )

    def _differences(self, wanted: "Description") -> list[str]:
        found = [
            f"{name} was {getattr(self, name)!r}, is {getattr(wanted, name)!r}"
            for name in ("format", "key", "text", "tokenizer")
            if getattr(self, name) != getattr(wanted, name)
        ]
        before, now = self.types(), wanted.types()
        for name in sorted(before.keys() | now.keys()):
            was, is_ = before.get(name, "not there"), now.get(name, "gone")
            if was != is_:
                found.append(f"column {name!r} was {was}, is {is_}")
        return found


def _check_column(place: str, name: str, type: DataType) -> None:
    if not name or name in (KEY, ROW, BUCKET, LEDGER):
        raise TargetError(f"the index at {place} can't have a column {name!r}", hint="rename it in the flow")
    if not _can_be_stored(type):
        raise TargetError(
            f"the index at {place}: column {name!r} is of type {type.simpleString()}, which it can't hold",
            hint="cast it in the flow",
        )


def _can_be_stored(type: DataType) -> bool:
    match type:
        case ArrayType():
            return _can_be_stored(type.elementType)
        case MapType():
            return _can_be_stored(type.keyType) and _can_be_stored(type.valueType)
        case StructType():
            return all(_can_be_stored(each.dataType) for each in type)
    return isinstance(type, (*_SIMPLE, BinaryType))


def _check_key(place: str, name: str, types: dict[str, DataType]) -> None:
    # A collation takes different texts to be equal, and the index would keep both.
    if name not in types or isinstance(types[name], _NESTED) or "collate" in types[name].simpleString():
        seen = f"is {types[name].simpleString()}" if name in types else f"is not among {', '.join(types)}"
        raise TargetError(
            f"the index at {place}: the key {name!r} {seen}", hint="name a column of a simple type"
        )


def _check_text(place: str, name: str, types: dict[str, DataType]) -> None:
    type = types.get(name)
    words = type.elementType if isinstance(type, ArrayType) else type
    if not isinstance(words, StringType):
        seen = f"is {type.simpleString()}" if type else f"is not among {', '.join(types)}"
        raise TargetError(
            f"the index at {place}: the text {name!r} {seen}", hint="name columns of texts, or cast it"
        )
