"""Offsets of a topic as a whole: what Kafka has of it, and before that its archive."""

from collections.abc import Mapping
from datetime import datetime

from penstock.log.archive.history import History, find_history
from penstock.log.archive.segment import reached_from
from penstock.log.broker import Broker
from penstock.log.ranges import Range
from penstock.settings import Settings


class Tiers:
    """Where topics begin and end, their archives included; asked for only where Kafka has lost something."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._broker = settings, Broker(settings)

    def offsets(self, name: str) -> dict[int, Range]:
        """Return the first and the next offset of each partition of a topic."""
        return self._lowered(name, self._broker.offsets(name))

    def committed_ranges(self, name: str) -> dict[int, Range]:
        """Return the range of each partition that readers of committed events can read."""
        return self._lowered(name, self._broker.committed_ranges(name))

    def offsets_at(self, name: str, moment: datetime) -> dict[int, int]:
        """Return the first offset of each partition that was written at or after a moment, or its end."""
        found = self._broker.offsets_at(name, moment)
        history = self.history(name)
        if history is None:
            return found
        asked = int(moment.timestamp() * 1000)
        archived = {number: history.first_since(number, asked) for number in found}
        return {number: _lesser(at, archived[number]) for number, at in found.items()}

    def history(self, name: str) -> History | None:
        """Return the archive of a topic of which Kafka lacks the beginning; None if it is not needed."""
        lacks = any(first for first, _ in self._broker.offsets(name).values())
        return find_history(self._settings, name) if lacks else None

    def is_whole(self, name: str, start: Mapping[int, int] | None = None) -> bool:
        """Whether no record of a topic was lost from some offsets on, or from its beginning.

        What Kafka lacks, the archive has to have.
        """
        history, begin = self.history(name), start or {}
        return all(
            first <= begin.get(number, 0)
            or (history is not None and self._joins(history, number, begin.get(number, 0)))
            for number, (first, _) in self._broker.offsets(name).items()
        )

    def _joins(self, history: History, partition: int, offset: int) -> bool:
        """Whether the archive reaches from an offset to where Kafka begins, which moves meanwhile."""
        first = self._broker.offsets(history.archive.topic)[partition][0]
        return reached_from(history.segments(partition), offset) >= first

    def _lowered(self, name: str, found: dict[int, Range]) -> dict[int, Range]:
        history = find_history(self._settings, name) if any(each[0] for each in found.values()) else None
        if history is None:
            return found
        firsts = {number: history.first(number) for number in found}
        return {number: (_lesser(first, firsts[number]), end) for number, (first, end) in found.items()}


def _lesser(offset: int, other: int | None) -> int:
    return offset if other is None else min(offset, other)
