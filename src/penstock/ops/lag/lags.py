"""The lag of groups in partitions: in events, in seconds, judged, and how long it may last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import TopicPartition

from penstock.log import Broker
from penstock.log.client import asking
from penstock.ops.lag.ends import Moment, past_ends, thinned
from penstock.ops.lag.judging import judge, longest_gap, looked_at
from penstock.ops.lag.offset_commits import OffsetCommit, Place
from penstock.ops.lag.standing import Standing
from penstock.ops.lag.unread import Unread, unread
from penstock.ops.model import Commit, Judgement, PartitionLag, PartitionRange, TopicStatus
from penstock.settings import Settings

History = Mapping[Place, Sequence[OffsetCommit]]


@dataclass(frozen=True)
class Past:
    """A group's commits in a partition, and the longest time that is usual between two."""

    commits: tuple[Commit, ...]
    gap: float | None
    is_known: bool = True


@dataclass(frozen=True)
class Lags:
    """Makes lags of standings at a moment; topics are those that were just seen."""

    settings: Settings
    broker: Broker
    topics: Mapping[str, TopicStatus]
    now: float

    def kept(self, position: TopicPartition) -> PartitionRange | None:
        """Return what the partition of a position keeps, if there is one."""
        topic = self.topics.get(position.topic)
        return None if topic is None else topic.partitions.get(position.partition)

    def of(self, standings: Sequence[Standing], history: History | None) -> dict[Standing, PartitionLag]:
        """Return the lag of each; without a history of commits none can be judged."""
        behind = [each for each in standings if each.is_behind]
        waiting = unread(self.settings, (each.stand for each in behind))
        oldest = {each: waiting.get(each.stand) for each in behind}
        # Where there is nothing that can be read, nobody is late.
        late = [each for each, found in oldest.items() if found is None or found.written is not None]
        pasts = self._pasts(late, history)
        return {each: self._lag(each, oldest.get(each), pasts.get(each)) for each in standings}

    def _pasts(self, late: Sequence[Standing], history: History | None) -> dict[Standing, Past]:
        """The commits of those who are behind, a few of many, with the ends at their times."""
        known = {each: _seen(each, history or {}, self.now) for each in late}
        few = {standing: thinned(list(commits)) for standing, commits in known.items()}
        moments = [_moment(standing, each) for standing, some in few.items() for each in some]
        with asking("find where partitions ended", self.broker.listener):
            ends = past_ends(self.broker, moments)
        return {
            standing: Past(
                tuple(_with_end(each, ends.get(_moment(standing, each)), standing) for each in some),
                longest_gap(known[standing], standing.every),
                is_known=history is not None,
            )
            for standing, some in few.items()
        }

    def _lag(self, standing: Standing, oldest: Unread | None, past: Past | None) -> PartitionLag:
        """`past` is None for those who are not late."""
        written = None if oldest is None else oldest.written
        seconds = None if written is None else max(0.0, self.now - written)
        lag = PartitionLag(
            *standing.partition,
            position=standing.position,
            end=standing.kept.end,
            seconds=seconds or 0.0,
            judgement="ok",
            lost=standing.lost,
        )
        if past is None:
            return lag
        judged = self._judged(standing, past, seconds) if past.is_known else "unknown"
        return replace(lag, judgement=judged, commits=past.commits, left=self._left(standing, seconds))

    def _judged(self, standing: Standing, past: Past, seconds: float | None) -> Judgement:
        return judge(
            past.commits,
            standing.kept.end,
            self.now,
            gap=past.gap,
            has_members=standing.has_members and not standing.begins_anew,
            waiting=float("inf") if seconds is None else seconds,
        )

    def _left(self, standing: Standing, seconds: float | None) -> float | None:
        """How long until retention deletes the oldest unread event; nothing, if it has deleted some."""
        retention = self.topics[standing.partition[0]].retention_seconds
        if standing.lost:
            return 0.0
        return None if retention is None or seconds is None else max(0.0, retention - seconds)


def _seen(standing: Standing, history: History, now: float) -> Sequence[OffsetCommit]:
    if standing.begins_anew:
        return ()
    return looked_at(history.get(Place(standing.group, *standing.partition), ()), now)


def _with_end(commit: OffsetCommit, end: int | None, standing: Standing) -> Commit:
    """A commit with where the partition ended then; where that is not known, with where it ends now.

    It is found by the times of records. One before the position is of a producer whose clock is ahead: taken
    for true, it would be no lag at all.
    """
    position = commit.position or 0
    return Commit(commit.at, position, standing.kept.end if end is None or end < position else end)


def _moment(standing: Standing, commit: OffsetCommit) -> Moment:
    return standing.partition, int(commit.at * 1000)
