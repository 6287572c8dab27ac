"""The statement that brings the staged rows into the target table."""

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from penstock.errors import SinkError
from penstock.targets.postgres.columns import DELETED, TableColumn
from penstock.targets.postgres.connection import Connection
from penstock.targets.postgres.staging import ATTEMPT, ORDINAL, Staged, Staging
from penstock.targets.postgres.table import DeclaredTable

_ROOM = 128 * 2**20
# A server's few megabytes would sort a batch on disk; what is set higher stays.
_SET_ROOM = """
    SELECT set_config('work_mem', greatest(pg_size_bytes(setting), %s) / 1024 || 'kB', true)
    FROM current_setting('work_mem') setting"""


@dataclass(frozen=True)
class Merge:
    """How rows get from staging into a table; with `repeated`, rows that are there already may come again.

    `skips` are the columns that show whether a row to append is there already.
    """

    table: DeclaredTable
    columns: tuple[TableColumn, ...]
    deletes: bool
    repeated: bool
    skips: tuple[str, ...] = ()

    def run(self, connection: Connection, staging: Staging, lanes: Sequence[Staged]) -> int:
        """Merge the rows of the attempts that succeeded, and return how many were there already."""
        attempts = [lane.attempt for lane in lanes if lane.count]
        if not attempts:
            return 0
        staged = _staged(staging, attempts)
        connection.execute(_SET_ROOM, [_ROOM])
        if self.table.write == "append":
            return sum(lane.count for lane in lanes) - connection.execute(self._append(staged)).rowcount
        self._run_upsert(connection, staged)
        return 0

    def _run_upsert(self, connection: Connection, staged: Composed) -> None:
        try:
            connection.execute(self._upsert(staged))
        except errors.UniqueViolation as error:
            raise SinkError(
                f"another writer put the same row into {self.table.name!r}: {error.diag.message_detail}",
                hint="the batch is written again, over that row",
            ) from error

    def _append(self, staged: Composed) -> Composed:
        ending: Composable = SQL("ON CONFLICT DO NOTHING" if self.repeated else "")
        if self.skips and not self.repeated:
            ending = SQL("ON CONFLICT ({}) DO NOTHING").format(_list(self.skips))
        return SQL("INSERT INTO {} ({names}) SELECT {names} {} {}").format(
            self.table.identifier, staged, ending, names=_list(self._names())
        )

    def _upsert(self, staged: Composed) -> Composed:
        """MERGE takes two thirds of the time of INSERT … ON CONFLICT, and deletes in the same pass."""
        deleted = Identifier("s", DELETED)
        clauses = [SQL("WHEN MATCHED AND {} THEN DELETE").format(deleted)] if self.deletes else []
        clauses += self._update()
        written = SQL("AND {} IS NOT TRUE").format(deleted) if self.deletes else SQL("")
        return SQL(
            "MERGE INTO {} AS t USING ({}) AS s ON ({}) = ({}) {} "
            "WHEN NOT MATCHED {} THEN INSERT ({}) VALUES ({})"
        ).format(
            self.table.identifier,
            self._last(staged),
            _list(self.table.keys, "t"),
            _list(self.table.keys, "s"),
            SQL(" ").join(clauses),
            written,
            _list(self._names()),
            _list(self._names(), "s"),
        )

    def _update(self) -> list[Composed]:
        """Rows that have not changed are left alone: to write them again takes three times as long."""
        rest = [name for name in self._names() if name not in self.table.keys]
        changes = SQL(", ").join(
            SQL("{} = {}").format(Identifier(name), Identifier("s", name)) for name in rest
        )
        update = SQL("WHEN MATCHED AND ROW({}) IS DISTINCT FROM ROW({}) THEN UPDATE SET {}")
        return [update.format(_list(rest, "t"), _list(rest, "s"), changes)] if rest else []

    def _last(self, staged: Composed) -> Composed:
        names = [*self._names(), DELETED] if self.deletes else self._names()
        return SQL("SELECT DISTINCT ON ({keys}) {} {} ORDER BY {keys}, {} DESC").format(
            _list(names), staged, Identifier(ORDINAL), keys=_list(self.table.keys)
        )

    def _names(self) -> list[str]:
        return [column.name for column in self.columns]


def _staged(staging: Staging, attempts: list[int]) -> Composed:
    # Written out, not passed: a statement with parameters could have no column with a % in its name.
    return SQL("FROM {} WHERE {} = ANY({})").format(
        staging.identifier, Identifier(ATTEMPT), Literal(attempts)
    )


def _list(names: Sequence[str], *of: str) -> Composed:
    return SQL(", ").join(Identifier(*of, name) for name in names)
