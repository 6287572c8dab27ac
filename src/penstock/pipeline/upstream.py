"""The flows that wrote what a flow reads: what they have not read yet may still come, with any time."""

import logging
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping

from penstock.errors import AuthorizationError
from penstock.identity import Identity, is_clock
from penstock.log import Broker, Groups
from penstock.log.ledger import Offsets
from penstock.pipeline.tracker import Writer
from penstock.settings import Settings
from penstock.targets.kafka.lane import read_entry

_EVERY = 1.0  # seconds between two questions
_STRANGERS = 8  # that are asked for in a second; anybody may write a header that names one
Place = tuple[str, int]
_log = logging.getLogger("penstock")


class Upstream:
    """Asks how far the flows behind writers have read, not more often than once a second.

    `writes` says whether a flow can be the writer of a topic; of others nothing more is to come, and neither
    is of those that nobody may ask for. `siblings` are the flows of the own pipeline, which are there for
    sure; others are asked for a few at a time.
    """

    def __init__(
        self, settings: Settings, writes: Callable[[str, str], bool], siblings: Container[str] = ()
    ) -> None:
        self._settings, self._writes, self._siblings = settings, writes, siblings
        self._strangers: deque[float] = deque(maxlen=_STRANGERS)  # when the last ones were asked for
        self._broker, self._groups = Broker(settings), Groups(settings)
        self._asked: dict[str, tuple[float, Mapping[Place, int] | None]] = {}
        self._ends: dict[str, Mapping[Place, int] | None] = {}

    def unread(self, topic: str, writer: Writer) -> Mapping[Place, int] | None:
        """Where that ends which a writer's flow has not read of its origin; None if that is not known."""
        if writer.flow is None or not self._writes(writer.flow, topic):
            return {}
        waiting = self._waiting(writer.flow)
        if waiting is None:
            return None
        own = (writer.origin or "", writer.number)
        return self._end_of([place for place in waiting if writer.in_lane or place == own])

    def has_read(self, flow: str, ends: Mapping[Place, int]) -> bool:
        """Whether a flow has come to these ends."""
        waiting = self._waiting(flow)
        return waiting is not None and all(waiting.get(place, end) >= end for place, end in ends.items())

    def expected(self, writers: Iterable[tuple[str, Writer]]) -> set[str]:
        """Return flows that have still to read what waited when they were first heard of.

        They write lane by lane: what one lane has brought says nothing about the others.
        """
        flows: dict[str, set[Place]] = {}
        for topic, each in writers:
            if each.flow is not None and self._writes(each.flow, topic):
                flows.setdefault(each.flow, set()).add((each.origin or "", each.number))
        return {flow for flow, heard in flows.items() if self._is_expected(flow, heard)}

    def _is_expected(self, flow: str, heard: set[Place]) -> bool:
        if flow in self._ends and not self._ends[flow]:
            return False
        waiting = self._waiting(flow)
        if waiting is None:
            return True
        first = self._ends.get(flow)
        ends = {place: end for place, end in (first or self._end_of(waiting)).items() if place not in heard}
        due = {place: end for place, end in ends.items() if place in waiting and waiting[place] < end}
        self._ends[flow] = due
        return bool(due)

    def _end_of(self, places: Iterable[Place]) -> dict[Place, int]:
        ends = {topic: self._broker.committed_end(topic) for topic in {topic for topic, _ in places}}
        return {(topic, number): ends[topic][number] for topic, number in places}

    def _waiting(self, flow: str) -> Mapping[Place, int] | None:
        """Where a flow stands in partitions that it has not read to the end; None if it has not begun."""
        now = time.monotonic()
        asked, answer = self._asked.get(flow, (0.0, {}))
        if now - asked > _EVERY and self._may_ask(flow, now):
            answer = self._ask(flow)
            self._asked[flow] = now, answer
        return answer

    def _may_ask(self, flow: str, now: float) -> bool:
        if flow in self._siblings:
            return True
        if len(self._strangers) == _STRANGERS and now - self._strangers[0] < _EVERY:
            return False
        self._strangers.append(now)
        return True

    def _ask(self, flow: str) -> Mapping[Place, int] | None:
        """Kafka forgets the positions of a group that has not moved for a week; the ledger keeps them."""
        try:
            positions = self._groups.positions(Identity(flow).group) or self._in_ledger(flow)
        except AuthorizationError as error:
            if flow not in self._asked:
                _log.warning("watermarks do not wait for flow %s: %s", flow, error)
            return {}
        return None if positions is None else self._unread(positions)

    def _in_ledger(self, flow: str) -> Offsets | None:
        """How far all lanes of a flow have written; None while one has not, or where none is known."""
        ledger = Identity(flow).ledger
        found = self._broker.partitions([ledger])
        if not found:
            return None if flow in self._siblings else {}
        least: dict[str, dict[int, int]] = {}
        for lane in range(found[ledger]):
            batch = read_entry(self._settings, flow, lane).batch
            if batch is None:
                return None
            for topic, ends in batch.end.items():
                known = least.setdefault(topic, dict(ends))
                least[topic] = {number: min(end, known.get(number, end)) for number, end in ends.items()}
        return least

    def _unread(self, positions: Offsets) -> dict[Place, int]:
        topics = [topic for topic in positions if not is_clock(topic)]
        return {
            (topic, number): positions[topic].get(number, 0)
            for topic in self._broker.partitions(topics)
            for number, (first, end) in _ends(self._broker, topic).items()
            if max(first, positions[topic].get(number, 0)) < end
        }


def _ends(broker: Broker, topic: str) -> dict[int, tuple[int, int]]:
    """Where partitions begin, and how far they can be read."""
    committed = broker.committed_end(topic)
    return {number: (first, committed[number]) for number, (first, _) in broker.offsets(topic).items()}
