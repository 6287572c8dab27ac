"""All queues: Kafka's share groups, by what the broker writes down of them."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.log.client import metadata
from penstock.ops.lag.judging import worst
from penstock.ops.lag.lags import Lags
from penstock.ops.lag.offset_commits import OffsetCommit, Place
from penstock.ops.lag.share_log import ShareLog, States
from penstock.ops.lag.share_states import TOPIC, SharePlace
from penstock.ops.lag.standing import Standing
from penstock.ops.model import GroupStatus, PartitionLag

_RECENT = 600.0  # seconds of which redeliveries are counted
_UNKNOWN = "–"  # no client can ask for the state and the members of a share group


@dataclass(frozen=True)
class QueueQuestion:
    """Asks for the queues."""

    lags: Lags
    states: ShareLog

    def answer(self) -> tuple[GroupStatus, ...]:
        """Return every share group by name."""
        broker = self.lags.broker
        if TOPIC not in metadata(broker.admin, broker.listener).topics:
            return ()
        found = self.states.read()
        names = {id: name for name, id in broker.topic_ids(self.lags.topics).items()} if found else {}
        known = {place: each for place, each in found.items() if place.topic_id in names}
        standings = [each for item in known.items() for each in self._standing(*item, names)]
        history = {
            _place(place, names): _commits(_place(place, names), each) for place, each in known.items()
        }
        lags = self.lags.of(standings, history)
        groups = sorted({place.group for place in known})
        since = time.time() - _RECENT
        return tuple(
            _status(
                group,
                tuple(lag for standing, lag in lags.items() if standing.group == group),
                _returned((each for place, each in known.items() if place.group == group), since),
            )
            for group in groups
        )

    def _standing(self, place: SharePlace, states: States, names: Mapping[str, str]) -> Iterator[Standing]:
        """Where a queue stands; before its first record it is where its topic begins."""
        topic, last = names[place.topic_id], states[-1][1]
        kept = self.lags.topics[topic].partitions.get(place.partition)
        if kept is not None:
            at = kept.first if last.position is None else last.position
            yield Standing(place.group, (topic, place.partition), at, kept, oldest=last.start)


def _place(place: SharePlace, names: Mapping[str, str]) -> Place:
    return Place(place.group, names[place.topic_id], place.partition)


def _commits(place: Place, states: States) -> list[OffsetCommit]:
    return [OffsetCommit(place, each.position, at) for at, each in states if each.position is not None]


def _returned(states: Iterable[States], since: float) -> int:
    """How many records came back since then; after 500 states of a partition, older ones are not known."""
    return sum(each.returned for some in states for at, each in some if at >= since)


def _status(group: str, lags: tuple[PartitionLag, ...], returned: int) -> GroupStatus:
    judgement = worst(each.judgement for each in lags)
    return GroupStatus(group, "share", _UNKNOWN, lags=lags, judgement=judgement, returned=returned)
