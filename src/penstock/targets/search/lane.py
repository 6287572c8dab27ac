"""The one lane of an index: a commit of tantivy holds the documents and the entry."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import tantivy
from pyspark.sql import DataFrame

from penstock.log.ledger import Entry
from penstock.process.columns.naming import quoted
from penstock.targets.lanes import spread_by
from penstock.targets.search.description import KEY, Description
from penstock.targets.search.documents import Documents
from penstock.targets.search.engine import asking, open_index
from penstock.targets.search.folder import IndexFolder, describe
from penstock.targets.search.ledger import entries, put_entry

_HEAP = 64 * 1024 * 1024  # bytes of documents that are not on the disk yet


class SearchLane:
    """Holds the index's lock from opening to closing."""

    def __init__(self, folder: IndexFolder, description: Description, sink: str, wait: timedelta) -> None:
        self._sink, self._documents = sink, Documents(description)
        self._writer: tantivy.IndexWriter | None = None
        self._lock = folder.locked(f"sink {sink!r}", wait)
        try:
            generation = folder.current()
            describe(generation).check_same(description, str(folder.path))
            with asking("open"):
                self._index = open_index(generation, description)
                self.entry = entries(self._index).get(sink, Entry())
        except BaseException:
            self._lock.release()
            raise

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None:
        """Commit rows and entry; what is broken off leaves nothing."""
        with asking("open for writing"):
            writer = self._writer = self._writer or self._index.writer(_HEAP, num_threads=1)
            # What a killed commit has left is in the way of its second try, whose files have the same names.
            writer.garbage_collect_files()
        try:
            for batch in rows:
                self._put(writer, batch)
            with asking("commit"):
                put_entry(writer, self._sink, entry)
                writer.commit()
        except BaseException:
            with suppress(ValueError):  # a writer that has died has nothing to roll back
                writer.rollback()
            raise
        self.entry = entry

    def close(self) -> None:
        """Let merges of small segments end, or there would be more of them with every batch."""
        writer, self._writer = self._writer, None
        try:
            with suppress(ValueError):  # the commit stands; the next writer merges what this one could not
                if writer is not None:
                    writer.wait_merging_threads()
        finally:
            self._lock.release()

    def _put(self, writer: tantivy.IndexWriter, batch: pa.RecordBatch) -> None:
        changes = self._documents.changes(batch)
        with asking("take rows"):
            for key, document in changes:
                writer.delete_documents_by_term(KEY, key)
                if document is not None:
                    writer.add_document(document)


@dataclass(frozen=True)
class SearchLanes:
    """An index has one writer, and so one lane."""

    path: str
    description: Description
    sink: str
    wait: timedelta
    kind: str = "search"

    def prepare(self, wanted: int) -> int:
        self._folder.prepare(self.description, f"sink {self.sink!r}", self.wait)
        return 1

    def read(self) -> tuple[Entry, ...]:
        if self._folder.pointer() is None:
            return ()
        with asking("open"):
            found = entries(open_index(self._folder.current(), self.description)).get(self.sink)
        return () if found is None else (found,)

    def open(self, number: int) -> SearchLane:
        return SearchLane(self._folder, self.description, self.sink, self.wait)

    def spread(self, rows: DataFrame, count: int) -> DataFrame:
        kept = (*self.description.types(), "_order", "_deleted")
        chosen = rows.select(*(quoted(name) for name in rows.columns if name in kept))
        return spread_by(chosen, count, [quoted(name) for name in self.description.key])

    @property
    def _folder(self) -> IndexFolder:
        return IndexFolder(Path(self.path))
