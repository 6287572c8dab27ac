"""Reads an index that a flow may be writing, in this process or another one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock

import pyarrow as pa
import tantivy

from penstock.documents import JsonObject
from penstock.errors import DataError
from penstock.targets.search.description import BUCKET, ROW, Description
from penstock.targets.search.documents import BUCKETS, Documents
from penstock.targets.search.engine import asking, open_index
from penstock.targets.search.folder import IndexFolder, describe
from penstock.targets.search.ledger import OWN_BUCKET

_TRIES = 5  # a generation may be swapped away while it is being opened
_AGAIN = "try again; if it stays so, rebuild the index from the log"


@dataclass(frozen=True)
class _Opened:
    """An index as it was opened or reloaded last."""

    generation: Path
    description: Description
    documents: Documents
    index: tantivy.Index
    commit: tuple[int, ...]


class IndexReader:
    """Searches what was committed last; it follows commits and swaps."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._lock = Lock()
        self._opened: _Opened | None = None

    def search(self, query: str, limit: int) -> list[JsonObject]:
        """Return the rows that match a query best."""
        if limit < 1:
            raise DataError(f"limit is {limit}", hint="ask for one row at least")
        opened = self._current()
        parsed = _parsed(opened, query)
        searcher = opened.index.searcher()
        with asking("search", _AGAIN):
            found = searcher.search(parsed, limit, count=False).hits
            stored = [_stored(searcher, address) for _, address in found]
        return list(opened.documents.rows(stored).to_pylist())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows of one moment, in pieces of some memory each."""
        opened = self._current()
        searcher = opened.index.searcher()
        for bucket in range(BUCKETS):
            most = searcher.doc_freq(BUCKET, bucket)
            if most:
                asked = tantivy.Query.term_query(opened.index.schema, BUCKET, bucket, "basic")
                hits = searcher.search(asked, most, count=False).hits
                yield opened.documents.rows(_stored(searcher, address) for _, address in hits)

    def _current(self) -> _Opened:
        with self._lock:
            for _ in range(_TRIES):
                try:
                    self._opened = self._refreshed()
                    return self._opened
                except (OSError, ValueError):
                    self._opened = None
            with asking("open", _AGAIN):
                return self._refreshed()

    def _refreshed(self) -> _Opened:
        generation = self._folder.current()
        commit = _last_commit(generation)
        opened = self._opened
        if opened is None or opened.generation != generation:
            description = describe(generation)
            index = open_index(generation, description)
            opened = _Opened(generation, description, Documents(description), index, ())
        if opened.commit != commit:
            opened.index.reload()
        return replace(opened, commit=commit)


@cache
def reader_of(path: str) -> IndexReader:
    """Return this process's reader of the index at a path: to open one takes longer than to search."""
    return IndexReader(IndexFolder(Path(path)))


def _parsed(opened: _Opened, query: str) -> tantivy.Query:
    try:
        parsed = opened.index.parse_query(query, list(opened.description.text))
    except ValueError as error:
        raise DataError(
            f"the query {query!r} can't be parsed: {error}",
            hint=f"write words, 'a phrase', column:value, column:[1 TO 9], AND, OR, NOT; columns are "
            f"{', '.join(opened.description.types())}",
        ) from error
    own = tantivy.Query.term_query(opened.index.schema, BUCKET, OWN_BUCKET, "basic")
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, parsed), (tantivy.Occur.MustNot, own)])


def _stored(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bytes:
    return bytes(searcher.doc(address).get_first(ROW) or b"")


def _last_commit(generation: Path) -> tuple[int, ...]:
    """What changes with each commit: the file that lists segments is replaced by a new one."""
    found = (generation / "meta.json").stat()
    return found.st_ino, found.st_mtime_ns, found.st_size
