"""What Kafka lacks of offset ranges of topics, and their archives have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.log import Broker
from penstock.log.archive.history import History, find_history
from penstock.log.archive.segment import Part
from penstock.log.ledger import Offsets
from penstock.log.ranges import Range
from penstock.settings import Settings

_EARLIEST = -2  # as Spark spells it


@dataclass
class Lacking:
    """How a batch is divided: `parts` of archives by topic and partition, and Kafka's from `start` to `end`.

    What is archived is read from the archive, though Kafka may have it, too: the archive does not move while
    Spark reads.
    """

    end: Offsets | None
    start: dict[str, dict[int, int]] = field(default_factory=dict)
    parts: dict[str, dict[int, list[Part]]] = field(default_factory=dict)
    histories: dict[str, History] = field(default_factory=dict)

    @classmethod
    def found(
        cls, settings: Settings, topics: Sequence[str], start: Offsets | None, end: Offsets | None
    ) -> "Lacking | None":
        """Return how a batch is divided; None if Kafka has all of it, or nobody has what it lacks."""
        made, broker = cls(end), Broker(settings)
        for name in topics:
            kept, begin = broker.offsets(name), (start or {}).get(name)
            made.start[name] = dict(begin) if begin else dict.fromkeys(kept, _EARLIEST)
            lacks = any((begin or {}).get(number, 0) < first for number, (first, _) in kept.items())
            history = find_history(settings, name) if lacks else None
            if history is not None:
                made.histories[name] = history
                made._divide(name, kept, begin)
        return made if made.histories else None

    def _divide(self, name: str, kept: Mapping[int, Range], begin: Mapping[int, int] | None) -> None:
        history, wanted = self.histories[name], (self.end or {}).get(name, {})
        for number, (first, last) in kept.items():
            at = history.first(number) if begin is None else begin.get(number, first)
            if at is None or at >= first:
                continue
            end = wanted.get(number, last)
            parts = history.parts(number, at, end)
            if parts:
                self.parts.setdefault(name, {})[number] = parts
            self._go_on_in_kafka(name, number, parts[-1].next if parts else at, first)

    def _go_on_in_kafka(self, name: str, partition: int, offset: int, first: int) -> None:
        """Read the rest from Kafka; where nothing is left, an empty range that Kafka has is as good."""
        end = None if self.end is None else self.end.get(name, {}).get(partition)
        if self.end is None or end is None or offset < end:
            self.start[name][partition] = offset
            return
        self.start[name][partition] = max(first, end)
        self.end = {**self.end, name: {**self.end[name], partition: max(first, end)}}
