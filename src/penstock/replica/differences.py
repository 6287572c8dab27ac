"""What an audit has found."""

from dataclasses import dataclass, field
from typing import Literal

from penstock.replica.key_range import Key, KeyRange

Kind = Literal["missing", "unexpected", "different"]


@dataclass(frozen=True)
class Difference:
    """A row that the copy lacks, has beside the source, or has with other values in `columns`."""

    table: str
    key: Key
    kind: Kind
    columns: tuple[str, ...] = ()


@dataclass
class TableAudit:
    """What was compared of a table; `unsettled` rows changed each time that they were looked at."""

    table: str
    rows: int = 0
    ranges: int = 0
    unsettled: int = 0
    is_sorted: bool = True  # whether its ranges are those of the source's index
    differences: list[Difference] = field(default_factory=list)
    bad: list[KeyRange] = field(default_factory=list)  # the ranges that the differences are in


@dataclass
class AuditReport:
    """What was found in all tables."""

    replica: str
    tables: list[TableAudit]
    seconds: float = 0.0

    @property
    def differences(self) -> list[Difference]:
        return [each for table in self.tables for each in table.differences]

    @property
    def is_equal(self) -> bool:
        return not self.differences
