"""Topics as values, applied to a real broker."""

from dataclasses import dataclass
from datetime import datetime

import pytest

from penstock.errors import TopicError
from penstock.events import Event
from penstock.log import Broker, Table, Topic, apply, plan


@dataclass(frozen=True)
class Ping(Event):
    name: str | None
    score: float
    at: datetime


@pytest.fixture
def broker(settings):
    return Broker(settings)


def actions(changes):
    return {change.topic: change.action for change in changes}


def test_a_plan_shows_and_apply_does(broker, unique):
    more = {"segment.bytes": "1048576"}
    topic = Topic(unique, Ping, key="name", partitions=3, retention="2 days", settings=more)
    assert actions(plan([topic], broker)) == {unique: "create"}
    assert unique not in broker.topics()
    apply([topic], broker)
    state = broker.topic(unique)
    assert state.partitions == 3
    assert state.config["retention.ms"] == "172800000"
    assert state.config["segment.bytes"] == "1048576"
    assert actions(plan([topic], broker)) == {unique: "keep"}


def test_settings_and_partitions_change_and_nothing_shrinks(broker, unique):
    apply([Topic(unique, Ping, key="name", partitions=2)], broker)
    more = Topic(unique, Ping, key="name", partitions=4, retention="forever")
    (change,) = plan([more], broker)
    assert (change.action, change.partitions) == ("grow", (2, 4))
    assert change.settings["retention.ms"] == (None, "-1")
    assert "another partition" in change.reason
    apply([more], broker)
    assert broker.topic(unique).config["retention.ms"] == "-1"

    other = Topic(unique + ".new", Ping)
    with pytest.raises(TopicError, match="has 4 partitions, 3 declared"):
        apply([other, Topic(unique, Ping, partitions=3)], broker)
    assert other.name not in broker.topics(), "nothing is done if anything is refused"


def test_a_table_is_compacted(broker, unique):
    apply([Table(unique, Ping, key="name")], broker)
    assert broker.topic(unique).config["cleanup.policy"] == "compact"


def test_a_table_does_not_grow(broker, unique):
    """A key that moves to a lower partition would be beaten by its old row for ever."""
    apply([Table(unique, Ping, key="name", partitions=2)], broker)
    larger = Table(unique, Ping, key="name", partitions=3)
    (change,) = plan([larger], broker)
    assert change.action == "refuse"
    assert "a table with 2 partitions, 3 declared" in change.reason
    with pytest.raises(TopicError, match="declare a table of another name"):
        apply([larger], broker)
    assert broker.topic(unique).partitions == 2
    assert actions(plan([Table(unique, Ping, key="name", partitions=2)], broker)) == {unique: "keep"}


def test_a_setting_kafka_does_not_know_is_refused(broker, unique):
    with pytest.raises(TopicError, match=r"no\.such\.setting"):
        apply([Topic(unique, Ping, settings={"no.such.setting": "1"})], broker)


def test_a_topic_that_is_made_again_has_another_id(broker, unique):
    apply([Topic(unique, Ping)], broker)
    (first,) = broker.topic_ids([unique, unique + ".none"]).items()
    assert first[0] == unique
    assert broker.topic_ids([unique]) == dict([first])
    broker.delete(unique)
    apply([Topic(unique, Ping)], broker)
    assert broker.topic_ids([unique])[unique] != first[1]
    assert broker.topic_ids([]) == {}


def test_delete(broker, unique):
    apply([Topic(unique, Ping)], broker)
    broker.delete(unique)
    with pytest.raises(TopicError, match="does not exist"):
        broker.topic(unique)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Topic("a b", Ping), "not a topic's name"),
        (lambda: Topic("..", Ping), "not a topic's name"),
        (lambda: Topic("a", Ping, partitions=0), "0 partitions"),
        (lambda: Topic("a", Ping, key="nobody"), "no field"),
        (lambda: Topic("a", Ping, key="score"), "can't be a key"),
        (lambda: Topic("a", Ping, format="xml"), "xml"),
        (lambda: Table("a", Ping), "no key"),
    ],
)
def test_a_topic_checks_itself_when_it_is_made(make, says):
    with pytest.raises(TopicError, match=says):
        make()
