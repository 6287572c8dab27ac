"""A draft: records of one partition that become a segment."""

from dataclasses import dataclass, field

from penstock.log.archive.rows import Row

_FIXED = 32  # bytes of a record besides its key, value and headers, about


@dataclass
class Draft:
    """Records from an offset on, until there are enough of them."""

    first: int
    records: int  # at most
    size: int  # bytes, about
    rows: list[Row] = field(default_factory=list)
    _bytes: int = 0

    def add(self, row: Row) -> None:
        self.rows.append(row)
        headers = sum(len(name) + len(value or b"") for name, value in row.headers or ())
        self._bytes += _FIXED + len(row.key or b"") + len(row.value or b"") + headers

    @property
    def is_full(self) -> bool:
        return len(self.rows) >= self.records or self._bytes >= self.size
