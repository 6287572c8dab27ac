"""Values of Debezium's JSON, spelled as PostgreSQL reads them: the way back of `capture.values`."""

import base64
import re
from collections.abc import Callable

import msgspec

from penstock.capture.types import Type
from penstock.replica.spelled_times import (
    spelled_date,
    spelled_time,
    spelled_timestamp,
    spelled_timestamp_of_millis,
    spelled_zoned,
)

Spell = Callable[[bytes], bytes]  # from a value's JSON, which is not null
NULL = b"null"
_AMBIGUOUS = ("varbit", "bit", "timetz")  # which keys have as text
_NUMBERS = ("int2", "int4", "int8", "oid", "date", "time", "timestamp", "bool", "float4", "float8")
_SPECIAL = re.compile(rb'["\\]')
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


def spelling(type: Type, *, as_key: bool = False) -> Spell:
    """Return the function that spells values of a type; most are spelled alike, but for the quotes."""
    if as_key and type.name in _AMBIGUOUS:
        return plain
    if type.element is not None:
        return _array(type.element)
    if type.name == "time":
        return _number(spelled_time if type.precision > 3 else lambda millis: spelled_time(millis * 1000))
    if type.name == "timestamp":
        return _number(spelled_timestamp if type.precision > 3 else spelled_timestamp_of_millis)
    if type.name == "bit":
        return _bits(max(type.modifier, 1))
    return _BY_NAME.get(type.name, plain)


def lost(type: Type) -> str | None:
    """Say what Debezium's JSON does not hold of a type, where two values would become one."""
    if type.element is not None:
        return lost(type.element)
    return "Debezium's JSON has no leading zeros of its bits" if type.name == "varbit" else None


def is_key_of(type: Type, json: bytes) -> bool:
    """Whether a key's value is one of this type: of a key that had another type, rows are written again."""
    first = json[:1]
    if type.element is not None:
        return first == b"["
    if type.name == "point":
        return first == b"{"
    if type.name in _NUMBERS:
        return first not in b'"[{' or json in (b'"NaN"', b'"Infinity"', b'"-Infinity"')
    return first == b'"'


def plain(json: bytes) -> bytes:
    r"""Return a text without its quotes, and anything else as it is.

    >>> plain(b'"a\\nb"'), plain(b"1.5e+20"), plain(b'"12.50"')
    (b'a\nb', b'1.5e+20', b'12.50')
    """
    if json[:1] != b'"':
        return json
    return _text(json).encode() if b"\\" in json else json[1:-1]


def _number(spell: Callable[[int], bytes]) -> Spell:
    """What is a text is from a time when the column had another type, and is left to PostgreSQL."""
    return lambda json: plain(json) if json[:1] == b'"' else spell(int(json))


def _binary(json: bytes) -> bytes:
    return rb"\x" + base64.b64decode(json[1:-1]).hex().encode()


def _bits(length: int) -> Spell:
    def bits(json: bytes) -> bytes:
        if json[:1] != b'"':
            return b"1" if json == b"true" else b"0"
        number = int.from_bytes(base64.b64decode(json[1:-1]), "little")
        return f"{number:0{length}b}".encode()

    return bits


def _point(json: bytes) -> bytes:
    if json[:1] != b"{":
        return plain(json)
    found = _fields(json)
    return b"(%b,%b)" % (plain(bytes(found["x"])), plain(bytes(found["y"])))


def _array(element: Type) -> Spell:
    spell = spelling(element)

    def array(json: bytes) -> bytes:
        if json[:1] != b"[":
            return plain(json)
        return b"{%b}" % b",".join(item(bytes(each)) for each in _items(json))

    def item(json: bytes) -> bytes:
        if json == NULL:
            return b"NULL"
        if json[:1] == b"[":
            return array(json)
        return b'"%b"' % _SPECIAL.sub(rb"\\\g<0>", spell(json))

    return array


_BY_NAME: dict[str, Spell] = {
    "bytea": _binary,
    "date": _number(spelled_date),
    "timestamptz": lambda json: spelled_zoned(plain(json)),
    "point": _point,
}
