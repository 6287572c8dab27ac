"""Avro's logical types, as far as they matter to a reader."""

from penstock.documents import Json, JsonObject
from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility.avro.types import Logical

_ON_INT = {"date", "time-millis"}
_ON_LONG = {"time-micros"} | {
    f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")
}
_UNDERLYING = {
    **dict.fromkeys(_ON_INT, ("int",)),
    **dict.fromkeys(_ON_LONG, ("long",)),
    "uuid": ("string", "fixed"),
    "decimal": ("bytes", "fixed"),
    "duration": ("fixed",),
}
# Scaled by 10**40: the digits of a number of n bits, without the number.
_LOG_10_OF_2 = 3010299956639811952137388947244930267681


def logical_of(node: JsonObject, underlying: str, where: str) -> Logical | None:
    """The logical type of a definition; one that is unknown or out of place is ignored, as specified."""
    name = node.get("logicalType")
    if not isinstance(name, str) or underlying not in _UNDERLYING.get(name, ()):
        return None
    return _decimal(node, where) if name == "decimal" else Logical(name)


def _decimal(node: JsonObject, where: str) -> Logical:
    precision: Json = node.get("precision")
    scale: Json = node.get("scale", 0)
    if not _whole(precision) or precision < 1:
        hint = "give it a `precision` of 1 or more"
        raise InvalidSchemaError(f"a decimal with precision {precision!r}", where=where, hint=hint)
    if not _whole(scale) or not 0 <= scale <= precision:
        hint = f"give it a `scale` from 0 to {precision}"
        raise InvalidSchemaError(f"a decimal with scale {scale!r}", where=where, hint=hint)
    _check_room(node, precision, where)
    return Logical("decimal", precision, scale)


def _check_room(node: JsonObject, precision: int, where: str) -> None:
    size = node.get("size")
    if not _whole(size):
        return
    most = (8 * size - 1) * _LOG_10_OF_2 // 10**40 if size else 0
    if precision > most:
        hint = f"{size} bytes hold {most} digits; make it larger"
        raise InvalidSchemaError(f"a decimal of {precision} digits", where=where, hint=hint)


def _whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
