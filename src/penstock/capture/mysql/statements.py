"""Statements in the binary log that change tables without a row: emptied, dropped, renamed ones."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"`((?:[^`]|``)+)`|'(?:[^'\\]|\\.|'')*'|\"((?:[^\"\\]|\\.|\"\")*)\"|([\w$\u0080-\uffff]+)|([.,();=])",
    re.DOTALL,
)
_OWN_COMMENT = re.compile(r"/\*M?!\d*(.*?)\*/", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=\s))--\s[^\n]*|#[^\n]*", re.DOTALL)
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "MERGE")
_PARTS = ("EXCHANGE", "TRUNCATE", "DROP", "DISCARD", "IMPORT")


@dataclass(frozen=True)
class Effect:
    """What a statement does to tables, besides to their columns."""

    emptied: tuple[str, ...] = ()
    other: tuple[str, ...] = ()  # which may hold other rows now
    written: bool = False  # rows were changed, and only this text says so
    dropped: str = ""  # a database that is gone

    def lowered(self) -> "Effect":
        """Return the same with small letters, for servers that keep names so."""
        emptied, other = (tuple(map(str.lower, paths)) for paths in (self.emptied, self.other))
        return Effect(emptied, other, self.written, self.dropped.lower())


NOTHING = Effect()


def effect(text: str, database: str) -> Effect:
    """Return what a statement does.

    >>> effect("truncate table orders", "shop").emptied
    ('shop.orders',)
    >>> effect("RENAME TABLE a TO b, s.`c d` TO a", "shop").other
    ('shop.a', 'shop.b', 's.c d')
    """
    words = _Words(text, database)
    first = words.next()
    if first == "TRUNCATE":
        words.skip("TABLE")
        return Effect(emptied=(words.path(),))
    if first == "DROP":
        return _drop(words)
    if first == "CREATE":
        return _create(words)
    if first == "RENAME" and words.skip("TABLE", "TABLES"):
        return Effect(other=_renamed(words))
    if first == "ALTER":
        return _alter(words)
    return Effect(written=first in _WRITES)


def _drop(words: "_Words") -> Effect:
    if words.skip("DATABASE", "SCHEMA"):
        words.skip_all("IF", "EXISTS")
        return Effect(dropped=words.name())
    if not words.skip("TABLE", "TABLES"):
        return NOTHING  # also a temporary one, which is nobody else's
    words.skip_all("IF", "EXISTS")
    found = [words.path()]
    while words.skip(","):
        found.append(words.path())
    return Effect(emptied=tuple(found))


def _create(words: "_Words") -> Effect:
    if not (words.skip("OR") and words.skip("REPLACE") and words.skip("TABLE")):
        return NOTHING
    return Effect(emptied=(words.path(),))


def _renamed(words: "_Words") -> tuple[str, ...]:
    words.skip_all("IF", "EXISTS")
    found: dict[str, None] = {}
    while True:
        found[words.path()] = None
        words.skip_all("WAIT", "NOWAIT")
        if words.skip("TO"):
            found[words.path()] = None
        if not words.skip(","):
            return tuple(found)


def _alter(words: "_Words") -> Effect:
    words.skip_all("ONLINE", "IGNORE")
    if not words.skip("TABLE"):
        return NOTHING
    words.skip_all("IF", "EXISTS")
    path, rest = words.path(), words.rest()
    found = [path]
    for place, word in enumerate(rest):
        after = rest[place + 1] if place + 1 < len(rest) else ""
        if word == "RENAME" and after not in ("COLUMN", "INDEX", "KEY"):
            return Effect(other=(*found, words.path_at(place + 1, ("TO", "AS", "="))))
        if word in _PARTS and after in ("PARTITION", "TABLESPACE"):
            return Effect(other=tuple(found))
    return NOTHING


class _Words:
    """The words of a statement; those that are quoted are names."""

    def __init__(self, text: str, database: str) -> None:
        plain = _COMMENT.sub(" ", _OWN_COMMENT.sub(r" \1 ", text))
        self._database, self._at, self._rest = database, 0, 0
        self._found = [_word(each) for each in _TOKEN.finditer(plain)]

    def next(self) -> str:
        word, quoted = self._found[self._at] if self._at < len(self._found) else ("", False)
        self._at += 1
        return word if quoted else word.upper()

    def skip(self, *wanted: str) -> bool:
        if self._at >= len(self._found):
            return False
        word, quoted = self._found[self._at]
        is_there = not quoted and word.upper() in wanted
        self._at += is_there
        return is_there

    def skip_all(self, *wanted: str) -> None:
        while self.skip(*wanted):
            pass

    def name(self) -> str:
        word = self._found[self._at][0] if self._at < len(self._found) else ""
        self._at += 1
        return word

    def path(self) -> str:
        first = self.name()
        return f"{first}.{self.name()}" if self.skip(".") else f"{self._database}.{first}"

    def rest(self) -> list[str]:
        self._rest = self._at
        return ["" if quoted else word.upper() for word, quoted in self._found[self._at :]]

    def path_at(self, place: int, skipped: tuple[str, ...]) -> str:
        """Return the name at a place of the rest, behind words that may stand before it."""
        self._at = self._rest + place
        self.skip_all(*skipped)
        return self.path()


def _word(found: "re.Match[str]") -> tuple[str, bool]:
    if found[1] is not None:
        return found[1].replace("``", "`"), True
    if found[2] is not None:
        return found[2], True
    return found[3] or found[4] or "", not (found[3] or found[4])
