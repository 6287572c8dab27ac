"""What has been judged: the offset ranges whose malformed records are in the dead letters.

Flows stand at different positions in the same topic, and a malformed record goes to the dead letters once for
a pipeline. So it is written down which ranges were looked through, together with what was found there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import msgspec

from penstock.log.ranges import OffsetRanges, Range, Ranges


@dataclass(frozen=True)
class JudgedTopic:
    """The ranges of one topic; what is known of a topic is worth nothing once it was made again."""

    id: str
    ranges: OffsetRanges = field(default_factory=OffsetRanges)


@dataclass(frozen=True)
class Judged:
    """What has been judged in the topics of a pipeline."""

    topics: Mapping[str, JudgedTopic] = field(default_factory=dict)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | None) -> Self:
        return cls() if text is None else msgspec.json.decode(text, type=cls)

    def adding(self, topic: str, id: str, ranges: Ranges) -> "Judged":
        """Return this with ranges of a topic judged, too."""
        judged = JudgedTopic(id, self._ranges(topic, id).adding(ranges))
        return Judged({**self.topics, topic: judged})

    def lacking(self, topic: str, id: str, ranges: Ranges) -> dict[int, Range]:
        """Return the parts of ranges that were not judged yet."""
        return self._ranges(topic, id).lacking(ranges)

    def holds(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Say whether a record was judged."""
        return self._ranges(topic, id).holds(partition, offset)

    def _ranges(self, topic: str, id: str) -> OffsetRanges:
        known = self.topics.get(topic)
        return known.ranges if known is not None and known.id == id else OffsetRanges()
