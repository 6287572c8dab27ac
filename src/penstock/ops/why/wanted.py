"""The result that is asked about: its values, what distinguishes it, and how near another one is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.ops.why.answer import Place
from penstock.process.columns.names import DELETED, END, SOURCE, START
from penstock.process.columns.naming import quoted
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.testing.recomputed import alike, plain

_MOST = 500  # rows of one key and window that are compared
_PLACE = SOURCE  # of which the place is compared


@dataclass(frozen=True)
class Nearest:
    """The recomputed result that is nearest: where it differs, and if it comes of too few events or too many.

    `agrees` are the columns besides the key that are the same, `instead` has the values of those that differ.
    `direction` is -1 for too few, 1 for too many, None where nothing can be said.
    """

    differs: tuple[str, ...]
    agrees: tuple[str, ...]
    direction: int | None
    instead: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        return not self.differs

    @property
    def is_near(self) -> bool:
        """Whether it is the same, at least in most of what is not the key."""
        return self.is_same or len(self.differs) < len(self.agrees)

    def is_like(self, other: "Nearest") -> bool:
        """Whether it differs from what is wanted as another one does, by the same values."""
        return self.differs == other.differs and alike(self.instead, other.instead)


@dataclass(frozen=True)
class Wanted:
    """A result as its target holds it.

    `keys` are the columns that distinguish it, as far as the flow computes them; `free` are those that
    say when it was emitted, and not what of. `side_output` is the topic that it went to, if not the target.
    `end` is that of its window, where its target keeps only the start.
    """

    values: Mapping[str, Any]
    keys: tuple[str, ...]
    free: frozenset[str] = frozenset()
    source: Place | None = None
    written: datetime | None = None
    side_output: str | None = None
    deleted: bool = False
    end: datetime | None = None

    def nearest(self, results: DataFrame) -> Nearest | None:
        """Return how near a recomputed result comes; None if there is none of the same key."""
        rows = [plain(row) for row in self._selected(results).limit(_MOST).collect()]
        names = self._compared(results)
        found = [tuple(name for name in names if not alike(row[name], self._value(name))) for row in rows]
        if not found:
            return None
        differs, row = min(zip(found, rows, strict=True), key=lambda each: len(each[0]))
        agrees = tuple(name for name in names if name not in (*differs, *self.keys))
        instead = {name: row[name] for name in differs}
        return Nearest(differs, agrees, self._direction(row, differs), instead)

    def window(self) -> tuple[datetime, datetime] | None:
        """The times of the window that it is of, if it says."""
        start, end = self.values.get(START), self.values.get(END, self.end)
        return (start, end) if isinstance(start, datetime) and isinstance(end, datetime) else None

    @property
    def lacks_end(self) -> bool:
        """Whether its target keeps the start of a window, and not the end."""
        return START in self.keys and isinstance(self.values[START], datetime) and END not in self.values

    def ended(self, results: DataFrame) -> Self:
        """Return it with the end of its window, as far as recomputed results say that."""
        if END not in results.columns:
            return self
        latest = self._of_its_key(results).select(quoted(END)).orderBy(quoted(END).desc()).limit(1)
        ends = [plain(row)[END] for row in latest.collect()]
        return replace(self, end=ends[0]) if ends and isinstance(ends[0], datetime) else self

    def _selected(self, results: DataFrame) -> DataFrame:
        """The recomputed results of the same key, with what is compared."""
        place = [_place_of_source()] if self._says_source(results) else []
        own = [name for name in self._compared(results) if name not in (_PLACE, DELETED)]
        gone = [_is_deleted()] if DELETED in results.columns else []
        return self._of_its_key(results).select(*map(quoted, own), *gone, *place)

    def _of_its_key(self, results: DataFrame) -> DataFrame:
        chosen = results
        if SIDE_OUTPUT in results.columns:
            chosen = chosen.where(quoted(SIDE_OUTPUT).eqNullSafe(F.lit(self.side_output)))
        for name in self.keys:
            if name in results.columns:
                chosen = chosen.where(quoted(name).eqNullSafe(F.lit(self.values[name])))
        return chosen

    def _compared(self, results: DataFrame) -> list[str]:
        names = [name for name in results.columns if name in self.values and name not in self.free]
        names += [DELETED] if DELETED in results.columns else []
        return names + ([_PLACE] if self._says_source(results) else [])

    def _says_source(self, results: DataFrame) -> bool:
        return self.source is not None and SOURCE in results.columns

    def _value(self, name: str) -> Any:
        if name == DELETED:
            return self.deleted
        return str(self.source) if name == _PLACE else self.values[name]

    def _direction(self, row: Mapping[str, Any], differs: Sequence[str]) -> int | None:
        """Times and numbers mostly grow with the events that they are of."""
        pairs: list[tuple[Any, Any]] = [(row[name], self._value(name)) for name in differs]
        for is_kind in (_is_time, _is_number):
            for one, other in pairs:
                if is_kind(one) and is_kind(other):
                    return 1 if one > other else -1
        return None


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _place_of_source() -> Column:
    parts = (F.col(f"{SOURCE}.{part}") for part in ("topic", "partition", "offset"))
    return F.concat_ws("/", *parts).alias(_PLACE)


def _is_deleted() -> Column:
    return F.coalesce(quoted(DELETED), F.lit(False)).alias(DELETED)
