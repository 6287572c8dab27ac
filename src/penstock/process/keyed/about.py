"""What keyed state is, as one line: Spark shows it of a flow, and it is compared when the flow restarts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_WIDER = {
    ("tinyint", "smallint"),
    ("tinyint", "int"),
    ("tinyint", "bigint"),
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
}
_LINE = re.compile(r"(state.*?) of \{(.*)\}, in (\d+) buckets by (.*)")


@dataclass(frozen=True)
class About:
    """The columns of keyed state with their types, its buckets and its key.

    >>> str(About("state", {"card": "string", "n": "bigint"}, 16, ("card",)))
    'state of {card string; n bigint}, in 16 buckets by card'
    """

    kind: str
    columns: Mapping[str, str]
    buckets: int
    by: tuple[str, ...]

    def __str__(self) -> str:
        columns = "; ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"{self.kind} of {{{columns}}}, in {self.buckets} buckets by {', '.join(self.by)}"

    @classmethod
    def read(cls, line: str) -> Self | None:
        """Return what a line tells, or None if it is not about such state."""
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        columns = dict(column.split(" ", 1) for column in found[2].split("; "))
        return cls(found[1], columns, int(found[3]), tuple(found[4].split(", ")))

    def holds(self, before: "About") -> bool:
        """Whether what was kept before can be read as this: columns may have come, or become wider."""
        same = (self.kind, self.buckets, self.by) == (before.kind, before.buckets, before.by)
        return same and all(_fits(kind, self.columns.get(name)) for name, kind in before.columns.items())


def _fits(before: str, after: str | None) -> bool:
    return before == after or (before, after) in _WIDER
