"""What has been judged: the offset ranges whose malformed records are in the dead letters.

Flows stand at different positions in the same topic, and a malformed record goes to the dead letters once for
a pipeline. So it is written down which ranges were looked through, together with what was found there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import msgspec

from penstock.log.ranges import OffsetRanges, Ranges


@dataclass(frozen=True)
class JudgedTopic:
    """The ranges of one topic that a decoder has judged; of a topic that was made again nothing is known.

    Another decoder looks again: what it can't decode may have been decoded before, and the other way round.
    `earlier` are ranges in which letters of earlier decoders may be.
    """

    id: str
    decoder: str = ""
    ranges: OffsetRanges = field(default_factory=OffsetRanges)
    earlier: OffsetRanges = field(default_factory=OffsetRanges)

    def by(self, decoder: str) -> "JudgedTopic":
        """Return what is known when another decoder begins to judge."""
        if decoder == self.decoder:
            return self
        return JudgedTopic(self.id, decoder, OffsetRanges(), self.earlier.uniting(self.ranges))


@dataclass(frozen=True)
class Decoder:
    """What judges a topic: the topic by its id, and the code by a fingerprint."""

    topic_id: str
    code: str


@dataclass(frozen=True)
class Judged:
    """What has been judged in the topics of a pipeline."""

    topics: Mapping[str, JudgedTopic] = field(default_factory=dict)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | None) -> Self:
        return cls() if text is None else msgspec.json.decode(text, type=cls)

    def adding(self, topic: str, by: Decoder, ranges: Ranges) -> "Judged":
        """Return this with ranges of a topic judged, too."""
        known = self.known(topic, by)
        judged = JudgedTopic(known.id, known.decoder, known.ranges.adding(ranges), known.earlier)
        return Judged({**self.topics, topic: judged})

    def known(self, topic: str, by: Decoder) -> JudgedTopic:
        """Return what is known of a topic, as its decoder sees it."""
        found = self.topics.get(topic)
        if found is None or found.id != by.topic_id:
            return JudgedTopic(by.topic_id, by.code)
        return found.by(by.code)
