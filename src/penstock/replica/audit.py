"""Compares a source with its copy by checksums of key ranges, while both go on."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.capture import Store
from penstock.capture.replication import connect
from penstock.capture.slot import Source
from penstock.errors import ReplicaError
from penstock.replica.arrival import Arrival
from penstock.replica.compared_table import ComparedTable, compared_table
from penstock.replica.differences import AuditReport, Difference, Kind, TableAudit
from penstock.replica.explained import explained
from penstock.replica.key_range import Key, KeyRange
from penstock.replica.ledger import Ledger, label
from penstock.replica.replica import Replica
from penstock.replica.source_tables import source_table
from penstock.replica.table_side import TableSide
from penstock.settings import Settings

SMALL, LARGE = 1_000, 10_000  # rows of a range: of the smallest whose rows are looked at one by one
_MOST = 100_000  # rows of a table that are looked at one by one
_PASSES = 6  # in which a row is looked at again

_Row = tuple[int, str]  # the hash and the version of a row
_TOUCHED: _Row = (0, "")


@dataclass(frozen=True)
class _Suspect:
    """A row that was not the same when it was first read, and the range that it is in."""

    table: str
    key: Key
    range: KeyRange


class Audit:
    """Compares the tables of a replica; open it with `auditing`."""

    def __init__(
        self,
        replica: Replica,
        source: Source,
        copy: Ledger,
        arrival: Arrival,
        paths: Iterable[str],
        *,
        size: int = LARGE,
    ) -> None:
        self._replica, self._size = replica, size
        self.source, self.arrival = source, arrival
        known = copy.tables()
        self._tables: dict[str, ComparedTable] = {
            path: compared_table(
                source.connection, copy.connection, source_table(source, path), known.get(path)
            )
            for path in paths
        }
        self._sources = {
            path: TableSide(source.connection, each, each.source) for path, each in self._tables.items()
        }
        self._copies = {
            path: TableSide(copy.connection, each, each.copy) for path, each in self._tables.items()
        }

    def run(self) -> AuditReport:
        """Compare all rows of all tables."""
        return self.compare({path: [KeyRange()] for path in self._tables})

    def compare(self, ranges: dict[str, list[KeyRange]]) -> AuditReport:
        """Compare ranges of tables: those whose sums differ row by row, and these until they have settled."""
        begun = time.monotonic()
        audits = {path: TableAudit(path, is_sorted=self._tables[path].is_sorted) for path in ranges}
        suspects = [
            suspect
            for path, found in ranges.items()
            for each in found
            for suspect in self._suspects(audits[path], each)
        ]
        self._settle(audits, suspects)
        return AuditReport(self._replica.name, list(audits.values()), round(time.monotonic() - begun, 1))

    def _suspects(self, audit: TableAudit, within: KeyRange) -> Iterator[_Suspect]:
        count = 0
        for large in self._sources[audit.table].ranges(within, self._size):
            if self._is_same(audit, large):
                continue
            for small in self._sources[audit.table].ranges(large, min(SMALL, self._size)):
                for key in self._differing(audit.table, small):
                    count += 1
                    if count > _MOST:
                        raise ReplicaError(
                            f"more than {_MOST:,} rows of {audit.table} differ",
                            hint=f"`penstock replica run {self._replica.name} --begin-anew` fills it again",
                        )
                    yield _Suspect(audit.table, key, small)

    def _is_same(self, audit: TableAudit, range: KeyRange) -> bool:
        ours, theirs = self._sources[audit.table].sum(range), self._copies[audit.table].sum(range)
        audit.ranges += 1
        audit.rows += ours[0]
        return ours == theirs

    def _differing(self, path: str, range: KeyRange) -> list[Key]:
        ours, theirs = self._sources[path].rows(range), self._copies[path].rows(range)
        return [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]

    def _settle(self, audits: dict[str, TableAudit], suspects: list[_Suspect]) -> None:
        """Look at rows again, each time once the copy has passed the place at which the source was read.

        What differs twice in a row, beside a row of the source that nobody touched, is a difference.
        """
        differed: dict[_Suspect, _Row | None] = {}
        for _ in range(_PASSES):
            again: dict[_Suspect, _Row | None] = {}
            for suspect, ours, theirs in self._looked_at(suspects):
                if ours is _TOUCHED or suspect not in differed or differed[suspect] != ours:
                    again[suspect] = ours
                else:
                    self._report(audits[suspect.table], suspect, ours, theirs)
            if not again:
                return
            differed, suspects = again, list(again)
        for suspect in suspects:
            audits[suspect.table].unsettled += 1

    def _looked_at(self, suspects: list[_Suspect]) -> Iterator[tuple[_Suspect, _Row | None, _Row | None]]:
        """Yield what differs on both sides, or may, because the source's row was written meanwhile."""
        before = self._found(self._sources, suspects)
        self.arrival.wait()
        copied = self._found(self._copies, suspects)
        after = self._found(self._sources, suspects)
        for each in suspects:
            place = (each.table, each.key)
            ours, theirs, now = before.get(place), copied.get(place), after.get(place)
            if ours != now:
                yield each, _TOUCHED, theirs
            elif (ours and ours[0]) != (theirs and theirs[0]):
                yield each, ours, theirs

    def _found(self, sides: dict[str, TableSide], suspects: list[_Suspect]) -> dict[tuple[str, Key], _Row]:
        found: dict[tuple[str, Key], _Row] = {}
        for path in {each.table for each in suspects}:
            keys = [each.key for each in suspects if each.table == path]
            found |= {(path, key): row for key, row in sides[path].found(keys).items()}
        return found

    def _report(self, audit: TableAudit, suspect: _Suspect, ours: _Row | None, theirs: _Row | None) -> None:
        kind: Kind = "missing" if theirs is None else "different" if ours else "unexpected"
        columns = self._columns(suspect) if kind == "different" else ()
        audit.differences.append(Difference(suspect.table, suspect.key, kind, columns))
        if suspect.range not in audit.bad:
            audit.bad.append(suspect.range)

    def _columns(self, suspect: _Suspect) -> tuple[str, ...]:
        ours = self._sources[suspect.table].spelled(suspect.key)
        theirs = self._copies[suspect.table].spelled(suspect.key)
        return tuple(name for name in ours if ours[name] != theirs[name])


@contextmanager
def auditing(
    settings: Settings,
    replica: Replica,
    *,
    tables: tuple[str, ...] = (),
    size: int = LARGE,
    patience: float = 60.0,
) -> Iterator[Audit]:
    """Open an audit of a replica's tables, or of some of them."""
    capture, name = Store(settings).get(replica.capture), f"penstock replica {replica.name} audit"
    unknown = next((each for each in tables if each not in capture.tables), None)
    if unknown is not None:
        raise ReplicaError(
            f"capture {capture.name!r} has no table {unknown!r}", hint=f"it has {', '.join(capture.tables)}"
        )
    with (
        explained(),
        connect(settings.dsn(capture.connection), name) as ours,
        connect(settings.dsn(replica.connection), name) as theirs,
    ):
        source = Source(ours, capture, settings.namespace)
        copy = Ledger(theirs, label(settings.namespace, replica.name))
        arrival = Arrival(settings, capture, source, copy, patience)
        yield Audit(replica, source, copy, arrival, tables or capture.tables, size=size)
