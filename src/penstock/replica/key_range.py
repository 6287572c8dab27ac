"""A range of a table's keys, as SQL limits it."""

from collections.abc import Sequence
from dataclasses import dataclass

Key = tuple[str, ...]


@dataclass(frozen=True)
class KeyRange:
    """The keys behind `after`, up to `last`; without them, from the beginning or to the end.

    >>> KeyRange(("1",), ("5",)).where(['"id"'])
    ' WHERE ("id") > (\\'1\\') AND ("id") <= (\\'5\\')'
    """

    after: Key | None = None
    last: Key | None = None

    def where(self, key: Sequence[str], *, within: bool = True) -> str:
        """Return the condition on the key's expressions; not `within`, the last one is left out."""
        row = f"({', '.join(key)})"
        limits = [
            f"{row} {sign} {literal(each)}"
            for sign, each in ((">", self.after), ("<=" if within else "<", self.last))
            if each is not None
        ]
        return f" WHERE {' AND '.join(limits)}" if limits else ""


def literal(key: Key) -> str:
    """Return a key as SQL; PostgreSQL gives each text the type of its column.

    >>> literal(("it's",)), literal(("1", "a"))
    ("('it''s')", "('1', 'a')")
    """
    return "(" + ", ".join("'" + each.replace("'", "''") + "'" for each in key) + ")"
