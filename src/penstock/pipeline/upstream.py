"""The flows that wrote what a flow reads: what they have not read yet may still come, with any time."""

import time
from collections.abc import Iterable, Mapping

from penstock.log import Broker, Groups
from penstock.log.ledger import Offsets
from penstock.pipeline.state import CLOCKS
from penstock.pipeline.tracker import Writer
from penstock.settings import Settings
from penstock.sinks.lane import ledger_topic

_EVERY = 1.0  # seconds between two questions
Place = tuple[str, int]


class Upstream:
    """Asks how far the flows behind writers have read, not more often than once a second."""

    def __init__(self, settings: Settings) -> None:
        self._broker, self._groups = Broker(settings), Groups(settings)
        self._asked: dict[str, tuple[float, Mapping[Place, int] | None]] = {}
        self._ends: dict[str, Mapping[Place, int] | None] = {}

    def behind(self, writer: Writer) -> bool:
        """Whether more may come of a writer: its flow has not read all of what it makes rows of."""
        if writer.flow is None:
            return False
        waiting = self._waiting(writer.flow)
        if waiting is None or writer.in_lane:
            return waiting is None or bool(waiting)
        return (writer.origin, writer.number) in waiting

    def expected(self, writers: Iterable[Writer]) -> bool:
        """Whether a flow has still to read what waited when it was first heard of, and nothing was heard of.

        It writes lane by lane: what one lane has brought says nothing about the others.
        """
        flows: dict[str, set[Place]] = {}
        for each in writers:
            if each.flow is not None:
                flows.setdefault(each.flow, set()).add((each.origin or "", each.number))
        return any(self._is_expected(flow, heard) for flow, heard in flows.items())

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

    def _end_of(self, waiting: Mapping[Place, int]) -> dict[Place, int]:
        ends = {topic: self._broker.committed_end(topic) for topic, _ in waiting}
        return {(topic, number): ends[topic][number] for topic, number in waiting}

    def _waiting(self, flow: str) -> Mapping[Place, int] | None:
        """Where a flow stands in partitions that it has not read to the end; None if it has not begun."""
        now = time.monotonic()
        asked, answer = self._asked.get(flow, (now - 2 * _EVERY, None))
        if now - asked > _EVERY:
            answer = self._ask(flow)
            self._asked[flow] = now, answer
        return answer

    def _ask(self, flow: str) -> Mapping[Place, int] | None:
        positions = self._groups.positions(f"penstock.{flow}")
        topics = self._broker.topics([*positions, ledger_topic(flow)])
        if not positions and ledger_topic(flow) in topics:
            return None
        return self._unread({name: each for name, each in positions.items() if name in topics})

    def _unread(self, positions: Offsets) -> dict[Place, int]:
        return {
            (topic, number): positions[topic].get(number, 0)
            for topic in positions
            if not topic.startswith(CLOCKS)
            for number, (first, end) in _ends(self._broker, topic).items()
            if max(first, positions[topic].get(number, 0)) < end
        }


def _ends(broker: Broker, topic: str) -> dict[int, tuple[int, int]]:
    """Where partitions begin, and how far they can be read."""
    committed = broker.committed_end(topic)
    return {number: (first, committed[number]) for number, (first, _) in broker.offsets(topic).items()}
