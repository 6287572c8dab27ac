"""All dead-letter queues: how many letters wait for a redrive, and why the newest is one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from penstock.identity import Identity
from penstock.log import Groups
from penstock.log.dead_letters import DeadLetter
from penstock.log.message import Received
from penstock.log.redrive import GROUP
from penstock.log.topic import DEAD_LETTERS
from penstock.ops.glance import Glance
from penstock.ops.model import DeadLetterStatus, TopicStatus
from penstock.ops.questions import ask
from penstock.ops.topic_statuses import Partition
from penstock.settings import Settings

_PATIENCE = 6.0  # seconds for the positions of all redrives
_NEAR = 100  # offsets before the end that are read: markers of transactions among them are no letters
_LONGEST = 200  # characters of a reason
Records = Mapping[Partition, list[Received]]


@dataclass(frozen=True)
class LettersQueue:
    """A topic of dead letters, what these came from, and where its redrives have come to by partition."""

    topic: TopicStatus
    source: str
    group: str
    redriven: Mapping[int, int]

    @property
    def starts(self) -> dict[int, int]:
        """The first letter that waits, in those partitions in which any may."""
        found = {
            number: max(kept.first, self.redriven.get(number, 0))
            for number, kept in self.topic.partitions.items()
        }
        return {number: at for number, at in found.items() if at < self.topic.partitions[number].end}

    @property
    def near(self) -> dict[Partition, int]:
        """From where on it is read: not all that waits, if that is much."""
        ends = self.topic.partitions
        return {
            (self.topic.name, number): max(at, ends[number].end - _NEAR) for number, at in self.starts.items()
        }

    def status(self, read: Records) -> DeadLetterStatus:
        """Return its status; where nobody answered, and in long queues, markers of transactions count."""
        near, starts, ends = self.near, self.starts, self.topic.partitions
        unread = sum(near[place] - starts[place[1]] for place in near)
        unread += sum(ends[place[1]].end - at for place, at in near.items() if place not in read)
        letters = [each for place in near for each in read.get(place, ())]
        known = DeadLetterStatus(self.topic.name, self.source, unread + len(letters), kept=self.topic.events)
        return _with_newest(known, letters) if letters else known


def dead_letter_statuses(
    settings: Settings, topics: Iterable[TopicStatus], unanswered: list[str]
) -> tuple[DeadLetterStatus, ...]:
    """Return all dead-letter queues, empty ones too; where nobody knows what was redriven, all wait."""
    queues = _with_redriven(settings, list(_queues(settings, topics)), unanswered)
    starts = {place: at for each in queues for place, at in each.near.items()}
    read: Records = {}
    if starts:
        with Glance(settings) as glance:
            read = glance.records(starts, most=_NEAR)
    return tuple(each.status(read) for each in queues)


def _queues(settings: Settings, topics: Iterable[TopicStatus]) -> Iterator[LettersQueue]:
    undelivered = Identity.of(settings.namespace, "", "").undelivered.removesuffix(".")
    for topic in topics:
        if topic.name.startswith(undelivered):
            pipeline, _, flow = topic.name.removeprefix(undelivered).rpartition(".")
            group = Identity.of(settings.namespace, pipeline, flow).redrives
            yield LettersQueue(topic, f"{pipeline}.{flow}", group, {})
        elif topic.name.endswith(DEAD_LETTERS):
            source = topic.name.removesuffix(DEAD_LETTERS)
            yield LettersQueue(topic, source, GROUP + source, {})


def _with_redriven(
    settings: Settings, queues: list[LettersQueue], unanswered: list[str]
) -> list[LettersQueue]:
    groups, missing = Groups(settings), list[str]()
    asked = {
        each.topic.name: partial(groups.positions_in, each.group, each.topic.name, each.topic.partitions)
        for each in queues
        if each.topic.events
    }
    found = ask(asked, _PATIENCE, missing)
    unanswered += [f"which letters were redriven of {each}" for each in missing]
    return [replace(each, redriven=found.get(each.topic.name, {})) for each in queues]


def _with_newest(status: DeadLetterStatus, letters: Iterable[Received]) -> DeadLetterStatus:
    newest = max(letters, key=lambda each: (each.timestamp()[1], each.offset()))
    reason = " ".join(DeadLetter.from_message(newest).error.split())[:_LONGEST]
    return replace(status, newest=newest.timestamp()[1] / 1000, reason=reason)
