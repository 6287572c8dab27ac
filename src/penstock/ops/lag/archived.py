"""What archives have of the events that Kafka has deleted: their readers get these from there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from penstock.log.archive.history import find_history
from penstock.log.archive.segment import Segment, gaps
from penstock.ops.lag.standing import Standing
from penstock.ops.questions import ask
from penstock.ops.topic_statuses import Partition
from penstock.settings import Settings

_PATIENCE = 6.0  # seconds for all archives


@dataclass(frozen=True)
class Archives:
    """The archives of topics; one is asked only if Kafka has deleted what a group has not read."""

    settings: Settings
    topics: frozenset[str] = frozenset()

    def known_to(self, standings: Iterable[Standing], unanswered: list[str]) -> list[Standing]:
        """Return standings that know what is archived; where nobody answers, nothing counts as lost."""
        standings = list(standings)
        places: dict[str, set[Partition]] = {}
        for topic, number in (each.partition for each in standings if each.deleted):
            if topic in self.topics:
                places.setdefault(topic, set()).add((topic, number))
        asked = {topic: partial(self._segments, topic, some) for topic, some in places.items()}
        missing: list[str] = []
        found = ask(asked, _PATIENCE, missing)
        unanswered.extend(f"what is archived of {each}" for each in missing)
        return [
            replace(each, archived=_archived(each, found.get(each.partition[0])))
            if each.deleted and each.partition[0] in places
            else each
            for each in standings
        ]

    def _segments(self, topic: str, places: Iterable[Partition]) -> dict[Partition, list[Segment]]:
        history = find_history(self.settings, topic)
        return {} if history is None else {place: history.segments(place[1]) for place in places}


def _archived(standing: Standing, found: Mapping[Partition, list[Segment]] | None) -> int:
    """How many of the offsets that Kafka has deleted unread are archived."""
    if found is None:
        return standing.deleted
    holes = gaps(found.get(standing.partition, ()), standing.position, standing.kept.first)
    return standing.deleted - sum(end - first for first, end in holes)
