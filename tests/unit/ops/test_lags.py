"""A lag is judged by true ends, found by the times of records, and by how often its reader commits."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition

from penstock.log.archive.segment import Segment
from penstock.log.commit_interval import with_interval
from penstock.log.groups import GroupState, Member
from penstock.log.identity import mark
from penstock.ops.glance import Glance
from penstock.ops.group_statuses import GroupQuestion
from penstock.ops.lag import archived, foreign
from penstock.ops.lag import unread as reading
from penstock.ops.lag.archived import Archives
from penstock.ops.lag.foreign import Foreign
from penstock.ops.lag.lags import Lags, _with_end
from penstock.ops.lag.offset_commits import OffsetCommit, Place
from penstock.ops.lag.standing import Standing
from penstock.ops.lag.unread import Unread, unread
from penstock.ops.model import PartitionRange, TopicStatus
from penstock.settings import Settings

NOW = 100_000.0
MEMBER = (Member("m", None, "h", ()),)


@pytest.mark.parametrize(
    ("end", "taken"),
    [(120, 120), (100, 100), (None, 5000), pytest.param(40, 5000, id="by a clock that is ahead")],
)
def test_an_end_before_the_position_is_not_taken_for_no_lag(end, taken):
    standing = SimpleNamespace(kept=SimpleNamespace(end=5000))
    commit = _with_end(OffsetCommit(Place("g", "t", 0), 100, 7.0), end, standing)
    assert (commit.position, commit.end) == (100, taken)


def test_standings_say_how_often_their_readers_commit_and_whether_there_are_any():
    topics = {"orders": TopicStatus("orders", {0: PartitionRange(0, 9)}, 1, {})}
    question = GroupQuestion(Lags(Settings(), None, topics, NOW), None, None)
    found = [
        with_interval(TopicPartition("orders", 0, 5), 900.0),
        TopicPartition("orders", 1, 5),
        TopicPartition("gone", 0, 5),
    ]
    (flow,) = question._standings(GroupState("penstock.shop.bill", "empty"), found, Foreign())
    assert (flow.partition, flow.position, flow.every, flow.has_members) == (("orders", 0), 5, 900.0, False)
    (other,) = question._standings(
        GroupState("sink", "stable", MEMBER),
        [TopicPartition("orders", 0, 5)],
        Foreign(),
    )
    assert (other.every, other.has_members) == (None, True)


def test_the_watermarks_that_a_flow_writes_for_itself_are_no_lag(monkeypatch):
    clocks = ("_penstock_clock.shop.bill", "_penstock.team.clock.shop.bill")
    found = [TopicPartition(name, 0, 5) for name in ("orders", *clocks)]
    answers = SimpleNamespace(committed=lambda _: found)
    monkeypatch.setattr("penstock.ops.group_statuses.Groups", lambda _: answers)
    question = GroupQuestion(Lags(Settings(), None, {}, NOW), None, None)
    positions = question._positions([GroupState("penstock.shop.bill", "empty")])
    assert [each.topic for each in positions["penstock.shop.bill"]] == ["orders"]


def lag(monkeypatch, history, **more):
    """The lag of a group whose oldest unread event has waited for twenty minutes."""
    kept = PartitionRange(0, 100)
    standing = Standing("sink", ("orders", 0), 50, kept, **more)
    monkeypatch.setattr("penstock.ops.lag.lags.unread", lambda *_: {standing.stand: Unread(NOW - 1200)})
    monkeypatch.setattr("penstock.ops.lag.lags.past_ends", lambda *_: {})
    topics = {"orders": TopicStatus("orders", {0: kept}, 1, {})}
    lags = Lags(Settings(), SimpleNamespace(listener=None), topics, NOW)
    return lags.of([standing], history)[standing]


def test_a_lag_is_judged_by_what_is_known_of_its_reader(monkeypatch):
    place = Place("sink", "orders", 0)
    rare = {place: [OffsetCommit(place, 30 + n, NOW - 900 * (3 - n)) for n in range(3)]}
    assert lag(monkeypatch, rare).judgement == "ok"
    assert [each.position for each in lag(monkeypatch, rare).commits] == [30, 31, 32]
    assert lag(monkeypatch, {}).judgement == "stopped"
    assert lag(monkeypatch, {}, has_members=True).judgement == "unknown"
    assert lag(monkeypatch, {}, every=900.0).judgement == "ok"
    assert lag(monkeypatch, {}, every=60.0).judgement == "stopped"
    assert lag(monkeypatch, None, every=60.0).judgement == "unknown"


class Asked:
    """A broker that knows the ids of topics, and where they end now."""

    listener = None

    def __init__(self, monkeypatch, ends):
        monkeypatch.setattr(foreign, "offsets", lambda _, places: {each: ends[each] for each in places})

    def topic_ids(self, names):
        return dict.fromkeys(names, "new")


def stand(monkeypatch, position, end_now, state, history):
    """Where a group is seen to stand in a topic that ended at 100 a moment ago, and its lag there."""
    place, topics = ("orders", 0), {"orders": TopicStatus("orders", {0: PartitionRange(10, 100)}, 1, {})}
    lags = Lags(Settings(), Asked(monkeypatch, {place: end_now}), topics, NOW)
    question = GroupQuestion(lags, None, None)
    (standing,) = question._standings(state, [position], Foreign.among(lags, [position]))
    monkeypatch.setattr("penstock.ops.lag.lags.unread", lambda *_: {standing.stand: Unread(NOW - 1200)})
    monkeypatch.setattr("penstock.ops.lag.lags.past_ends", lambda *_: {})
    return lags.of([standing], history)[standing]


@pytest.mark.parametrize(
    ("position", "end_now"),
    [
        pytest.param(mark(TopicPartition("orders", 0, 5_000), "old"), 120, id="by the id"),
        pytest.param(mark(TopicPartition("orders", 0, 50), "old"), 120, id="by the id, below the end"),
        pytest.param(TopicPartition("orders", 0, 5_000), 120, id="beyond the end"),
    ],
)
@pytest.mark.parametrize("members", [(), MEMBER])
def test_who_stands_in_a_topic_that_was_made_again_has_read_nothing(monkeypatch, position, end_now, members):
    place = Place("sink", "orders", 0)
    history = {place: [OffsetCommit(place, 4_990 + n, NOW - 60 + n) for n in range(10)]}
    found = stand(monkeypatch, position, end_now, GroupState("sink", "stable", members), history)
    assert (found.position, found.events, found.judgement, found.lost) == (10, 90, "stopped", 0)
    assert found.commits == ()


@pytest.mark.parametrize(
    "position",
    [
        pytest.param(TopicPartition("orders", 0, 110), id="read what came since the look began"),
        pytest.param(mark(TopicPartition("orders", 0, 110), "new"), id="in the topic that there is"),
    ],
)
def test_a_position_that_the_topic_has_is_believed(monkeypatch, position):
    found = stand(monkeypatch, position, 120, GroupState("sink", "stable", MEMBER), {})
    assert (found.position, found.events, found.judgement) == (110, 0, "ok")


def archives(monkeypatch, segments):
    history = None if segments is None else SimpleNamespace(segments=lambda _: segments)
    monkeypatch.setattr(archived, "find_history", lambda *_: history)
    return Archives(Settings(), frozenset({"orders"}))


@pytest.mark.parametrize(
    ("segments", "lost"),
    [
        pytest.param([Segment(0, 0, 40), Segment(0, 40, 150)], 0, id="all"),
        pytest.param([Segment(0, 60, 150)], 10, id="what came later"),
        pytest.param([Segment(0, 0, 70), Segment(0, 90, 150)], 20, id="with a hole"),
        pytest.param([], 50, id="nothing yet"),
        pytest.param(None, 50, id="of a topic that had the name before"),
    ],
)
def test_what_an_archive_has_is_not_lost(monkeypatch, segments, lost):
    behind = Standing("sink", ("orders", 0), 50, PartitionRange(100, 200))
    current = Standing("sink", ("orders", 1), 120, PartitionRange(100, 200))
    missing = []
    found, same = archives(monkeypatch, segments).known_to([behind, current], missing)
    assert (found.lost, same, missing) == (lost, current, [])
    monkeypatch.setattr("penstock.ops.lag.lags.unread", lambda *_: {found.stand: Unread(NOW - 1200)})
    monkeypatch.setattr("penstock.ops.lag.lags.past_ends", lambda *_: {})
    topics = {"orders": TopicStatus("orders", {0: found.kept}, 1, {"retention.ms": "-1"})}
    lag = Lags(Settings(), SimpleNamespace(listener=None), topics, NOW).of([found], {})[found]
    assert (lag.lost, lag.left) == (lost, 0.0 if lost else None)


def test_only_archives_that_are_needed_are_asked_and_one_that_is_away_is_said(monkeypatch):
    def away(*_):
        raise ConnectionError("the bucket is away")

    monkeypatch.setattr(archived, "find_history", away)
    behind = Standing("sink", ("orders", 0), 50, PartitionRange(100, 200))
    plain = Standing("sink", ("sales", 0), 50, PartitionRange(100, 200))
    missing = []
    known = Archives(Settings(), frozenset({"orders", "bills"})).known_to([behind, plain], missing)
    assert [each.lost for each in known] == [0, 50]
    assert missing == ["what is archived of orders: ConnectionError: the bucket is away"]


def test_a_glance_is_at_committed_records_unless_all_are_wanted(monkeypatch):
    seen = []

    class Client:
        def __init__(self, configuration):
            seen.append(configuration["isolation.level"])

    monkeypatch.setattr("penstock.ops.glance.Consumer", Client)
    monkeypatch.setattr("penstock.ops.glance.metadata", lambda *_: None)
    settings = Settings(kafka={"bootstrap.servers": "nowhere"})
    Glance(settings)
    Glance(settings, committed=False)
    assert seen == ["read_committed", "read_uncommitted"]


def test_where_nothing_can_be_read_nobody_is_late(monkeypatch):
    place = ("orders", 0)
    glance = SimpleNamespace(records=lambda _: {place: []})
    monkeypatch.setattr(reading, "Glance", lambda _: nullcontext(glance))
    assert unread(Settings(), [(place, 50)]) == {(place, 50): Unread(None)}
