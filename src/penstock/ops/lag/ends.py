"""Where partitions ended at moments of the past: the first offset that was written then or later."""

from collections.abc import Iterable
from itertools import pairwise

from confluent_kafka.admin import OffsetSpec

from penstock.log import Broker
from penstock.ops.lag.offset_commits import OffsetCommit
from penstock.ops.topic_statuses import Partition, offsets

_MOST = 12  # commits of a group in a partition whose lag is looked up
Moment = tuple[Partition, int]  # milliseconds of Unix time


def thinned(commits: list[OffsetCommit], most: int = _MOST) -> list[OffsetCommit]:
    """Return a few commits over the whole time, the first and the last among them, and the last fall back."""
    if len(commits) <= most:
        return commits
    kept = {round(number * (len(commits) - 1) / (most - 1)) for number in range(most)}
    back = [number for number, (one, other) in enumerate(pairwise(commits)) if _fell(one, other)]
    kept |= {back[-1], back[-1] + 1} if back else set()
    return [commits[number] for number in sorted(kept)]


def past_ends(broker: Broker, moments: Iterable[Moment]) -> dict[Moment, int]:
    """Return the ends of partitions at moments; those after which nothing was written are left out.

    A question has each partition once: there are as many questions as moments of the partition with most.
    """
    rounds: dict[Partition, list[int]] = {}
    for place, at in sorted(set(moments)):
        rounds.setdefault(place, []).append(at)
    found: dict[Moment, int] = {}
    for number in range(max(map(len, rounds.values()), default=0)):
        asked = {place: times[number] for place, times in rounds.items() if len(times) > number}
        specs = {place: OffsetSpec.for_timestamp(at) for place, at in asked.items()}
        for place, offset in offsets(broker, specs).items():
            if offset >= 0:
                found[place, asked[place]] = offset
    return found


def _fell(one: OffsetCommit, other: OffsetCommit) -> bool:
    return (other.position or 0) < (one.position or 0)
