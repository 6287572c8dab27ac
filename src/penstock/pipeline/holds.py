"""Quiet writers, and how far a watermark may go without them, because what they bring may be on its way.

A busy flow is never quite at the end of what it reads, so that its lag alone says nothing. A quiet writer is
looked at in turns: when its flow has read what was there at the beginning of a turn, and all that this
brought has been read here, nothing older than that beginning can come of it. So the watermark may go as far
as it could have gone then without the writer, and the next turn begins.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.log.ledger import Offsets
from penstock.pipeline.tracker import Named, Writer
from penstock.pipeline.upstream import Place, Upstream

Ends = Callable[[str], Mapping[int, int]]  # where the partitions of a topic end now


@dataclass
class Hold:
    """What has to be read until a turn is over: by the writer's flow, and then of its partition here."""

    topic: str
    writer: Writer
    upstream: Mapping[Place, int] | None
    began: float
    allowed: int | None = None  # how far the watermark could go then
    here: int | None = None

    @property
    def reason(self) -> str:
        """Say what is waited for."""
        if self.here is None:
            return f"what {self.writer.flow} has not read yet"
        return f"the end of {self.topic}[{self.writer.partition}], where a transaction may be undecided"


@dataclass
class Holds:
    """The turns of quiet writers; `look` is to be called about once a second."""

    upstream: Upstream
    ends: Ends
    allowed: dict[Named, int] = field(default_factory=dict)  # by the last turn of each writer that is over
    _turns: dict[Named, Hold] = field(default_factory=dict)

    def look(self, quiet: Iterable[Named], allowed: int | None, position: Offsets, now: float) -> None:
        """End the turns that are over, and begin those that are due."""
        names, ends = set(quiet), _Once(self.ends)
        self._turns = {each: self._turns[each] for each in names & {*self._turns}}
        self.allowed = {each: self.allowed[each] for each in names & {*self.allowed}}
        for each in names:
            hold = self._turns.get(each) or self._begin(*each, allowed, now)
            if self._is_over(hold, position, ends):
                if hold.allowed is not None:
                    self.allowed[each] = hold.allowed
                hold = self._begin(*each, allowed, now)
            self._turns[each] = hold

    def reasons(self, since: float) -> set[str]:
        """Say what those turns wait for that have gone on since then."""
        return {hold.reason for hold in self._turns.values() if hold.began <= since}

    def _begin(self, topic: str, name: str, allowed: int | None, now: float) -> Hold:
        writer = Writer.parse(name)
        return Hold(topic, writer, self.upstream.unread(topic, writer), now, allowed)

    def _is_over(self, hold: Hold, position: Offsets, ends: Ends) -> bool:
        if hold.upstream is None:  # nothing was known of the flow
            hold.upstream = self.upstream.unread(hold.topic, hold.writer)
        if hold.here is None and self._has_read(hold):
            hold.here = ends(hold.topic).get(hold.writer.partition, 0)
        read = position.get(hold.topic, {}).get(hold.writer.partition, 0)
        return hold.here is not None and read >= hold.here

    def _has_read(self, hold: Hold) -> bool:
        if hold.upstream is None:
            return False
        return not hold.upstream or self.upstream.has_read(str(hold.writer.flow), hold.upstream)


class _Once:
    """Asks for the ends of a topic once."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._known: dict[str, Mapping[int, int]] = {}

    def __call__(self, topic: str) -> Mapping[int, int]:
        if topic not in self._known:
            self._known[topic] = self._ends(topic)
        return self._known[topic]
