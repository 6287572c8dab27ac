"""The oldest unread event of groups: since when it waits, or that there is none that can be read."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.ops.glance import Glance
from penstock.ops.topic_statuses import Partition
from penstock.settings import Settings

Stand = tuple[Partition, int]  # a partition and an offset


@dataclass(frozen=True)
class Unread:
    """The Unix time of an event; None where nobody can read any: what is left was aborted, is not committed
    yet, or are markers of transactions."""

    written: float | None


def unread(settings: Settings, stands: Iterable[Stand]) -> dict[Stand, Unread]:
    """Return what is to be read next at places; those that nobody answers for are left out.

    Groups may stand at different offsets of a partition: each round reads every partition once.
    """
    rounds: dict[Partition, list[int]] = {}
    for place, offset in sorted(set(stands)):
        rounds.setdefault(place, []).append(offset)
    found: dict[Stand, Unread] = {}
    if not rounds:
        return found
    with Glance(settings) as glance:
        for number in range(max(map(len, rounds.values()))):
            asked = {place: each[number] for place, each in rounds.items() if len(each) > number}
            for place, records in glance.records(asked).items():
                written = records[0].timestamp()[1] / 1000 if records else None
                found[place, asked[place]] = Unread(written)
    return found
