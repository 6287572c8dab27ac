"""Values as PostgreSQL spells them, written as JSON the way that Debezium writes them."""

import base64
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Literal

import msgspec

from penstock.capture.arrays import elements
from penstock.capture.times import (
    days,
    interval_number,
    interval_text,
    is_zero,
    span_micros,
    time_micros,
    timestamp_micros,
    zoned,
    zoned_time,
)
from penstock.capture.types import Type

Encode = Callable[[bytes], bytes]
Decimals = Literal["string", "precise", "double"]
Intervals = Literal["string", "numeric"]
DECIMALS: tuple[Decimals, ...] = ("string", "precise", "double")
INTERVALS: tuple[Intervals, ...] = ("string", "numeric")

_quote = msgspec.json.Encoder().encode
_WORDS = (b"NaN", b"Infinity", b"-Infinity")


@dataclass(frozen=True)
class Encoding:
    """How values are written where Debezium leaves a choice."""

    decimals: Decimals = "string"
    intervals: Intervals = "string"

    def of(self, type: Type) -> Encode:
        """Return the function that writes values of a type; what is not known is written as text."""
        if type.element is not None:
            return self._array(type.element)
        if type.zeroes:
            return _unless_zero(self.of(replace(type, zeroes=False)))
        if type.name in ("numeric", "money"):
            return self._decimal(type)
        if type.name == "interval":
            return interval_text if self.intervals == "string" else interval_number
        if type.name in ("time", "timestamp"):
            small = type.precision <= 3
            whole = time_micros if type.name == "time" else timestamp_micros
            return (lambda text: b"%d" % _thousandth(whole(text))) if small else (lambda t: b"%d" % whole(t))
        if type.name == "timestamptz":
            return partial(zoned, digits=type.precision)
        if type.name in ("bit", "varbit"):
            return boolean_bit if type.modifier == 1 else bits
        return _BY_NAME.get(type.name, text)

    def _array(self, element: Type) -> Encode:
        encode = self.of(element)

        def array(literal: bytes) -> bytes:
            return nested(elements(literal), encode)

        return array

    def _decimal(self, type: Type) -> Encode:
        plain = _without_currency if type.name == "money" else bytes
        if self.decimals == "string":
            return lambda text: b'"%b"' % plain(text)
        if self.decimals == "double":
            return lambda text: number(plain(text))
        scale = type.scale
        if scale is None:
            return lambda text: _variable_scale(plain(text))
        return lambda text: _fixed_scale(plain(text), scale)


def text(value: bytes) -> bytes:
    return _quote(value.decode())


def boolean(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def number(value: bytes) -> bytes:
    """A number as it is; what JSON has no number for is a text."""
    return b'"%b"' % value if value in _WORDS else value


def binary(value: bytes) -> bytes:
    return b'"%b"' % base64.b64encode(bytes.fromhex(value[2:].decode()))


def plain_binary(value: bytes) -> bytes:
    return b'"%b"' % base64.b64encode(value)


def geometry(value: bytes) -> bytes:
    """A shape of MySQL's: the number of its reference system, then well-known binary."""
    system, shape = struct.unpack_from("<I", value)[0], base64.b64encode(value[4:])
    return b'{"wkb":"%b","srid":%b}' % (shape, b"%d" % system if system else b"null")


def point(value: bytes) -> bytes:
    """A point as Debezium has it: its numbers, and the same as well-known binary."""
    x, _, y = value.decode().strip("()").partition(",")
    binary = base64.b64encode(struct.pack("<BIdd", 1, 1, float(x), float(y)))
    return b'{"x":%b,"y":%b,"wkb":"%b","srid":null}' % (number(x.encode()), number(y.encode()), binary)


def boolean_bit(value: bytes) -> bytes:
    return b"true" if value == b"1" else b"false"


def bits(value: bytes) -> bytes:
    """A string of bits as bytes, the least first, without those that are zero at its end."""
    number = int(value or b"0", 2)
    return b'"%b"' % base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little"))


def unscaled(value: Decimal, scale: int) -> bytes:
    """Return a number as Java writes it: what it is without its point, in as few bytes as can be."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} has no digits")
    whole, shift = int("".join(map(str, digits))), exponent + scale
    whole = whole * int(10**shift) if shift >= 0 else whole // int(10**-shift)
    whole = -whole if sign else whole
    return whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)


def nested(items: list[object], encode: Encode) -> bytes:
    """Return the elements of an array as JSON."""
    return b"[%b]" % b",".join(
        b"null" if each is None else nested(each, encode) if isinstance(each, list) else encode(each)  # type: ignore[arg-type]
        for each in items
    )


def _fixed_scale(value: bytes, scale: int) -> bytes:
    """The bytes of a number's digits; NaN and infinity have none, and are null, as with Debezium."""
    found = Decimal(value.decode())
    return b'"%b"' % base64.b64encode(unscaled(found, scale)) if found.is_finite() else b"null"


def _variable_scale(value: bytes) -> bytes:
    """A number of which every value has a scale of its own."""
    found = Decimal(value.decode())
    exponent = found.as_tuple().exponent
    if not isinstance(exponent, int):
        return b"null"
    scale = max(0, -exponent)
    return b'{"scale":%d,"value":"%b"}' % (scale, base64.b64encode(unscaled(found, scale)))


def _without_currency(value: bytes) -> bytes:
    """What lc_monetary adds to a sum of money: "$", "," and the parentheses or minus of a debt."""
    digits = re.sub(rb"[^0-9.]", b"", value)
    return b"-" + digits if value[:1] in b"-(" else digits


def _unless_zero(encode: Encode) -> Encode:
    """What is no date is null, as with Debezium."""
    return lambda value: b"null" if is_zero(value) else encode(value)


def _thousandth(micros: int) -> int:
    return micros // 1000


_BY_NAME: dict[str, Encode] = {
    "bool": boolean,
    "int2": bytes,
    "int4": bytes,
    "int8": bytes,
    "oid": bytes,
    "float4": number,
    "float8": number,
    "bytea": binary,
    "date": days,
    "timetz": zoned_time,
    "point": point,
    "uint8": bytes,
    "blob": plain_binary,
    "geometry": geometry,
    "span": lambda value: b"%d" % span_micros(value),
}
