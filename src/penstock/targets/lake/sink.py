"""The sink: executors write a batch's files, and the driver commits them and the ledger's entry at once."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock import points
from penstock.errors import PenstockError, SinkError, TargetError
from penstock.log.ledger import Batch, Entry
from penstock.targets.lake import maintenance
from penstock.targets.lake.columns import DELETED, columns_of
from penstock.targets.lake.contents import active_files
from penstock.targets.lake.delta import ConflictError, asking, check_installed, is_table, load, properties
from penstock.targets.lake.files import StagedFile
from penstock.targets.lake.ledger import Ledger, flush_folder, link
from penstock.targets.lake.merge import Merge, append, commit_nothing
from penstock.targets.lake.prepared import prepare
from penstock.targets.lake.staging import Staging, stage
from penstock.targets.lake.statistics import known_columns
from penstock.targets.lake.table import DeclaredTable
from penstock.targets.sink import BeforeCommit, Guarantee, SinkOptions, nothing
from penstock.targets.tasks import task_errors

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_TRIES = 20
Work = Callable[["DeltaTable", "CommitProperties", int], None]


class LakeSink:
    """Writes the batches of one flow into a Delta table.

        table = LakeTable("/data/alerts", key="card", write="upsert")
        sink = LakeSink(table, schema, SinkOptions(settings, "fraud.alerts", lanes=4))
        sink.open()
        sink.write(rows, batch)

    As many tasks write files at the same time as there are lanes.
    """

    def __init__(self, table: DeclaredTable, schema: StructType, options: SinkOptions) -> None:
        if options.guarantee not in get_args(Guarantee):
            known = ", ".join(get_args(Guarantee))
            raise TargetError(f"guarantee is {options.guarantee!r}, expected one of {known}")
        if options.lanes < 1:
            raise TargetError(f"{table.path} has {options.lanes} lanes, expected at least 1")
        check_installed()
        self.id = options.id
        self.table = table
        self._schema = schema
        self._columns = columns_of(table, schema)
        self._merge = Merge(table.keys, tuple(self._columns.names), DELETED in schema.names)
        self._ledger = Ledger(table.root, options.id)
        self._lanes = options.lanes
        self._guarantee = options.guarantee
        self._epoch: int | None = None
        self._delta: DeltaTable | None = None
        self._compacted = 0

    def entries(self) -> tuple[Entry, ...]:
        """What the sink has written down last."""
        if not is_table(self.table.root):
            return (Entry(),)
        return (self._read()[2],)

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the sink's writer, and see that the table is there and fits."""
        self._delta = prepare(self.table, self._columns)
        last, number, entry = self._take_over(anew)
        self._epoch = entry.epoch
        delta = self._snapshot()
        files = {each["path"] for each in active_files(delta)}
        with asking("remove what was left behind", self.table.root):
            self._ledger.sweep(number, last, files)
            maintenance.remove_orphans(self.table.root, delta)
        self._compacted = self._turn(delta)
        points.reach("sink.lake.opened", self.id)
        return (entry,)

    def take_over(self) -> tuple[Entry, ...]:
        """Become the writer by the ledger alone; without a table there is none to shut out."""
        return (self._take_over(False)[2],) if is_table(self.table.root) else ()

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write a batch, unless the ledger says that it was written."""
        self._check_rows(rows)
        if not self._begin(batch):
            return False
        number = self._ledger.write(Entry(self.epoch, batch))
        folder = self._ledger.staging(number)
        files = self._stage(rows, folder, before_commit)
        points.reach("sink.lake.staged", self.id)
        self._commit_files(batch, number, folder, files)
        points.reach("sink.lake.committed", self.id)
        shutil.rmtree(folder, ignore_errors=True)
        self._maintain()
        return True

    def close(self) -> None:
        """Nothing is held between batches but what is known of the table."""
        self._epoch = None
        self._delta = None

    @property
    def epoch(self) -> int:
        """The epoch in which this process is the writer."""
        if self._epoch is None:
            raise SinkError(f"sink {self.id!r} is not open", hint="call open() before write()")
        return self._epoch

    def _take_over(self, anew: bool) -> tuple[int | None, int, Entry]:
        """Commit an entry of a new epoch; return the number before it, its own, and the entry."""
        for _ in range(_TRIES):
            delta, last, found = self._read(anew=anew)
            entry = Entry(found.epoch + 1, None if anew else found.batch)
            number = self._ledger.write(entry)
            try:
                with asking("take the sink over", self.table.root):
                    commit_nothing(delta, properties({self.id: number}))
            except ConflictError:
                self._ledger.remove(number)
                continue
            self._ledger.remove(last)
            return last, number, entry
        raise self._busy()

    def _begin(self, batch: Batch) -> bool:
        """Say whether the batch is to be written; at most once, it counts as written from here on."""
        entry = self._current()
        due = self._guarantee == "at-least-once" or entry.is_due(batch)
        if due and self._guarantee == "at-most-once":
            number = self._ledger.write(Entry(self.epoch, batch))
            self._commit(number, lambda delta, given, _: commit_nothing(delta, given), batch)
        return due

    def _stage(self, rows: DataFrame, folder: Path, before_commit: BeforeCommit) -> list[StagedFile]:
        with asking("make a folder for files", self.table.root):
            folder.mkdir()
        bounded = known_columns(self._snapshot().metadata().configuration, self._columns)
        given = Staging(self.id, str(folder), bounded, self._lanes)
        staging = stage(rows, self.table, self._columns, given)
        try:
            with task_errors():
                files = [StagedFile(*row) for row in staging.collect()]
                before_commit(staging)
        except PenstockError:
            self._current()  # a successor removes our files: then its taking over is the cause to report
            raise
        return files

    def _commit_files(self, batch: Batch, number: int, folder: Path, files: list[StagedFile]) -> None:
        paths = [folder / each.name for each in files]

        def work(delta: "DeltaTable", given: "CommitProperties", number: int) -> None:
            if self.table.write == "upsert" and files:
                self._merge.run(delta, paths, given, (self.id, number))
            else:
                append(delta, files, given)

        if self.table.write == "append":
            self._link(folder, paths)
        points.reach("sink.lake.before-commit", self.id)
        self._commit(number, work, None if self._guarantee == "at-most-once" else batch)

    def _link(self, folder: Path, paths: list[Path]) -> None:
        """Bring files into the table's folder, where no reader looks for what is not in the log."""
        try:
            names = [self.table.root / path.relative_to(folder) for path in paths]
            for path, name in zip(paths, names, strict=True):
                link(path, name)
            for parent in {self.table.root, *(name.parent for name in names)}:
                flush_folder(parent)
        except OSError as error:
            self._current()
            raise SinkError(f"table {self.table.path!r}: can't link a file: {error}") from error

    def _commit(self, number: int, work: Work, batch: Batch | None) -> None:
        """Commit an entry with its work, unless the batch is written; an unheard end is in the ledger."""
        given = properties({self.id: number}, retries=0 if self.table.write == "upsert" else None)
        for _ in range(_TRIES):
            delta, last, entry = self._read()
            if last == number:
                return
            entry.refuse_older(self.epoch, self.id)
            if batch is not None and self._guarantee != "at-least-once" and not entry.is_due(batch):
                return
            try:
                with asking("commit a batch", self.table.root):
                    work(delta, given, number)
            except ConflictError:
                continue
            self._ledger.remove(last)
            return
        raise self._busy()

    def _current(self) -> Entry:
        """Return the ledger's entry, unless it is another writer's."""
        _, _, entry = self._read()
        entry.refuse_older(self.epoch, self.id)
        return entry

    def _read(self, *, anew: bool = False) -> "tuple[DeltaTable, int | None, Entry]":
        """Return the table as it is now, with the number and the entry that count there."""
        for _ in range(_TRIES):
            delta = self._snapshot()
            number = delta.transaction_version(self.id)
            try:
                return (delta, *self._ledger.read(delta, anew=anew))
            except PenstockError:
                if self._snapshot().transaction_version(self.id) == number:
                    raise  # it is missing indeed, and was not removed because another one counts by now
        raise self._busy()

    def _snapshot(self) -> "DeltaTable":
        if self._delta is None:
            self._delta = load(self.table.root)
        with asking("read its log", self.table.root):
            self._delta.update_incremental()
        return self._delta

    def _maintain(self) -> None:
        """Compact each time that the table has seen as many commits as are declared."""
        delta = self._snapshot()
        if self.table.compact and self._turn(delta) > self._compacted:
            maintenance.maintain(self.table, delta)
            self._compacted = self._turn(self._snapshot())

    def _turn(self, delta: "DeltaTable") -> int:
        return delta.version() // self.table.compact if self.table.compact else 0

    def _busy(self) -> SinkError:
        return SinkError(
            f"table {self.table.path!r}: other commits came first {_TRIES} times",
            hint="let fewer others write it; the batch is written again",
        )

    def _check_rows(self, rows: DataFrame) -> None:
        seen = {field.name: field.dataType.simpleString() for field in rows.schema}
        for field in self._schema:
            expected, found = field.dataType.simpleString(), seen.get(field.name, "missing")
            if found != expected:
                raise TargetError(
                    f"{self.table.path}: column {field.name!r} of the rows is {found}, expected {expected}",
                    hint="the flow returns other columns than it was described with",
                )
