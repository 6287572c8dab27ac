"""What a watermark waits for: flows upstream that have more to bring, and none that have not."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.errors import ConfigurationError, FlowError
from penstock.events import Event
from penstock.identity import Identity
from penstock.log import Broker, Groups, Producer, Topic, apply
from penstock.log.ledger import Batch, Entry
from penstock.pipeline import forget
from penstock.pipeline.tracker import Writer
from penstock.pipeline.upstream import Upstream
from penstock.targets.kafka.lane import KafkaLane


@dataclass(frozen=True)
class Sale(Event):
    at: datetime


@pytest.fixture
def sales(settings, unique):
    """A topic with three events."""
    topic = Topic(f"sales-{unique}", Sale)
    apply([topic], Broker(settings))
    with Producer(settings) as producer:
        producer.send_all(topic, [Sale(datetime(2026, 1, 1, tzinfo=UTC)) for _ in range(3)])
    return topic


def wrote(settings, flow, topic, end):
    """Let the only lane of a flow have written what it has read."""
    Broker(settings).ensure(Identity(flow).ledger, 1, {"cleanup.policy": "compact"})
    lane = KafkaLane(settings, flow, 0, 10_000)
    lane.write((), Entry(1))
    if end is not None:
        lane.write((), Entry(1, Batch("made", 0, {}, {topic.name: {0: end}})))


def is_behind(settings, flow, topic, *gone):
    upstream = Upstream(settings, lambda label, _: label not in gone)
    behind = upstream.unread("bills", Writer(0, flow, topic.name, 0)) != {}
    assert bool(upstream.expected([("bills", Writer(0, flow, topic.name, 1))])) == behind
    return behind


@pytest.mark.parametrize(("end", "behind"), [(None, True), (1, True), (3, False)])
def test_the_ledger_shows_where_a_flow_is_whose_positions_have_expired(settings, sales, unique, end, behind):
    """Kafka forgets a group that has not moved for a week."""
    flow = f"shop-{unique}.bill"
    assert not is_behind(settings, flow, sales)
    wrote(settings, flow, sales, end)
    assert is_behind(settings, flow, sales) == behind


def test_a_flow_that_the_pipeline_has_no_longer_is_not_waited_for(settings, sales, unique):
    flow = f"shop-{unique}.bill"
    Groups(settings).place(f"penstock.{flow}", {sales.name: {0: 1}})
    assert is_behind(settings, flow, sales)
    assert not is_behind(settings, flow, sales, flow)


def test_a_flow_of_another_pipeline_is_waited_for_until_it_is_forgotten(settings, spark, sales, unique):
    pipeline = f"shop-{unique}"
    flow = f"{pipeline}.bill"
    wrote(settings, flow, sales, 1)
    Groups(settings).place(f"penstock.{flow}", {sales.name: {0: 1}})
    assert is_behind(settings, flow, sales)
    removed = forget(spark, settings, pipeline, "bill")
    assert removed == [f"topic {Identity(flow).ledger}", f"group penstock.{flow}"]
    assert not is_behind(settings, flow, sales)
    with pytest.raises(FlowError, match="has left nothing behind"):
        forget(spark, settings, pipeline, "bill")


@pytest.mark.parametrize(
    ("pipeline", "flow"), [("shop", ""), ("shop", ".."), ("..", "bill"), ("a/b", "bill")]
)
def test_what_is_no_name_of_a_flow_is_never_deleted(settings, spark, pipeline, flow):
    """An empty variable in somebody's script must not remove the checkpoints of a whole pipeline."""
    with pytest.raises(ConfigurationError, match="is not a"):
        forget(spark, settings, pipeline, flow)
