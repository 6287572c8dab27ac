"""How an archive is: what it holds, how far it is behind, and what Kafka still has."""

import time
from dataclasses import dataclass

from penstock.log import Broker
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.history import History
from penstock.settings import Settings


@dataclass(frozen=True)
class ArchiveStatus:
    """An archive in figures; `archived`, `behind` and `kafka` are offsets, `seconds` since its last word."""

    topic: str
    to: str
    state: str
    segments: int
    archived: int
    behind: int
    kafka: int
    keep: str
    every: str
    seconds: float | None
    process: str
    error: str


def status(settings: Settings, topic: str) -> ArchiveStatus:
    """Return how the archive of a topic is."""
    known = Declarations(settings)
    archive, state = known.get(topic), known.state(topic)
    history = History.open(archive, settings)
    kept = Broker(settings).committed_ranges(topic)
    segments = {number: history.segments(number) for number in kept}
    ends = {
        number: max((each.next for each in segments[number]), default=archive.begin(number))
        for number in kept
    }
    return ArchiveStatus(
        topic,
        archive.to,
        state.state,
        sum(map(len, segments.values())),
        sum(each.next - each.first for some in segments.values() for each in some),
        sum(max(0, end - ends[number]) for number, (_, end) in kept.items()),
        sum(end - first for first, end in kept.values()),
        archive.keep,
        archive.every,
        round(time.time() - state.at, 1) if state.at else None,
        state.process,
        state.error,
    )
