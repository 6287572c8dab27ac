"""Large values that an update did not touch: PostgreSQL leaves them out, so the row is asked for them.

What is found is the value of this change or of a later one, whose own record follows. So the newest record of
a key is whole, which a compacted topic depends on. Of a row or column that is gone it stays unknown.
"""

import time

import psycopg

from penstock.capture.chunks import copied_rows, key_literal, key_row
from penstock.capture.pgoutput import UNCHANGED, Values
from penstock.capture.tables import Connection, TableShape, quoted
from penstock.capture.windows import CommittedTransactions
from penstock.errors import SourceError

_PAUSE, _PATIENCE = 0.01, 60.0


class Completion:
    """Completes the rows of one table."""

    def __init__(self, connection: Connection, shape: TableShape) -> None:
        self._connection, self._shape = connection, shape
        self._names = [each.name for each in shape.columns]

    def __call__(self, values: Values, xid: int) -> Values:
        """Return a row with the values that it lacks, as far as the table has them."""
        missing = [place for place, value in enumerate(values) if value is UNCHANGED]
        key = [values[place] for place in self._shape.key_places]
        spelled = tuple(each.decode() for each in key if isinstance(each, bytes))
        if not missing or not key or len(spelled) < len(key):
            return values
        try:
            found = self._asked(self._query(missing, spelled), xid)
        except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
            return values
        filled = list(values)
        if found[1] is not None:
            for place, value in zip(missing, found[2:], strict=True):
                filled[place] = value
        return filled

    def _query(self, missing: list[int], key: tuple[str, ...]) -> str:
        """The row, if there is one, beside the snapshot in which it was looked for."""
        columns = ", ".join(f"t.{quoted(self._names[place])}" for place in missing)
        where = f"{key_row(self._shape, 't.')} = {key_literal(self._shape, key)}"
        first, snapshot = quoted(self._shape.key[0]), "(SELECT pg_current_snapshot()::text AS now)"
        table = f"{self._shape.quoted} t ON {where}"
        return f"SELECT s.now, t.{first}, {columns} FROM {snapshot} s LEFT JOIN {table}"  # noqa: S608

    def _asked(self, query: str, xid: int) -> Values:
        """Ask until the change itself is seen: PostgreSQL writes it to its log before others see it."""
        change = CommittedTransactions()
        change.add(xid)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            (found,) = copied_rows(self._connection, query)
            if isinstance(found[0], bytes) and change.all_in(found[0].decode()):
                return found
            time.sleep(_PAUSE)
        raise SourceError(
            "a committed transaction can't be seen", hint="does it wait for a standby? it is tried again"
        )
