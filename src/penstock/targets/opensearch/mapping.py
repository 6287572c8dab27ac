"""The index that a description asks of a server: how columns can be searched, and what it was made of."""

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
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.documents import JsonObject
from penstock.errors import TargetError
from penstock.targets.search.description import Description

_STORED: JsonObject = {"type": "object", "enabled": False}
_LONGEST = 8191  # signs; Lucene refuses a whole row for a term of more than 32,766 bytes
# The server forgets a deletion after this time; a write that is later than that would bring the row back.
_DELETIONS = "1h"


def index_body(description: Description, aliases: tuple[str, ...]) -> JsonObject:
    """Return what an index is made with."""
    return {
        "settings": {"index": {"gc_deletes": _DELETIONS}},
        "mappings": {
            "dynamic": "strict",
            "_meta": {"penstock": description.to_json().decode()},
            "properties": {
                each.name: _field(description, each.name, each.dataType) for each in description.schema
            },
        },
        "aliases": {name: {} for name in aliases},
    }


def description_of(mappings: JsonObject) -> Description | None:
    """Return what an index was made of, if it was made here."""
    found = mappings.get("_meta", {}).get("penstock")
    return None if found is None else Description.from_json(found.encode())


def check_names(place: str, names: list[str]) -> None:
    """Refuse names that the server takes for something else."""
    for name in names:
        if name.startswith("_") or "." in name:
            raise TargetError(
                f"the index {place} can't have a column {name!r}: it begins with _ or has a dot",
                hint="rename it in the flow",
            )


def _field(description: Description, name: str, type: DataType) -> JsonObject:
    if name in description.text:
        return {"type": "text", "analyzer": description.tokenizer}
    return _kind(type.elementType if isinstance(type, ArrayType) else type)


def _kind(type: DataType) -> JsonObject:
    match type:
        case StringType():
            return {"type": "keyword", "ignore_above": _LONGEST}
        case BooleanType():
            return {"type": "boolean"}
        case IntegralType():
            return {"type": "long"}
        case FloatType() | DoubleType() | DecimalType():
            return {"type": "double", "ignore_malformed": True}  # NaN is stored, but can't be compared
        case DateType() | TimestampType() | TimestampNTZType():
            return {"type": "date", "ignore_malformed": True}
        case BinaryType():
            return {"type": "binary"}
    return _STORED
