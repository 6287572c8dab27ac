"""The last records of a topic, as far as checks look at them: no payload is kept."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Whole = tuple[str, str]  # what is shown of a value, and a hash where that is not all of it


@dataclass(frozen=True)
class SampledRecord:
    """A record: when the log took it in (`at`), when it happened (`time`), and what it is known by.

    `key` and `id` are as they are shown: of one that is cut, `key_hash` or `id_hash` is of the whole.
    `writer` is the flow that made it, and the partition of its origin. `schema` is the number that it names
    in the registry, `fields` are those at its top, `error` says why the declared class can't decode it.
    """

    partition: int
    offset: int
    at: float
    key: str | None = None
    id: str | None = None
    time: float | None = None
    schema: int | None = None
    fields: tuple[str, ...] = ()
    error: str = ""
    key_hash: str = ""
    id_hash: str = ""
    writer: str = ""

    @property
    def whole_key(self) -> Whole | None:
        return None if self.key is None else (self.key, self.key_hash)

    @property
    def whole_id(self) -> Whole | None:
        return None if self.id is None else (self.id, self.id_hash)

    @property
    def place(self) -> str:
        return f"{self.partition}@{self.offset}"


@dataclass(frozen=True)
class TopicSample:
    """The last records of each partition, by partition and offset; `unknown` are schemas nobody knows."""

    topic: str
    records: tuple[SampledRecord, ...] = ()
    unknown: tuple[int, ...] = ()
    most: int = 500  # records of a partition

    @cached_property
    def partitions(self) -> dict[int, list[SampledRecord]]:
        found: dict[int, list[SampledRecord]] = {}
        for each in self.records:
            found.setdefault(each.partition, []).append(each)
        return found

    @cached_property
    def recent(self) -> list[SampledRecord]:
        """The records of a span of time that the sample has in full, whatever partition they are in."""
        full = [each[0].at for each in self.partitions.values() if len(each) >= self.most]
        since = max(full, default=float("-inf"))
        return [each for each in self.records if each.at >= since]

    def duplicates(self) -> dict[Whole, int]:
        """Return the ids that more than one record has, with how many have them."""
        counts = Counter(each.whole_id for each in self.records if each.whole_id is not None)
        return {id: count for id, count in counts.items() if count > 1}

    def disorder(self) -> list[float]:
        """Return how many seconds each record is older than the newest before it of its writer there.

        So do flows judge: what comes by several lanes is in the order of each.
        """
        writers: dict[tuple[int, str], list[SampledRecord]] = {}
        for each in self.records:
            writers.setdefault((each.partition, each.writer), []).append(each)
        return [behind for each in writers.values() for behind in _disorder(each)]

    def ahead(self) -> list[SampledRecord]:
        """Return the records that happened more than a minute after the log took them in."""
        return [each for each in self.records if each.time is not None and each.time - each.at > 60]


def _disorder(records: list[SampledRecord]) -> Iterator[float]:
    newest = float("-inf")
    for each in records:
        if each.time is None or each.time - each.at > 60:  # those dated ahead are an illness of their own
            continue
        newest = max(newest, each.time)
        yield newest - each.time
