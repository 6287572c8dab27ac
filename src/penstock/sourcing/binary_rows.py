"""Records as rows of PostgreSQL's binary COPY, which the database takes in without parsing any text."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from struct import Struct

import msgspec

from penstock.sourcing.batch import Batch

_PORTION = 100  # records that are sent while others are made
_BEGIN, _END = b"PGCOPY\n\xff\r\n\x00" + bytes(8), b"\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_COUNT = Struct(">h").pack(9)  # columns: topic, stream, version, id, type, at, record, command, ordinal
_size, _integer, _long, _version_and_id = (Struct(format).pack for format in (">i", ">ii", ">iq", ">iqi16s"))
_encode_lines = msgspec.json.Encoder().encode_lines


def binary_rows(schema: str, batch: Batch, command: str | None) -> Iterator[bytes]:
    """Yield what COPY reads, a portion at a time."""
    at, done = _time(batch.at), _size(-1) if command is None else _text(command)
    ordinals = count(1)
    begin = _BEGIN
    for records in batch.portions(_PORTION):
        texts = _encode_lines(records).split(b"\n")
        yield begin + b"".join(
            part
            for each, text, ordinal in zip(records, texts, ordinals, strict=False)
            for part in (
                _COUNT,
                _text(f"{schema}.{each.category}"),
                _text(each.stream),
                _version_and_id(8, each.version, 16, bytes.fromhex(each.id.replace("-", ""))),
                _text(each.type),
                at,
                _size(len(text)),
                text,
                done,
                _integer(4, ordinal),
            )
        )
        begin = b""
    yield _END


@lru_cache(1_000)
def _text(value: str) -> bytes:
    encoded = value.encode()
    return _size(len(encoded)) + encoded


def _time(value: datetime) -> bytes:
    return _long(8, (value - _EPOCH) // timedelta(microseconds=1))
