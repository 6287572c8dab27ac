"""Statements in the binary log that change tables without a row: emptied, dropped, renamed ones."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(
    r"(?P<comment>/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*)"  # of /*! … */ only its ends
    r"|`(?P<name>(?:[^`]|``)+)`|'(?:[^'\\]|\\.|'')*'|\"(?P<text>(?:[^\"\\]|\\.|\"\")*)\""
    r"|(?P<word>[\w$\u0080-\uffff]+)|(?P<sign>[.,();=])",
    re.DOTALL,
)
_PARTS = ("EXCHANGE", "TRUNCATE", "DROP", "DISCARD", "IMPORT", "CONVERT")
# Statements that change no rows but those of tables that they name; all others may, by a function or trigger.
_ADMINISTRATIVE = (
    "", "ALTER", "ANALYZE", "BEGIN", "CHECK", "COMMIT", "CREATE", "DROP", "FLUSH", "GRANT", "INSTALL",
    "OPTIMIZE", "RENAME", "REPAIR", "REVOKE", "ROLLBACK", "SAVEPOINT", "SET", "TRUNCATE", "UNINSTALL", "XA",
)  # fmt: skip
# What an ALTER TABLE may begin a clause with and leave the table its rows.
_KEEPING = (
    "ADD", "ALGORITHM", "ALTER", "ANALYZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHANGE", "CHARACTER",
    "CHARSET", "CHECK", "CHECKSUM", "COALESCE", "COLLATE", "COMMENT", "CONVERT", "DEFAULT", "DISABLE", "DROP",
    "ENABLE", "ENCRYPTED", "ENCRYPTION_KEY_ID", "ENGINE", "FORCE", "IETF_QUOTES", "KEY_BLOCK_SIZE", "LOCK",
    "MAX_ROWS", "MIN_ROWS", "MODIFY", "NOWAIT", "OPTIMIZE", "ORDER", "PACK_KEYS", "PAGE_CHECKSUM",
    "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "PARTITION", "REBUILD", "REMOVE", "RENAME", "REORGANIZE",
    "REPAIR", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "WAIT",
)  # fmt: skip
_RESTARTED = re.compile(r"DELETE FROM `(?:[^`]|``)+`\.`(?:[^`]|``)+`\s*(?:/\*[^!].*\*/)?", re.DOTALL)


@dataclass(frozen=True)
class Effect:
    """What a statement does to tables, besides to their columns."""

    emptied: tuple[str, ...] = ()
    other: tuple[str, ...] = ()  # which may hold other rows now
    written: bool = False  # rows may have been changed, and only this text says so
    dropped: str = ""  # a database that is gone
    altered: tuple[str, ...] = ()  # which may have other columns and constraints now
    restarted: tuple[str, ...] = ()  # in memory, and found empty when the server was started

    def lowered(self) -> "Effect":
        """Return the same with small letters, for servers that keep names so."""
        emptied, other, altered, restarted = (
            tuple(map(str.lower, paths)) for paths in (self.emptied, self.other, self.altered, self.restarted)
        )
        return Effect(emptied, other, self.written, self.dropped.lower(), altered, restarted)


NOTHING = Effect()


def effect(text: str, database: str) -> Effect:
    """Return what a statement does.

    >>> effect("truncate table orders", "shop").emptied
    ('shop.orders',)
    >>> effect("RENAME TABLE a TO b, s.`c d` TO a", "shop").other
    ('shop.a', 'shop.b', 's.c d')
    """
    words = _Words(text, database)
    words.skip_settings()
    first = words.next()
    if first == "TRUNCATE":
        words.skip("TABLE")
        return Effect(emptied=(words.path(),))
    if first == "DELETE" and _RESTARTED.fullmatch(text.strip()) and words.skip("FROM"):
        return Effect(restarted=(words.path(),))
    if first == "DROP":
        return _drop(words)
    if first == "CREATE":
        return _create(words)
    if first == "RENAME" and words.skip("TABLE", "TABLES"):
        return Effect(other=_renamed(words))
    if first == "ALTER":
        return _alter(words)
    return Effect(written=first not in _ADMINISTRATIVE)


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
    is_replaced = words.skip("OR") and words.skip("REPLACE")
    if is_replaced and words.skip("DATABASE", "SCHEMA"):
        return Effect(dropped=words.name())
    if not words.skip("TABLE"):
        return NOTHING
    words.skip_all("IF", "NOT", "EXISTS")
    path = words.path()
    is_filled = "SELECT" in words.rest()  # with rows, which follow it in the log only if they are logged
    return Effect(emptied=(path,) if is_replaced else (), altered=(path,), written=is_filled)


def _renamed(words: "_Words") -> tuple[str, ...]:
    words.skip_all("IF", "EXISTS")
    found: dict[str, None] = {}
    while True:
        found[words.path()] = None
        words.skip_wait()
        if words.skip("TO"):
            found[words.path()] = None
        if not words.skip(","):
            return tuple(found)


def _alter(words: "_Words") -> Effect:
    words.skip("ONLINE")
    may_lose = words.skip("IGNORE")
    words.skip("ONLINE")
    if not words.skip("TABLE"):
        return NOTHING
    words.skip_all("IF", "EXISTS")
    path = words.path()
    words.skip_wait()
    rest = words.rest()
    others = tuple(_moved_to(words, rest))
    if others or may_lose or not all(map(_keeps, _clauses(rest))):
        return Effect(other=tuple(dict.fromkeys((path, *others))), altered=(path,))
    return Effect(altered=(path,))


def _moved_to(words: "_Words", rest: list[str]) -> Iterator[str]:
    """Yield the tables that an ALTER TABLE gives rows to, or takes them from."""
    for place, (word, after) in enumerate(pairwise([*rest, ""])):
        if word == "RENAME" and after not in ("COLUMN", "INDEX", "KEY"):
            yield words.path_at(place + 1, ("TO", "AS", "="))
        elif (word, after) in (("WITH", "TABLE"), ("TO", "TABLE"), ("CONVERT", "TABLE")):
            yield words.path_at(place + 2, ())


def _clauses(rest: list[str]) -> Iterator[list[str]]:
    """Yield what stands between the commas that are in no brackets."""
    depth, found = 0, list[str]()
    for word in rest:
        depth += (word == "(") - (word == ")")
        if word == "," and not depth:
            yield found
            found = []
        else:
            found.append(word)
    if found:
        yield found


def _keeps(clause: list[str]) -> bool:
    """Whether a clause of an ALTER TABLE is known to leave the table its rows."""
    for word, after in pairwise(clause):
        if word in _PARTS and after in ("PARTITION", "TABLESPACE", "SYSTEM"):
            return False
    return not clause or clause[0] in ("", ";", *_KEEPING)


class _Words:
    """The words of a statement; those that are quoted are names."""

    def __init__(self, text: str, database: str) -> None:
        self._database, self._at, self._rest = database, 0, 0
        self._found = [_word(each) for each in _TOKEN.finditer(text) if each["comment"] is None]

    def skip_settings(self) -> None:
        """Go behind settings that a statement has for itself: SET STATEMENT … FOR."""
        while self.rest()[:2] == ["SET", "STATEMENT"]:
            rest = self.rest()
            self._at += rest.index("FOR") + 1 if "FOR" in rest else len(rest)

    def skip_wait(self) -> None:
        if self.skip("WAIT"):
            self.next()
        self.skip("NOWAIT")

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
    if found["name"] is not None:
        return found["name"].replace("``", "`"), True
    if found["text"] is not None:
        return found["text"], True
    plain = found["word"] or found["sign"] or ""
    return plain, not plain
