"""Values as the binary log packs them, unpacked to what the server would spell in an answer."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from struct import Struct, pack
from uuid import UUID

from penstock.capture.mysql.charsets import Decode
from penstock.capture.mysql.table_map import (
    BINARY,
    BIT,
    BLOB,
    DATE,
    DATETIME2,
    DECIMAL,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    INT24,
    LONG,
    LONGLONG,
    SET,
    SHORT,
    STRING,
    TIME2,
    TIMESTAMP2,
    TINY,
    VAR_STRING,
    VARCHAR,
    YEAR,
    MappedColumn,
)  # fmt: skip
from penstock.errors import CaptureError

Unpack = Callable[[bytes, int], tuple[bytes, int]]  # of data and a place: the value, and what is behind it
_WIDTHS = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8}
_FLOAT, _DOUBLE = Struct("<f").unpack_from, Struct("<d").unpack_from
_GROUP, _GROUP_BYTES = (
    9,
    (0, 1, 1, 2, 2, 3, 3, 4, 4, 4),
)  # decimal digits go in groups, so many bytes for each
_START = datetime(1970, 1, 1, tzinfo=UTC)
_SPECIAL: dict[str, Callable[[bytes], str]] = {
    "uuid": lambda value: str(UUID(bytes=value)),
    "inet6": lambda value: _address(value),
    "inet4": lambda value: str(IPv4Address(value)),
}


def unpacker(column: MappedColumn, decode: Decode, special: str = "") -> Unpack:
    """Return what unpacks a column's values; `special` is a type that the log has as plain bytes."""
    kind = column.kind
    if kind in _WIDTHS:
        return _integer(_WIDTHS[kind], signed=not column.unsigned)
    if kind in (STRING, VARCHAR, VAR_STRING):
        return _string(column, decode, special)
    if kind in (BLOB, GEOMETRY):
        return _sized(column.first, decode if column.collation != BINARY else None)
    if kind == DECIMAL:
        return _decimal(column.first, column.second)
    if kind in (ENUM, SET):
        return _choice(column, decode)
    if kind in (TIMESTAMP2, DATETIME2, TIME2):
        made = {TIMESTAMP2: _timestamp, DATETIME2: _datetime, TIME2: _time}
        return made[kind](column.first)
    if kind == BIT:
        return _bits(column.bits)
    if kind in _PLAIN:
        return _PLAIN[kind]
    raise CaptureError(
        f"column {column.name!r} is of a type that is not known: its number is {kind}",
        hint="compressed columns can't be captured; times of a very old server can, after "
        "ALTER TABLE … FORCE",
    )


def shortest(value: float) -> bytes:
    """Return the shortest text of a number of single precision, as other languages spell it."""
    packed = pack("<f", value)
    for digits in (6, 7, 8, 9):
        text = f"{value:.{digits}g}"
        if pack("<f", float(text)) == packed:
            return repr(float(text)).encode()
    return repr(value).encode()


def double(value: float) -> bytes:
    return repr(value).encode()


def bits(value: bytes, count: int) -> bytes:
    """Return bits as zeros and ones."""
    return f"{int.from_bytes(value, 'big'):0{count}b}".encode()


def _integer(wide: int, *, signed: bool) -> Unpack:
    def unpack_integer(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + wide
        return b"%d" % int.from_bytes(data[at:end], "little", signed=signed), end

    return unpack_integer


def _float(data: bytes, at: int) -> tuple[bytes, int]:
    return shortest(_FLOAT(data, at)[0]), at + 4


def _double(data: bytes, at: int) -> tuple[bytes, int]:
    return double(_DOUBLE(data, at)[0]), at + 8


def _year(data: bytes, at: int) -> tuple[bytes, int]:
    return (b"%d" % (1900 + data[at]) if data[at] else b"0"), at + 1


def _date(data: bytes, at: int) -> tuple[bytes, int]:
    packed = int.from_bytes(data[at : at + 3], "little")
    return b"%04d-%02d-%02d" % (packed >> 9, packed >> 5 & 15, packed & 31), at + 3


def _string(column: MappedColumn, decode: Decode, special: str) -> Unpack:
    """Texts behind their length; the log leaves the zeros at the end of fixed bytes away."""
    wide, is_bytes = 2 if column.width > 255 else 1, column.collation == BINARY
    if not is_bytes:
        return _sized(wide, decode)
    if column.kind != STRING:
        return _sized(wide, None)
    spell = _SPECIAL.get(special)

    def fixed(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + wide
        end = start + int.from_bytes(data[at:start], "little")
        value = data[start:end].ljust(column.width, b"\0")
        return (spell(value).encode() if spell else value), end

    return fixed


def _sized(wide: int, decode: Decode | None) -> Unpack:
    def sized(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + wide
        end = start + int.from_bytes(data[at:start], "little")
        return (data[start:end] if decode is None else decode(data[start:end])), end

    return sized


def _choice(column: MappedColumn, decode: Decode) -> Unpack:
    wide, names = column.first, [decode(each) for each in column.choices]

    def one(data: bytes, at: int) -> tuple[bytes, int]:
        number = int.from_bytes(data[at : at + wide], "little")
        return names[number - 1] if number else b"", at + wide

    def several(data: bytes, at: int) -> tuple[bytes, int]:
        number = int.from_bytes(data[at : at + wide], "little")
        return b",".join(name for place, name in enumerate(names) if number >> place & 1), at + wide

    return one if column.kind == ENUM else several


def _bits(count: int) -> Unpack:
    wide = (count + 7) // 8
    return lambda data, at: (bits(data[at : at + wide], count), at + wide)


def _decimal(digits: int, scale: int) -> Unpack:
    whole, rest = divmod(digits - scale, _GROUP)
    parts, part = divmod(scale, _GROUP)
    before = [(_GROUP_BYTES[rest], rest)] * bool(rest) + [(4, _GROUP)] * whole
    behind = [(4, _GROUP)] * parts + [(_GROUP_BYTES[part], part)] * bool(part)
    wide = sum(size for size, _ in (*before, *behind))

    def decimal(data: bytes, at: int) -> tuple[bytes, int]:
        packed, minus = bytearray(data[at : at + wide]), not data[at] & 0x80
        packed[0] ^= 0x80
        if minus:
            packed = bytearray(each ^ 0xFF for each in packed)
        place, texts = 0, []
        for groups in (before, behind):
            text = ""
            for size, count in groups:
                text += f"{int.from_bytes(packed[place : place + size], 'big'):0{count}d}"
                place += size
            texts.append(text)
        sign, fraction = "-" if minus else "", f".{texts[1]}" if scale else ""
        return f"{sign}{texts[0].lstrip('0') or '0'}{fraction}".encode(), at + wide

    return decimal


def _fraction(packed: int, digits: int) -> str:
    """The digits behind a second; they are packed in pairs."""
    return f".{packed:0{(digits + 1) // 2 * 2}d}"[: digits + 1] if digits else ""


def _timestamp(digits: int) -> Unpack:
    wide = 4 + (digits + 1) // 2

    def timestamp(data: bytes, at: int) -> tuple[bytes, int]:
        seconds, part = (
            int.from_bytes(data[at : at + 4], "big"),
            int.from_bytes(data[at + 4 : at + wide], "big"),
        )
        if not seconds and not part:
            return b"0000-00-00 00:00:00+00", at + wide
        moment = _START + timedelta(seconds=seconds)
        return f"{moment:%Y-%m-%d %H:%M:%S}{_fraction(part, digits)}+00".encode(), at + wide

    return timestamp


def _datetime(digits: int) -> Unpack:
    wide = 5 + (digits + 1) // 2

    def moment(data: bytes, at: int) -> tuple[bytes, int]:
        packed = int.from_bytes(data[at : at + 5], "big") & 0x7FFFFFFFFF
        months, day, clock = packed >> 22, packed >> 17 & 31, packed & 0x1FFFF
        date = f"{months // 13:04d}-{months % 13:02d}-{day:02d}"
        time = f"{clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
        part = int.from_bytes(data[at + 5 : at + wide], "big")
        return f"{date} {time}{_fraction(part, digits)}".encode(), at + wide

    return moment


def _time(digits: int) -> Unpack:
    more = (digits + 1) // 2
    middle, wide = 1 << (8 * (3 + more) - 1), 3 + more

    def time(data: bytes, at: int) -> tuple[bytes, int]:
        packed = int.from_bytes(data[at : at + wide], "big") - middle
        sign, packed = "-" if packed < 0 else "", abs(packed)
        clock, part = packed >> 8 * more, packed & ((1 << 8 * more) - 1)
        spelled = f"{clock >> 12 & 0x3FF:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
        return f"{sign}{spelled}{_fraction(part, digits)}".encode(), at + wide

    return time


def _address(value: bytes) -> str:
    """An address as the server spells it, which writes one of version 4 in its own way."""
    if value[:12] == bytes(12) and value[12:14] != bytes(2):
        return f"::{IPv4Address(value[12:])}"
    mapped = IPv6Address(value).ipv4_mapped
    return f"::ffff:{mapped}" if mapped else str(IPv6Address(value))


_PLAIN: dict[int, Unpack] = {FLOAT: _float, DOUBLE: _double, YEAR: _year, DATE: _date}
