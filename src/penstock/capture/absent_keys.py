"""Keys that somebody has rows of, and that a table does not have."""

from penstock.capture.chunks import Key, copied_rows
from penstock.capture.pgoutput import Values
from penstock.capture.tables import Connection, TableShape, quoted

_TYPES = """
select attname::text, format_type(atttypid, atttypmod) from pg_attribute
where attrelid = %s::int8::oid and attnum > 0 and not attisdropped
"""


def absent_rows(connection: Connection, shape: TableShape, keys: tuple[Key, ...]) -> list[Values]:
    """Return those keys that the table does not have, as rows of which nothing else is known."""
    if not keys:
        return []
    types = {str(name): str(type) for name, type in connection.execute(_TYPES, [shape.oid])}
    listed = ", ".join(_literal(shape, types, key) for key in keys)
    names = [quoted(each) for each in shape.key]
    same = " AND ".join(f"t.{each} = w.{each}" for each in names)
    query = (
        f"SELECT w.* FROM (VALUES {listed}) w({', '.join(names)}) "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT FROM {shape.quoted} t WHERE {same})"
    )
    return [_row(shape, found) for found in copied_rows(connection, query)]


def _literal(shape: TableShape, types: dict[str, str], key: Key) -> str:
    values = (
        f"'{value.replace(chr(39), chr(39) * 2)}'::{types[name]}"
        for name, value in zip(shape.key, key, strict=True)
    )
    return f"({', '.join(values)})"


def _row(shape: TableShape, key: Values) -> Values:
    row: Values = [None] * len(shape.columns)
    for place, value in zip(shape.key_places, key, strict=True):
        row[place] = value
    return row
