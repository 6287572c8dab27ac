"""A lag is judged by true ends, found by the times of records, and by how often its reader commits."""

from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition

from penstock.log.commit_interval import with_interval
from penstock.log.groups import GroupState, Member
from penstock.ops.group_statuses import GroupQuestion
from penstock.ops.lag.lags import Lags, _with_end
from penstock.ops.lag.offset_commits import OffsetCommit, Place
from penstock.ops.lag.standing import Standing
from penstock.ops.lag.unread import Unread
from penstock.ops.model import PartitionRange, TopicStatus
from penstock.settings import Settings

NOW = 100_000.0


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
    question = GroupQuestion(SimpleNamespace(topics=topics), None)
    found = [
        with_interval(TopicPartition("orders", 0, 5), 900.0),
        TopicPartition("orders", 1, 5),
        TopicPartition("gone", 0, 5),
    ]
    (flow,) = question._standings(GroupState("penstock.shop.bill", "empty"), found)
    assert (flow.partition, flow.position, flow.every, flow.has_members) == (("orders", 0), 5, 900.0, False)
    (other,) = question._standings(
        GroupState("sink", "stable", (Member("m", None, "h", ()),)), [TopicPartition("orders", 0, 5)]
    )
    assert (other.every, other.has_members) == (None, True)


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
