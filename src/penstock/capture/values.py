"""Values as PostgreSQL spells them, written as JSON the way that Debezium writes them."""

import base64
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Literal

import msgspec

from penstock.capture.arrays import elements
from penstock.capture.types import Type

Encode = Callable[[bytes], bytes]
Decimals = Literal["string", "precise", "double"]
Intervals = Literal["string", "numeric"]
DECIMALS: tuple[Decimals, ...] = ("string", "precise", "double")
INTERVALS: tuple[Intervals, ...] = ("string", "numeric")

_quote = msgspec.json.Encoder().encode
_DAY_ONE = date(1970, 1, 1).toordinal()
_START = datetime(1970, 1, 1)
_INFINITY = {b"infinity": 1, b"-infinity": -1}
_WORDS = (b"NaN", b"Infinity", b"-Infinity")
# What Debezium makes of a time without end: the last that Java's milliseconds and days can hold for it.
_FOREVER = {1: 9223372036825200000, -1: -9223372036832400000}
_INTERVAL = re.compile(r"(-?\d+) (year|mon|day)s?|(-)?(\d+):(\d\d):(\d\d)(?:\.(\d+))?")
_YEAR = 365.25  # days, as Debezium counts them where an interval is a number


@dataclass(frozen=True)
class Encoding:
    """How values are written where Debezium leaves a choice."""

    decimals: Decimals = "string"
    intervals: Intervals = "string"

    def of(self, type: Type) -> Encode:
        """Return the function that writes values of a type; what is not known is written as text."""
        if type.element is not None:
            return self._array(type.element)
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


def days(value: bytes) -> bytes:
    """A date as days since 1970."""
    if value in _INFINITY:
        return b"%d" % (2147483647 if value == b"infinity" else -2147483648)
    return b"%d" % _days(value.decode())


def time_micros(value: bytes) -> int:
    """A time of day in microseconds; 24:00 is one of PostgreSQL's."""
    hours, minutes, seconds = value.decode().split(":")
    whole, _, part = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(f"{part:0<6}")


def timestamp_micros(value: bytes) -> int:
    """A time without a zone in microseconds since 1970."""
    if value in _INFINITY:
        return _FOREVER[_INFINITY[value]]
    spelled = value.decode()
    try:
        since = datetime.fromisoformat(spelled) - _START
    except ValueError:  # before the year 1 or after 9999
        return _far_micros(spelled)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def zoned(value: bytes, digits: int = 6) -> bytes:
    """A time with a zone, in UTC, with as many digits behind the second as its column has."""
    if value[4:5] == b"-" and value[-3:] == b"+00":  # as nearly all are: a year of four digits
        behind = b".%b" % value[20:-3].ljust(digits, b"0") if digits else b""
        return b'"%bT%b%bZ"' % (value[:10], value[11:19], behind)
    if value in _INFINITY:
        return b'"%b"' % value
    spelled = value.decode()
    before = spelled.endswith(" BC")
    day, _, rest = spelled.removesuffix(" BC").partition(" ")
    if before or len(day) > 10:
        year, month, number = day.split("-")
        day = f"{_iso_year(int(year), before)}-{month}-{number}"
    clock, _, part = rest[:-3].partition(".")
    fraction = f".{part:0<{digits}}" if digits else ""
    return f'"{day}T{clock}{fraction}Z"'.encode()


def point(value: bytes) -> bytes:
    """A point as Debezium has it: its numbers, and the same as well-known binary."""
    x, _, y = value.decode().strip("()").partition(",")
    binary = base64.b64encode(struct.pack("<BIdd", 1, 1, float(x), float(y)))
    return b'{"x":%b,"y":%b,"wkb":"%b","srid":null}' % (number(x.encode()), number(y.encode()), binary)


def _iso_year(year: int, before: bool) -> str:
    year = 1 - year if before else year
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"+{year}" if year > 0 else f"-{-year:04d}"


def zoned_time(value: bytes) -> bytes:
    """A time of day with a zone, in UTC."""
    spelled = value.decode()
    at = max(spelled.rfind("+"), spelled.rfind("-"))
    sign, parts = (-1 if spelled[at] == "-" else 1), [*spelled[at + 1 :].split(":"), "0", "0"]
    offset = sign * ((int(parts[0]) * 60 + int(parts[1])) * 60 + int(parts[2]))
    micros = (time_micros(spelled[:at].encode()) - offset * 1_000_000) % 86_400_000_000
    seconds, part = divmod(micros, 1_000_000)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    return f'"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}Z"'.encode()


def interval_text(value: bytes) -> bytes:
    """An interval by ISO 8601, each part with its own sign."""
    if value in _INFINITY:
        return b'"%b"' % value
    months, number_of_days, micros = interval(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    sign, left = ("-" if micros < 0 else ""), abs(micros)
    seconds, part = divmod(left, 1_000_000)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    hours, minutes = seconds // 3600, seconds // 60 % 60
    clock = f"{_signed(sign, hours)}H{_signed(sign, minutes)}M"
    return f'"P{years}Y{months}M{number_of_days}DT{clock}{sign}{seconds % 60}{fraction}S"'.encode()


def _signed(sign: str, value: int) -> str:
    return f"{sign}{value}" if value else "0"


def interval_number(value: bytes) -> bytes:
    """An interval in microseconds, with months of an average length."""
    if value in _INFINITY:
        return b"%d" % (2**63 - 1 if value == b"infinity" else -(2**63))
    months, number_of_days, micros = interval(value)
    return b"%d" % (micros + int((months * _YEAR / 12 + number_of_days) * 86_400_000_000))


def interval(value: bytes) -> tuple[int, int, int]:
    """Return an interval's months, days and microseconds, which PostgreSQL keeps apart."""
    months = number_of_days = micros = 0
    for count, unit, minus, hours, minutes, seconds, part in _INTERVAL.findall(value.decode()):
        if unit == "day":
            number_of_days = int(count)
        elif unit:
            months += int(count) * (12 if unit == "year" else 1)
        else:
            whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            micros = (whole * 1_000_000 + int(f"{part:0<6}")) * (-1 if minus else 1)
    return months, number_of_days, micros


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


def _thousandth(micros: int) -> int:
    return micros // 1000


def _days(spelled: str) -> int:
    try:
        return date.fromisoformat(spelled).toordinal() - _DAY_ONE
    except ValueError:
        return _far_days(spelled)


def _far_days(spelled: str) -> int:
    """Days since 1970 of a date that Python has none for: 400 years are always as many days."""
    before = spelled.endswith(" BC")
    year, month, number = (int(part) for part in spelled.removesuffix(" BC").split("-"))
    year = 1 - year if before else year
    eras, near = divmod(year - 1, 400)
    return date(near + 1, month, number).toordinal() - _DAY_ONE + eras * 146_097


def _far_micros(spelled: str) -> int:
    era = " BC" if spelled.endswith(" BC") else ""
    day, _, clock = spelled.removesuffix(" BC").partition(" ")
    return _far_days(day + era) * 86_400_000_000 + time_micros(clock.encode())


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
}
