"""A table as the binary log describes it before its rows; names and keys are in its full metadata."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.capture.mysql.events import number
from penstock.errors import CaptureError

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24, DATE, YEAR = 1, 2, 3, 4, 5, 8, 9, 10, 13
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, DECIMAL, ENUM, SET = 15, 16, 17, 18, 19, 246, 247, 248
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255
NUMERIC = {TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, DECIMAL, YEAR}  # those with a sign
TEXTS, CHOICES = {STRING, VAR_STRING, VARCHAR, BLOB}, {ENUM, SET}
_ONE, _TWO = (
    {FLOAT, DOUBLE, BLOB, GEOMETRY, TIMESTAMP2, DATETIME2, TIME2, 140, 245},
    {VARCHAR, VAR_STRING, BIT, DECIMAL, STRING, 141},
)
BINARY = 63  # the collation of bytes
_SIGNS, _CHARSET, _CHARSETS, _NAMES, _SETS, _ENUMS, _KEY, _PREFIX_KEY, _CHOICE_CHARSET, _CHOICE_CHARSETS = (
    1, 2, 3, 4, 5, 6, 8, 9, 10, 11,
)  # fmt: skip


@dataclass(frozen=True)
class MappedColumn:
    """A column of a table's description: its type's number, and what belongs to it."""

    name: str
    kind: int
    first: int = 0  # the two bytes of its metadata
    second: int = 0
    optional: bool = False
    unsigned: bool = False
    collation: int = BINARY
    choices: tuple[bytes, ...] = ()

    @property
    def width(self) -> int:
        """The most bytes of a text."""
        return self.first | self.second << 8

    @property
    def bits(self) -> int:
        return self.second * 8 + self.first


@dataclass(frozen=True)
class TableMap:
    """A table's columns, and those of its key by their places."""

    database: str
    name: str
    columns: tuple[MappedColumn, ...]
    key: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        return f"{self.database}.{self.name}"


@dataclass
class _Extras:
    """What the log says of columns besides their types."""

    signs: bytes = b""
    names: list[str] = field(default_factory=list)
    key: tuple[int, ...] = ()
    choices: dict[int, list[tuple[bytes, ...]]] = field(default_factory=lambda: {ENUM: [], SET: []})
    collations: dict[bool, tuple[int, dict[int, int], list[int]]] = field(default_factory=dict)


def path_of(body: bytes) -> str:
    """Return the name of a described table, without a look at its columns."""
    end = 9 + body[8]
    start = end + 2
    return f"{body[9:end].decode()}.{body[start : start + body[end + 1]].decode()}"


def table_map(body: bytes) -> TableMap:
    """Take a table's description apart."""
    database, _, table = path_of(body).partition(".")
    at = 9 + body[8] + 2 + body[9 + body[8] + 1] + 1
    count, at = number(body, at)
    kinds, at = body[at : at + count], at + count
    size, at = number(body, at)
    metadata, at = _metadata(kinds, body[at : at + size]), at + size
    optional, at = body[at : at + (count + 7) // 8], at + (count + 7) // 8
    extras = _extras(body[at:])
    if len(extras.names) != count:
        raise CaptureError(
            f"a change of {database}.{table} comes without the names of its columns",
            hint="SET GLOBAL binlog_row_metadata = FULL, also in the server's configuration; then "
            "`penstock capture run NAME --snapshot-again`",
        )
    columns = _columns(metadata, optional, extras)
    return TableMap(database, table, tuple(columns), extras.key)


def _metadata(kinds: bytes, data: bytes) -> list[tuple[int, int, int]]:
    """Return (type, two bytes) of each column; choices hide behind the type of fixed texts."""
    found, at = [], 0
    for kind in kinds:
        first = second = 0
        if kind in _ONE:
            first, at = data[at], at + 1
        elif kind in _TWO:
            first, second, at = data[at], data[at + 1], at + 2
        if kind == STRING:
            kind, first, second = _string(first, second)
        found.append((kind, first, second))
    return found


def _string(first: int, second: int) -> tuple[int, int, int]:
    if first in CHOICES:
        return first, second, 0
    more = ((first & 0x30) ^ 0x30) << 4  # two bits of the length hide in the type
    return STRING, second, more >> 8


def _extras(data: bytes) -> _Extras:
    found, at = _Extras(), 0
    while at < len(data):
        kind = data[at]
        size, at = number(data, at + 1)
        _take(found, kind, data[at : at + size])
        at += size
    return found


def _take(found: _Extras, kind: int, data: bytes) -> None:
    if kind == _SIGNS:
        found.signs = data
    elif kind == _NAMES:
        found.names = [each.decode() for each in _texts(data)]
    elif kind == _KEY:
        found.key = tuple(_numbers(data))
    elif kind == _PREFIX_KEY:
        found.key = tuple(_numbers(data))[::2]
    elif kind in (_SETS, _ENUMS):
        found.choices[SET if kind == _SETS else ENUM] = list(_lists(data))
    elif kind in (_CHARSET, _CHOICE_CHARSET):
        default, *pairs = _numbers(data)
        found.collations[kind == _CHOICE_CHARSET] = (
            default,
            dict(zip(pairs[::2], pairs[1::2], strict=True)),
            [],
        )
    elif kind in (_CHARSETS, _CHOICE_CHARSETS):
        found.collations[kind == _CHOICE_CHARSETS] = (BINARY, {}, list(_numbers(data)))


def _columns(
    metadata: list[tuple[int, int, int]], optional: bytes, extras: _Extras
) -> Iterator[MappedColumn]:
    numbers = texts = choices = 0
    listed = {kind: iter(each) for kind, each in extras.choices.items()}
    for place, (kind, first, second) in enumerate(metadata):
        unsigned, collation = False, BINARY
        known: tuple[bytes, ...] = ()
        if kind in NUMERIC:
            unsigned = bool(extras.signs[numbers // 8] >> (7 - numbers % 8) & 1)
            numbers += 1
        elif kind in TEXTS:
            collation = _collation(extras, False, texts)
            texts += 1
        elif kind in CHOICES:
            collation, known = _collation(extras, True, choices), next(listed[kind])
            choices += 1
        is_optional = bool(optional[place // 8] >> (place % 8) & 1)
        name = extras.names[place]
        yield MappedColumn(name, kind, first, second, is_optional, unsigned, collation, known)


def _collation(extras: _Extras, choice: bool, place: int) -> int:
    default, others, listed = extras.collations.get(choice, (BINARY, {}, []))
    return listed[place] if listed else others.get(place, default)


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        found, at = number(data, at)
        yield found


def _texts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = number(data, at)
        yield data[at : at + size]
        at += size


def _lists(data: bytes) -> Iterator[tuple[bytes, ...]]:
    at = 0
    while at < len(data):
        count, at = number(data, at)
        found = []
        for _ in range(count):
            size, at = number(data, at)
            found.append(data[at : at + size])
            at += size
        yield tuple(found)
