"""Large values that an update did not touch: PostgreSQL leaves them out, so the row is asked for them.

What is found is the value of this change or of a later one, whose own record follows. So the newest record of
a key is whole, which a compacted topic depends on. Of a row or column that is gone it stays unknown.
"""

import psycopg

from penstock.capture.chunks import key_literal, key_row
from penstock.capture.pgoutput import UNCHANGED, Values
from penstock.capture.tables import Connection, TableShape, quoted


def completed_row(connection: Connection, shape: TableShape, values: Values) -> Values:
    """Return a row with the values that it lacks, as far as the table has them."""
    missing = [place for place, value in enumerate(values) if value is UNCHANGED]
    names = [each.name for each in shape.columns]
    key = [values[names.index(name)] for name in shape.key]
    if not missing or not key or not all(isinstance(each, bytes) for each in key):
        return values
    columns = ", ".join(f"{quoted(names[place])}::text" for place in missing)
    where = f"{key_row(shape)} = {key_literal(shape, tuple(each.decode() for each in key))}"  # type: ignore[union-attr]
    try:
        found = connection.execute(f"SELECT {columns} FROM {shape.quoted} WHERE {where}").fetchone()  # noqa: S608
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
        return values
    filled = list(values)
    for place, value in zip(missing, found or [], strict=False):
        filled[place] = None if value is None else str(value).encode()
    return filled
