"""What is known of a flow's event times: learned from the reports of its batches, or looked up in the log."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.documents import Json, JsonObject
from penstock.log import Broker, Topic
from penstock.log.ledger import Offsets
from penstock.pipeline.observed import PLACES, Observation, maxima
from penstock.pipeline.plan import Planner
from penstock.pipeline.tracker import Demand, Maxima, WatermarkTracker, Writer
from penstock.process.time.watermark import TimeLine
from penstock.process.wire.events import typed
from penstock.process.wire.source import kafka_rows

_Read = Mapping[int, int]


@dataclass(frozen=True)
class _Source:
    """What a report says of a topic: where a batch starts and ends there, and where the topic did."""

    topic: str
    start: _Read
    end: _Read
    latest: _Read
    rows: int
    report: JsonObject


@dataclass
class EventTimes:
    """Brings the highest times of writers to a tracker; `position` says up to where they are known.

    `unplanned` is set when writers have come that have no place in what is observed; `new_at` is when a flow
    was last heard of as a writer.
    """

    planner: Planner
    topics: Mapping[str, Topic[Any]]
    tracker: WatermarkTracker = field(default_factory=WatermarkTracker)
    position: dict[str, dict[int, int]] = field(default_factory=dict)
    unread: set[tuple[str, int]] = field(default_factory=set)
    unplanned: bool = False
    new_at: float = 0.0
    _observed: list[tuple[str, Observation]] = field(default_factory=list)

    def begin(self) -> None:
        """Forget what was observed: the flow is planned anew."""
        self._observed, self.unplanned = [], False

    def demand(self, demands: set[Demand]) -> bool:
        """Ask for time lines; True if there were others before, so that the plan does not observe these."""
        before = {demand.line for demand in self.tracker.demands}
        self.tracker.demands = tuple({*self.tracker.demands, *demands})
        return {demand.line for demand in self.tracker.demands} != before

    def observe(self, topic: str, rows: DataFrame) -> DataFrame:
        """Return rows of a topic whose times are observed, as far as they are asked for."""
        lines = self._lines(topic)
        places = self._places(topic) if lines else ()
        observation = Observation(f"times.{len(self._observed)}", lines, places)
        self._observed.append((topic, observation))
        return observation.of(rows)

    def hear(self, reports: Sequence[JsonObject]) -> bool:
        """Learn from the reports of batches; True if they brought events."""
        heard = [each for report in reports for each in self._sources(report)]
        last = {each.topic: each.end for each in heard}
        for each in heard:
            self._read(each, last[each.topic])
            self.note_unread(each.topic, each.end, each.latest)
        return any(each.rows for each in heard)

    def _sources(self, report: JsonObject) -> Iterator["_Source"]:
        for source in report["sources"]:
            start, end, latest = (
                _offsets(source.get(f"{name}Offset")) for name in ("start", "end", "latest")
            )
            for topic in {*end} & {*self.topics}:
                rows = int(source["numInputRows"])
                yield _Source(topic, start.get(topic, {}), end[topic], latest.get(topic, {}), rows, report)

    def catch_up(self, position: Offsets) -> None:
        """Learn the times up to where a checkpoint stands."""
        for topic, end in position.items():
            known = self.position.get(topic, {})
            if topic in self.topics and any(known.get(each, 0) < offset for each, offset in end.items()):
                self._look_up(topic, end)
                self.position[topic] = {**known, **end}

    def forget_unknown_lines(self) -> None:
        """Let topics be looked up from their beginning whose times are asked for as they never were."""
        for demand in self.tracker.demands:
            if demand.line not in self.tracker.maxima:
                self.position.pop(demand.line.source, None)

    def note_unread(self, topic: str, end: _Read, latest: _Read) -> None:
        """Note which partitions of a topic have more than was read."""
        unread = {number for number, offset in latest.items() if offset > end.get(number, 0)}
        self.unread = {place for place in self.unread if place[0] != topic}
        self.unread |= {(topic, number) for number in unread}
        self.tracker.read(topic, unread, end)

    def _read(self, heard: "_Source", last: _Read) -> None:
        """Learn the times of a batch from its report, or else look up all to where the last one ends."""
        known, end = self.position.get(heard.topic, {}), heard.end
        if all(known.get(number, -1) >= offset for number, offset in end.items()):
            return
        observed = [each for topic, each in self._observed if topic == heard.topic and each.lines]
        found = [each.read(heard.report) for each in observed]
        if all(heard.start.get(number) == known.get(number) for number in end) and None not in found:
            for each in found:
                self._learn(each or {})
        else:
            end = last
            self._look_up(heard.topic, end)
        self.position[heard.topic] = {**known, **end}

    def _look_up(self, topic: str, end: _Read) -> None:
        """Read what has not been learned once more."""
        lines = self._lines(topic)
        if lines:
            event = self.topics[topic]
            rows = self._between(topic, end)
            self._learn(maxima(typed(rows, event, self.planner.known(event)), lines))
            self.unplanned |= any(self._lacks_places(each) for name, each in self._observed if name == topic)

    def _between(self, topic: str, end: _Read) -> DataFrame:
        """The rows of a topic from where its times are known up to an end."""
        firsts = Broker(self.planner.settings).offsets(topic)
        known = self.position.get(topic, {})
        starts = {number: max(first, known.get(number, first)) for number, (first, _) in firsts.items()}
        ends = {number: max(start, end.get(number, 0)) for number, start in starts.items()}
        spark, settings = self.planner.spark, self.planner.settings
        return kafka_rows(spark, settings, [topic], streaming=False, start={topic: starts}, end={topic: ends})

    def _lacks_places(self, observation: Observation) -> bool:
        """Whether writers of it have no place although there is room."""
        heard = {writer for line in observation.lines for writer in self.tracker.maxima.get(line, {})}
        return len(observation.writers) < PLACES and not heard <= {*observation.writers}

    def _learn(self, found: Maxima) -> None:
        now, before = time.monotonic(), self.tracker.writers()
        self.tracker.learn(found, now)
        if any(Writer.parse(name).flow for _, name in self.tracker.writers() - before):
            self.new_at = now

    def _lines(self, topic: str) -> tuple[TimeLine, ...]:
        return tuple(
            sorted({each.line for each in self.tracker.demands if each.line.source == topic}, key=str)
        )

    def _places(self, topic: str) -> tuple[str, ...]:
        """The writers that are known: every partition, and those that were heard of."""
        count = Broker(self.planner.settings).topic(topic).partitions
        heard = sorted(writer for _, writer in self.tracker.writers(topic))
        return tuple(dict.fromkeys([*map(str, range(count)), *heard]))[:PLACES]


def _offsets(found: Json) -> dict[str, dict[int, int]]:
    """Offsets as a report of Spark's spells them; it has none for a source that was not read."""
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topic, partitions in (found if isinstance(found, dict) else {}).items()
    }
