"""Large values that an update did not touch: PostgreSQL leaves them out, so the row is asked for them.

What is found is the value of this change or of a later one, whose own record follows. So the newest record of
a key is whole, which a compacted topic depends on. Of a row or column that is gone it stays unknown.
"""

import psycopg

from penstock.capture.chunks import copied_rows, key_literal, key_row
from penstock.capture.pgoutput import UNCHANGED, Values
from penstock.capture.tables import Connection, TableShape, quoted


def completed_row(connection: Connection, shape: TableShape, values: Values) -> Values:
    """Return a row with the values that it lacks, as far as the table has them."""
    missing = [place for place, value in enumerate(values) if value is UNCHANGED]
    names = [each.name for each in shape.columns]
    key = [values[names.index(name)] for name in shape.key]
    if not missing or not key or not all(isinstance(each, bytes) for each in key):
        return values
    columns = ", ".join(quoted(names[place]) for place in missing)
    where = f"{key_row(shape)} = {key_literal(shape, tuple(each.decode() for each in key))}"  # type: ignore[union-attr]
    query = f"SELECT {columns} FROM {shape.quoted} WHERE {where}"  # noqa: S608
    try:
        found = list(copied_rows(connection, query))
    except (psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedTable):
        return values
    filled = list(values)
    for place, value in zip(missing, found[0] if found else [], strict=False):
        filled[place] = value
    return filled
