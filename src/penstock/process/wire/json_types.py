"""The types as which values of a JSON schema are read, where upcasters want them as they were written."""

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from penstock.documents import Json

_JSON_SCALARS: dict[str, DataType] = {
    "integer": LongType(),
    "number": DoubleType(),
    "boolean": BooleanType(),
}


def json_type(schema: Json) -> DataType:
    """Return the type as which values of a JSON schema are read; what it does not say plainly is text."""
    return _json_type(schema, schema.get("$defs", schema.get("definitions", {})))


def _json_type(schema: Json, named: Mapping[str, Json]) -> DataType:
    match schema:
        case {"$ref": str(reference)}:
            return _json_type(named.get(reference.rpartition("/")[2], {}), named)
        case {"anyOf": [*branches]} | {"oneOf": [*branches]}:
            inner = [each for each in branches if each != {"type": "null"}]
            return _json_type(inner[0], named) if len(inner) == 1 else StringType()
        case {"type": [*types]}:
            inner = [each for each in types if each != "null"]
            return _json_type({**schema, "type": inner[0]}, named) if len(inner) == 1 else StringType()
        case {"type": "array", "items": dict(items)}:
            return ArrayType(_json_type(items, named))
        case {"type": "object", "properties": dict(properties)}:
            made = StructType()
            for name, each in properties.items():
                made.add(name, _json_type(each, named))
            return made
        case {"type": "object", "additionalProperties": dict(values)}:
            return MapType(StringType(), _json_type(values, named))
        case {"type": str(name)}:
            return _JSON_SCALARS.get(name, StringType())
    return StringType()
