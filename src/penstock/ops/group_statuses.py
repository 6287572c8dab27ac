"""All consumer groups: their members, positions, and how their lag is judged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from confluent_kafka import KafkaException, TopicPartition

from penstock.errors import PenstockError
from penstock.identity import is_clock
from penstock.log import Broker, Groups
from penstock.log.client import asking
from penstock.log.commit_interval import interval_of
from penstock.log.groups import GroupState, member_of
from penstock.ops.lag.archived import Archives
from penstock.ops.lag.commit_log import CommitLog
from penstock.ops.lag.foreign import Foreign
from penstock.ops.lag.judging import worst
from penstock.ops.lag.lags import History, Lags
from penstock.ops.lag.standing import Standing
from penstock.ops.model import GroupStatus, PartitionLag
from penstock.ops.questions import ask
from penstock.ops.topic_statuses import Partition

_PATIENCE = 10.0  # seconds for the positions of all groups


@dataclass(frozen=True)
class GroupQuestion:
    """Asks for the groups; what is not answered is added to `unanswered`."""

    lags: Lags
    commits: CommitLog
    archives: Archives
    unanswered: list[str] = field(default_factory=list)

    def answer(self) -> tuple[GroupStatus, ...]:
        """Return every consumer group by name."""
        states = described(self.lags.broker, self.unanswered)
        found = self._positions(states)
        foreign = Foreign.among(self.lags, [each for some in found.values() for each in some])
        standings = [
            each for state in states for each in self._standings(state, found.get(state.group, ()), foreign)
        ]
        lags = self.lags.of(self.archives.known_to(standings, self.unanswered), self._history())
        return tuple(_status(state, lags) for state in states)

    def _standings(
        self, state: GroupState, positions: Iterable[TopicPartition], foreign: Foreign
    ) -> Iterator[Standing]:
        """Where a group stands in those partitions that there are."""
        for each in positions:
            kept = self.lags.kept(each)
            if kept is not None:
                anew = each in foreign
                yield Standing(
                    state.group,
                    (each.topic, each.partition),
                    kept.first if anew else each.offset,
                    kept,
                    every=interval_of(each),
                    has_members=bool(state.members),
                    begins_anew=anew,
                )

    def _positions(self, states: Sequence[GroupState]) -> dict[str, list[TopicPartition]]:
        """Where groups stand in topics of events: the watermarks that a flow writes for itself are none."""
        groups = Groups(self.lags.settings)
        missing: list[str] = []
        asked = {state.group: partial(groups.committed, state.group) for state in states}
        found = ask(asked, _PATIENCE, missing)
        self.unanswered.extend(f"positions of group {each}" for each in missing)
        return {group: [each for each in some if not is_clock(each.topic)] for group, some in found.items()}

    def _history(self) -> History | None:
        try:
            return self.commits.read()
        except PenstockError as error:
            self.unanswered.append(f"lag can't be judged without the history of commits: {error.message}")
            return None


def described(broker: Broker, unanswered: list[str]) -> list[GroupState]:
    """Return all consumer groups with their members, asked for at once."""
    with asking("list groups", broker.listener):
        found = broker.wait(broker.admin.list_consumer_groups())
    listed = {each.group_id: each.state.name.lower() for each in found.valid}
    unanswered += [f"groups of a broker: {error}" for error in found.errors]
    states = []
    for group, future in (broker.admin.describe_consumer_groups(sorted(listed)) if listed else {}).items():
        try:
            answer = broker.wait(future)
        except KafkaException as error:
            unanswered.append(f"members of group {group}: {error.args[0].str()}")
            states.append(GroupState(group, listed[group]))
        else:
            members = tuple(member_of(each) for each in answer.members)
            states.append(GroupState(group, answer.state.name.lower(), members))
    return sorted(states, key=lambda state: state.group)


def _status(state: GroupState, lags: Mapping[Standing, PartitionLag]) -> GroupStatus:
    own = tuple(
        replace(lag, member=_reader(state, standing.partition))
        for standing, lag in lags.items()
        if standing.group == state.group
    )
    judgement = worst(each.judgement for each in own)
    return GroupStatus(state.group, "consumer", state.state, state.members, own, judgement)


def _reader(state: GroupState, partition: Partition) -> str | None:
    return next((each.static_id or each.id for each in state.members if partition in each.partitions), None)
