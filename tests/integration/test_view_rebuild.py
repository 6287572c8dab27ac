"""Views that begin with a state instead of the whole log: over an archive, and when they are rebuilt."""

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.integration.archived import make_archive, move, rows
from tests.integration.test_sourcing_views import folded_here, history

from penstock.apps.bank.views import balances
from penstock.errors import DataLossError, FlowError
from penstock.log import Broker, Producer, Topic, apply
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline import Pipeline, Runner, rebuild, snapshot, verify
from penstock.settings import reveal
from penstock.sourcing import topic_of
from penstock.sourcing.recorded import Recorded
from penstock.targets import PostgresTable
from penstock.testing.sink_contract import Crash, crash_at


class Killed(BaseException):
    """No retry comes after it."""


@dataclass
class World:
    """A topic of account events, and a view of it in a table."""

    settings: Any
    spark: Any
    name: str
    topic: Topic[Recorded]
    folder: Path

    @property
    def pipeline(self) -> Pipeline:
        made = Pipeline(self.name)
        target = PostgresTable(self.name, key="account", write="upsert")
        made.flow(name="balances", reads={"records": self.topic}, writes=target)(balances)
        return made

    @property
    def other(self) -> Pipeline:
        """A flow with state that is no view."""
        made = Pipeline(f"{self.name}-other")

        @made.flow(
            reads={"records": self.topic},
            writes=PostgresTable(f"{self.name}_n", key="stream", write="upsert"),
        )
        def counted(records):
            return records.groupBy("stream").count()

        return made

    def send(self, records, *, malformed=0):
        with Producer(self.settings) as producer:
            producer.send_all(self.topic, records)
            for _ in range(malformed):
                producer.send_bytes(self.topic.name, b"a1", b"not a record")

    def archive(self):
        """Move all that Kafka has to the archive."""
        make_archive(self.settings, self.topic.name, self.folder)
        move(self.settings, self.topic.name)

    def run(self, pipeline=None):
        with Runner(pipeline or self.pipeline, self.settings, spark=self.spark, once=True) as runner:
            runner.wait(120)

    def rebuild(self, **options):
        return rebuild(self.pipeline, "balances", self.settings, self.spark, **options)

    def shown(self):
        found = self.ask(f"select account, owner, balance from {self.name}")
        return {account: (owner, balance or Decimal("0.00")) for account, owner, balance in found}

    def ask(self, statement):
        with psycopg.connect(reveal(self.settings.dsn()), autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    @property
    def letters(self):
        return sum(map(len, rows(self.settings, self.topic.name + DEAD_LETTERS).values()))

    @property
    def snapshots(self):
        home = Path(self.settings.flows.removeprefix("file:")) / self.name / "balances" / "snapshots"
        return sorted(each.name for each in home.iterdir())

    @property
    def is_verified(self):
        return all(each.ok for each in verify(self.pipeline, self.settings, self.spark))


@pytest.fixture
def world(settings, spark, unique, tmp_path):
    topic = topic_of(f"w{unique}", "account", partitions=2)
    apply([topic], Broker(settings))
    return World(settings, spark, f"w{unique}", topic, tmp_path / "archive")


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_view_begins_with_what_the_archive_comes_to_and_is_rebuilt_by_its_snapshot(world):
    records = history(21, events=120)
    world.send(records[:80], malformed=1)
    world.archive()
    assert all(first == end for first, end in Broker(world.settings).offsets(world.topic.name).values())
    world.send(records[80:100])
    world.run()
    assert world.shown() == folded_here(records[:100])
    assert world.letters == 1
    world.ask(f"delete from {world.name} where account < 'a3'")
    world.ask(f"update {world.name} set balance = 0")
    world.send(records[100:])
    assert world.rebuild().swapped
    assert world.shown() == folded_here(records)
    assert len(world.snapshots) == 2


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_view_goes_on_with_the_state_that_it_began_with(world):
    records = history(27, events=150)
    world.send(records[:80])
    world.archive()
    world.run()
    world.send(records[80:100])
    world.run()
    assert world.shown() == folded_here(records[:100])
    assert world.is_verified
    world.rebuild()
    for cut in (100, 125):
        world.send(records[cut : cut + 25], malformed=1)
        world.run()
        assert world.shown() == folded_here(records[: cut + 25])
    assert world.letters == 2
    assert world.is_verified


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["snapshot.written", "flow.planned", "flow.settled", "rebuild.swapping"])
def test_a_rebuild_that_is_killed_goes_on(world, monkeypatch, point):
    records = history(22, events=120)
    world.send(records[:60])
    world.run()
    world.archive()
    world.send(records[60:80])
    with monkeypatch.context() as patched:
        crash_at(patched, point)
        with pytest.raises(Crash):
            world.rebuild()
    world.send(records[80:100])
    world.ask(f"delete from {world.name}")
    assert world.rebuild().swapped
    world.send(records[100:])
    world.run()
    assert world.shown() == folded_here(records)
    assert world.is_verified


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_seed_that_kafka_has_deleted_the_rest_of_is_made_again(world, monkeypatch):
    records = history(23, events=100)
    world.send(records[:40])
    world.run()
    with monkeypatch.context() as patched:
        crash_at(patched, "flow.seeded", Killed)
        with pytest.raises(Killed):
            world.rebuild()
    world.send(records[40:70])
    world.run()
    world.archive()
    world.send(records[70:])
    assert world.rebuild().swapped
    assert world.shown() == folded_here(records)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_snapshot_is_enough_where_the_records_before_it_are_gone(world):
    records = history(26, events=90)
    world.send(records[:50])
    with pytest.raises(FlowError, match="is no view"):
        snapshot(world.other, "counted", world.settings, world.spark)
    taken = snapshot(world.pipeline, "balances", world.settings, world.spark)
    assert sum(taken.positions.values()) == 50
    world.send(records[50:60])
    world.run()
    Broker(world.settings).delete_records(world.topic.name, taken.positions)
    assert world.rebuild().swapped
    assert world.shown() == folded_here(records[:60])
    world.send(records[60:80])
    world.run()
    ends = Broker(world.settings).committed_end(world.topic.name)
    Broker(world.settings).delete_records(world.topic.name, ends)
    with pytest.raises(DataLossError, match="behind the last snapshot were deleted"):
        world.rebuild(discard=True)
    world.send(records[80:])
    world.run()
    assert world.shown() == folded_here(records)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_other_code_does_not_begin_with_the_snapshot(world, monkeypatch):
    records = history(24, events=60)
    world.send(records)
    world.run()
    world.rebuild()
    assert len(world.snapshots) == 1
    rows = balances.rows
    richer = replace(balances, rows=lambda found: rows(found).withColumn("opened", _shouted()))
    monkeypatch.setitem(globals(), "balances", richer)
    world.rebuild()
    assert world.shown() == {
        name: (owner.upper(), balance) for name, (owner, balance) in folded_here(records).items()
    }


def _shouted():
    from pyspark.sql import functions as F

    return F.upper("opened")


@pytest.mark.long
@pytest.mark.timeout(120)
def test_another_flow_with_state_is_refused_where_the_beginning_is_archived(world):
    world.send(history(25, events=30))
    world.archive()
    with pytest.raises(FlowError, match=r"in the midst of .*a flow that is a View begins with what the arch"):
        world.run(world.other)
    with pytest.raises(FlowError, match="in the midst of"):
        rebuild(world.other, "counted", world.settings, world.spark)
