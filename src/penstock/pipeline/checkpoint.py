"""Spark's checkpoint of a flow: which offset range each batch holds, and what was committed."""

import json
import time
from datetime import UTC, datetime

from penstock.errors import FlowError, LedgerError
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.pipeline.folder import Folder


class Checkpoint(Folder):
    """Reads what Spark has written down of a flow, and keeps files of ours beside it."""

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
                    self.remove(f"{folder}/{each}")
                    self.remove(f"{folder}/.{each}.crc")

    def last_within(self, position: Offsets) -> int:
        """The last finished batch that ends at or before a position everywhere; -1 if there is none."""
        topics = {*position}
        for number in reversed(self._numbers("commits")):
            end = {topic: each for topic, each in self.position(number).items() if topic in topics}
            if is_within(end, position):
                return number
        return -1

    def pin(self, end: Offsets, pattern: str) -> None:
        """Plan the next batch so that it ends just there: Spark takes it for one that was interrupted.

        What is not in `end` stays where it is. `pattern` is the plan of any batch, for Spark's settings.
        """
        last = self.last_committed()
        before = self._source_lines(last)
        version, metadata, *_ = pattern.splitlines()
        planned = json.loads(metadata) | {
            "batchWatermarkMs": self._next_watermark(last),
            "batchTimestampMs": int(time.time() * 1000),
        }
        lines = [_pinned(line, end) for line in before]
        number = 0 if last is None else last + 1
        self.write(f"offsets/{number}", "\n".join([version, json.dumps(planned), *lines]))

    def pattern(self) -> str | None:
        """The plan of the last batch, as Spark wrote it."""
        number = self.last_planned()
        return None if number is None else self.read(f"offsets/{number}")

    def _source_lines(self, number: int | None) -> list[str]:
        """Where each source stands after a batch, in Spark's order, or where it began."""
        texts = {source: self.read(f"sources/{source}/0") or "" for source in self._numbers("sources")}
        began = {source: text.lstrip("\0").splitlines()[1] for source, text in texts.items() if text}
        if number is None:
            return list(began.values())
        lines = (self.read(f"offsets/{number}") or "").splitlines()[2:]
        return [began.get(source, line) if line == "-" else line for source, line in enumerate(lines)]

    def _next_watermark(self, number: int | None) -> int:
        text = None if number is None else self.read(f"commits/{number}")
        return 0 if text is None else int(json.loads(text.splitlines()[1])["nextBatchWatermarkMs"])

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
        names = [str(each.getPath().getName()) for each in self._listed(folder)]
        return sorted(int(name) for name in names if name.isdigit())


def is_within(position: Offsets, other: Offsets) -> bool:
    """Whether a position is nowhere beyond another, in the topics and partitions that it has.

    >>> is_within({"a": {0: 3}}, {"a": {0: 3, 1: 5}}), is_within({"a": {0: 3, 1: 1}}, {"a": {0: 3}})
    (True, False)
    """
    return all(
        offset <= other.get(topic, {}).get(partition, 0)
        for topic, partitions in position.items()
        for partition, offset in partitions.items()
    )


def _pinned(line: str, end: Offsets) -> str:
    if line == "-":
        return line
    found = json.loads(line)
    for topic, partitions in end.items():
        if topic in found:
            found[topic] |= {str(partition): offset for partition, offset in partitions.items()}
    return json.dumps(found)


def _offsets(line: str) -> dict[str, dict[int, int]]:
    """A source without progress has a dash for its offsets; one of files has none by partition."""
    found = {} if line == "-" else json.loads(line)
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in found.items()
        if isinstance(partitions, dict)
    }
