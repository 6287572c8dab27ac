"""Checksums of records: those of two ranges make that of both, however the log was cut into ranges."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct
from typing import Self

from penstock.log.archive.rows import Row

_MODULUS = 1 << 128
_PLACE, _LENGTH = Struct(">iqqb"), Struct(">q")
_NOTHING = _LENGTH.pack(-1)


@dataclass(frozen=True)
class Checksum:
    """How many records there are, and the sum of their digests.

    >>> one, other = (Checksum.of(0, [Row(at, 0, 0, None, b"x", None)]) for at in (1, 2))
    >>> both = Checksum.of(0, [Row(at, 0, 0, None, b"x", None) for at in (2, 1)])
    >>> one.adding(other) == both, both.without(one) == other
    (True, True)

    A digest is of all that a record is, its partition and offset included: so the sum need not be made in
    order, and a record that is lost, doubled, moved or changed makes another sum.
    """

    count: int = 0
    sum: int = 0

    @classmethod
    def of(cls, partition: int, rows: Iterable[Row]) -> Self:
        """Return the checksum of some rows of a partition."""
        count = total = 0
        for row in rows:
            count += 1
            total += int.from_bytes(_digest(partition, row), "big")
        return cls(count, total % _MODULUS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a checksum that was spelled by `str`."""
        count, _, total = text.partition(":")
        return cls(int(count), int(total, 16))

    def adding(self, other: "Checksum") -> "Checksum":
        """Return the checksum of both."""
        return Checksum(self.count + other.count, (self.sum + other.sum) % _MODULUS)

    def without(self, other: "Checksum") -> "Checksum":
        """Return the checksum of what is left if some records are taken away."""
        return Checksum(self.count - other.count, (self.sum - other.sum) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.count}:{self.sum:032x}"


def _digest(partition: int, row: Row) -> bytes:
    """The digest of a record; each part has its length before it, so that none runs into the next."""
    made = blake2b(_PLACE.pack(partition, row.offset, row.timestamp, row.kind), digest_size=16)
    _add(made, row.key)
    _add(made, row.value)
    for name, value in row.headers or ():
        _add(made, name.encode("utf-8", "surrogateescape"))
        _add(made, value)
    return made.digest()


def _add(made: blake2b, part: bytes | None) -> None:
    if part is None:
        made.update(_NOTHING)
    else:
        made.update(_LENGTH.pack(len(part)))
        made.update(part)
