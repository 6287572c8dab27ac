"""Positions that are in a topic that had the same name: of the one that there is, they say nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from penstock.errors import PenstockError
from penstock.log.client import asking
from penstock.log.identity import is_foreign, marked_id
from penstock.ops.lag.lags import Lags
from penstock.ops.topic_statuses import Partition, offsets


@dataclass(frozen=True)
class Foreign:
    """Recognises such positions: by the topic's id that they name, or because they are beyond its end."""

    ids: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)

    @classmethod
    def among(cls, lags: Lags, positions: Sequence[TopicPartition]) -> "Foreign":
        """Ask for what is needed to know which of some positions are foreign."""
        named = {each.topic for each in positions if marked_id(each) and lags.kept(each)}
        return cls(_ids(lags, named), _ends(lags, _beyond(lags, positions)))

    def __contains__(self, position: TopicPartition) -> bool:
        end = self.ends.get((position.topic, position.partition))
        is_beyond = end is not None and position.offset > end
        return is_beyond or is_foreign(position, self.ids.get(position.topic))


def _beyond(lags: Lags, positions: Iterable[TopicPartition]) -> set[Partition]:
    """Partitions with positions beyond the ends that were seen: mostly, more was written and read since."""
    return {
        (each.topic, each.partition)
        for each in positions
        if (kept := lags.kept(each)) is not None and each.offset > kept.end
    }


def _ends(lags: Lags, places: Iterable[Partition]) -> dict[Partition, int]:
    try:
        with asking("read the ends of topics", lags.broker.listener):
            return offsets(lags.broker, dict.fromkeys(places, OffsetSpec.latest()))
    except PenstockError:
        return {}  # a position is believed until it is known to be wrong


def _ids(lags: Lags, names: set[str]) -> dict[str, str]:
    try:
        return lags.broker.topic_ids(names) if names else {}
    except PenstockError:  # whoever may not describe a topic knows no ids, and believes positions
        return {}
