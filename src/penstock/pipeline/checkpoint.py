"""Spark's checkpoint of a flow: which offset range each batch holds, and what was committed."""

import json
from datetime import UTC, datetime

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import FlowError, LedgerError, SinkError
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.points import reach
from penstock.process.spark.java import Java

_READY = ".ready"  # behind the name of a file that is whole and not yet in its place


class Checkpoint:
    """Reads a checkpoint through Hadoop's file systems, so that it may be a folder or in a bucket."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        jvm: Java = spark._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        root = self._make_path(path)
        self._files = root.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self._read_all = jvm.org.apache.commons.io.IOUtils.toString
        self._utf8 = jvm.java.nio.charset.StandardCharsets.UTF_8

    @property
    def id(self) -> str | None:
        """The id that Spark gave the query when the checkpoint was made."""
        text = self.read("metadata")
        return None if text is None else str(json.loads(text)["id"])

    def batch(self, number: int) -> Batch:
        """Return a planned batch: where it starts and where it ends."""
        end = self._offsets(number)
        if end is None or self.id is None:
            raise FlowError(
                f"the checkpoint {self.path} has no plan of batch {number}",
                hint="files of it were deleted: bring the checkpoint back",
            )
        return Batch(self.id, number, self._start(number), end)

    def last_planned(self) -> int | None:
        """The number of the last batch that was planned."""
        return max(self._numbers("offsets"), default=None)

    def last_committed(self) -> int | None:
        """The number of the last batch that was finished."""
        return max(self._numbers("commits"), default=None)

    def planned_ranges(self, topic: str) -> dict[int, tuple[int, int]] | None:
        """The offset ranges of a topic in the last batch that was planned; None if it is in none."""
        number = self.last_planned()
        batch = None if number is None else self.batch(number)
        if batch is None or topic not in batch.end:
            return None
        start = batch.start.get(topic, {})
        return {number: (start.get(number, 0), end) for number, end in batch.end[topic].items()}

    def position(self, number: int | None = None) -> Offsets:
        """Where reading stands after a batch, the last finished one unless it is said."""
        number = self.last_committed() if number is None else number
        return {} if number is None else self._offsets(number) or {}

    def end_of(self, number: int) -> Offsets:
        """Where the batch of a number ends; before the first one, where reading began."""
        return self._offsets(number) or {} if number >= 0 else self.first_offsets()

    def roll_back(self, number: int) -> None:
        """Forget the batches behind a number: they are planned and worked on again.

        The last goes first, and commits go before plans: killed on the way, it is still a checkpoint.
        """
        for folder in ("commits", "offsets"):
            for each in reversed(self._numbers(folder)):
                if each > number:
                    self._delete(f"{folder}/{each}")
                    self._delete(f"{folder}/.{each}.crc")

    def delete(self) -> bool:
        """Delete the whole of it; False if there was none."""
        return bool(self._files.delete(self._make_path(self.path), True))

    def watermark(self, number: int | None = None) -> datetime:
        """The watermark that a batch met, the last finished one unless it is said; 1970 if there was none."""
        text = self.read(f"offsets/{self.last_committed() if number is None else number}")
        reached = 0 if text is None else json.loads(text.splitlines()[1])["batchWatermarkMs"]
        return datetime.fromtimestamp(reached / 1000, UTC)

    def refuse_misfit(self, entries: tuple[Entry, ...]) -> None:
        """Refuse a ledger with batches which this checkpoint does not have, or the other way."""
        written = [entry.batch for entry in entries if entry.batch is not None]
        committed = self.last_committed()
        if not written and committed is not None:
            raise LedgerError(
                f"the checkpoint {self.path} has finished batch {committed}, the sink's ledger knows of none",
                hint="the ledger was lost with its target, or the sink is another one: find it, or make the "
                "target again from the log with `penstock rebuild`",
            )
        for batch in written:
            self._refuse(batch)

    def _refuse(self, batch: Batch) -> None:
        if batch.checkpoint != self.id and self._goes_on_behind(batch):
            return
        if batch.checkpoint != self.id:
            seen = f"is of {self.id[:8]}" if self.id else "is empty"
            raise LedgerError(
                f"the sink has written {batch}, the checkpoint {self.path} {seen}",
                hint="the checkpoint was lost or replaced: bring it back, or let a flow without state go on "
                "from the ledger with `penstock run --from-ledger`; if the flow was forgotten on purpose, "
                "let it begin anew with `--begin-anew`",
            )
        planned = self._offsets(batch.number)
        if (self.last_planned() or 0) < batch.number or planned not in (None, batch.end):
            raise LedgerError(
                f"the sink has written {batch}, which the checkpoint {self.path} does not have",
                hint="an older checkpoint was restored, or its newest files were deleted: bring them back, "
                "or let a flow without state go on from the ledger with `penstock run --from-ledger`",
            )

    def _goes_on_behind(self, batch: Batch) -> bool:
        """Whether it began to read where another checkpoint's last batch ended, and has not written yet."""
        first = self.first_offsets()
        return bool(first) and all(
            first.get(topic, {}).get(partition) == offset
            for topic, partitions in batch.end.items()
            for partition, offset in partitions.items()
        )

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None if there is none; somebody may be replacing it just now."""
        for each in (name, name + _READY, name):
            found = self._text(each)
            if found is not None:
                return found
        return None

    def _text(self, name: str) -> str | None:
        try:
            stream = self._files.open(self._make_path(f"{self.path}/{name}"))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception.toString()):
                return None
            raise
        try:
            return str(self._read_all(stream, self._utf8))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file of our own beside Spark's; whenever it is killed, it is the old one or the new one.

        File systems don't replace a file by another in one step: in between, the new one is there as ready.
        """
        self._put_ready(name)
        draft = self._make_path(f"{self.path}/{name}.draft")
        stream = self._files.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        self._rename(draft, f"{name}{_READY}")
        self._put_ready(name)

    def _put_ready(self, name: str) -> None:
        """Put a file that is ready in its place; one that a kill has left, too."""
        ready = self._make_path(f"{self.path}/{name}{_READY}")
        if self._files.exists(ready):
            self._delete(name)
            reach("checkpoint.replacing", name)
            self._rename(ready, name)

    def _rename(self, source: Java, name: str) -> None:
        if not self._files.rename(source, self._make_path(f"{self.path}/{name}")):
            raise SinkError(f"{self.path}/{name} can't be written", hint="see to its disk or bucket")

    def _delete(self, name: str) -> None:
        self._files.delete(self._make_path(f"{self.path}/{name}"), False)

    def _start(self, number: int) -> Offsets:
        before = self._offsets(number - 1) if number else None
        return before if before is not None else self.first_offsets()

    def first_offsets(self) -> Offsets:
        """Where Spark began to read, source by source; nothing if it has not begun."""
        found: dict[str, dict[int, int]] = {}
        for source in self._numbers("sources"):
            text = self.read(f"sources/{source}/0")
            if text is not None:
                found |= _offsets(text.lstrip("\0").splitlines()[1])
        return found

    def _offsets(self, number: int) -> Offsets | None:
        text = self.read(f"offsets/{number}")
        if text is None:
            return None
        found: dict[str, dict[int, int]] = {}
        try:
            for line in text.splitlines()[2:]:
                found |= _offsets(line)
        except ValueError as error:
            raise FlowError(
                f"offsets/{number} of the checkpoint {self.path} is damaged: {error}",
                hint="bring the file back from a copy of the checkpoint",
            ) from error
        return found

    def _numbers(self, folder: str) -> list[int]:
        place = self._make_path(f"{self.path}/{folder}")
        if not self._files.exists(place):
            return []
        names = [each.getPath().getName() for each in self._files.listStatus(place)]
        return sorted(int(name) for name in names if name.isdigit())


def _offsets(line: str) -> dict[str, dict[int, int]]:
    """A source without progress has a dash for its offsets."""
    if line == "-":
        return {}
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(line).items()
    }
