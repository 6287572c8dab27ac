"""A flow's target made again from the log, beside the one at work, and put in its place."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from pyspark.sql import functions as F

from penstock.errors import DataLossError, FencedError, FlowError, SinkError, TargetError
from penstock.events import Event
from penstock.identity import Identity
from penstock.log import Broker, Groups, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, Runner, rebuild, verify
from penstock.pipeline.generation import Generations
from penstock.settings import Settings, reveal
from penstock.targets import PostgresSink, PostgresTable
from penstock.testing.sink_contract import Crash, crash_at

KEPT = {"min.compaction.lag.ms": str(7 * 24 * 3600 * 1000)}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Order(Event):
    id: int
    customer: str
    price: float
    at: datetime = NOON


@dataclass
class World:
    """A topic of orders, and a pipeline that keeps a table of them."""

    settings: Settings
    spark: Any
    name: str
    orders: Topic[Order]
    pipeline: Pipeline

    def send(self, *orders: Order) -> None:
        with Producer(self.settings) as producer:
            producer.send_all(self.orders, orders)

    def delete(self, *ids: int) -> None:
        with Producer(self.settings) as producer:
            for id in ids:
                producer.delete(self.orders, id)

    def run(self) -> None:
        with Runner(self.pipeline, self.settings, spark=self.spark, once=True) as runner:
            runner.wait(120)

    def rebuild(self, flow: str = "copy", **options: Any):
        return rebuild(self.pipeline, flow, self.settings, self.spark, **options)

    def ask(self, statement: str):
        with psycopg.connect(reveal(self.settings.dsn()), autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    def rows(self) -> list[tuple]:
        return sorted(self.ask(f"select id, customer, price from {self.name}"))

    @property
    def position(self) -> int:
        """How many records of the topic the table shows, as the flow's group has it."""
        group = Identity.of(self.settings.namespace, self.name, "copy").group
        return sum(Groups(self.settings).positions(group)[self.orders.name].values())

    @property
    def is_verified(self) -> bool:
        return all(each.ok for each in verify(self.pipeline, self.settings, self.spark))


@pytest.fixture
def world(settings, spark, unique):
    name = f"r{unique}"
    orders = Table(f"orders.{name}", Order, key="id", partitions=2, settings=KEPT)
    pipeline = Pipeline(name)
    target = PostgresTable(name, key="id", write="upsert", columns=("id", "customer", "price"))

    @pipeline.flow(reads={"orders": orders}, writes=target)
    def copy(orders):
        return orders

    apply([orders], Broker(settings))
    made = World(settings, spark, name, orders, pipeline)
    made.send(*(Order(n, f"c{n}", n * 1.5) for n in range(20)))
    made.run()
    return made


def expected(ids) -> list[tuple]:
    return [(n, f"c{n}", n * 1.5) for n in ids]


@pytest.mark.long
def test_a_damaged_table_is_made_again_and_the_flow_goes_on(world):
    world.ask(f"create index on {world.name} (customer)")
    world.ask(f"grant select on {world.name} to public")
    world.ask(f"delete from {world.name} where id % 2 = 0")
    world.ask(f"update {world.name} set price = -1 where id = 3")
    done = world.rebuild()
    assert done.swapped
    assert world.rows() == expected(range(20))
    assert world.is_verified
    kept = world.ask(
        f"select count(*) from pg_indexes where tablename = '{world.name}' and indexdef like '%(customer)%'"
    )
    assert kept == [(1,)]
    assert world.ask(f"select has_table_privilege('public', '{world.name}', 'select')") == [(True,)]
    world.send(Order(99, "c99", 99 * 1.5))
    world.delete(4)
    world.run()
    assert world.rows() == expected([n for n in range(20) if n != 4] + [99])
    assert world.is_verified
    world.ask(f"truncate {world.name}")
    assert world.rebuild().swapped, "a second time"
    assert len(world.rows()) == 20
    assert world.is_verified


@pytest.mark.long
def test_rows_that_were_deleted_by_mistake_are_as_they_were_the_moment_before(world):
    time.sleep(0.05)
    before = datetime.now(UTC)
    time.sleep(0.05)
    world.delete(*range(10))
    world.run()
    assert world.rows() == expected(range(10, 20))
    assert world.position == 30
    world.rebuild(until=before)
    assert world.rows() == expected(range(20))
    assert world.position == 20, "the former table's position is not this one's"
    assert world.is_verified, "up to where it stands"
    world.run()
    assert world.rows() == expected(range(10, 20)), "the flow goes on with what came after"
    assert world.position == 30


@pytest.mark.parametrize(
    "point", [pytest.param("rebuild.swapping", marks=pytest.mark.long), "rebuild.swapped"]
)
def test_a_kill_while_it_is_put_in_place_is_made_good_by_the_same_command(world, monkeypatch, point):
    world.ask(f"delete from {world.name}")
    with monkeypatch.context() as patched:
        crash_at(patched, point)
        with pytest.raises(Crash):
            world.rebuild()
    with pytest.raises(FlowError, match="was interrupted; run `penstock rebuild"):
        world.run()
    assert world.rebuild().swapped
    assert world.rows() == expected(range(20))
    world.send(Order(50, "c50", 75.0))
    world.run()
    assert len(world.rows()) == 21


def test_a_rebuild_that_is_interrupted_goes_on(world):
    assert not world.rebuild(is_stopped=lambda: True).swapped
    with pytest.raises(FlowError, match="up to now is under way"):
        world.rebuild(until=datetime.now(UTC))
    assert not world.rebuild(may_swap=lambda: False).swapped
    assert world.rows() == expected(range(20))
    assert world.rebuild().swapped
    assert world.ask(f"select count(*) from pg_tables where tablename like '{world.name}%'") == [(1,)]


def test_views_stay_with_the_table(world):
    world.ask(f"create view v{world.name} as select sum(price) as total from {world.name}")
    world.ask(f"update {world.name} set price = 0")
    world.rebuild()
    assert world.ask(f"select total from v{world.name}") == [(sum(n * 1.5 for n in range(20)),)]


def test_what_refers_to_a_table_or_protects_it_stays(world):
    name = world.name
    world.ask(f"create table l{name} (order_id bigint references {name} (id))")
    world.ask(f"insert into l{name} values (3)")
    world.ask(f"alter table {name} enable row level security")
    world.ask(f"alter table {name} add column number serial")
    world.ask(f"create table seen{name} (id bigint)")
    world.ask(
        f"create function f{name}() returns trigger language plpgsql as "
        f"$$ begin insert into seen{name} values (new.id); return new; end $$"
    )
    world.ask(f"create trigger noted after insert on {name} for each row execute function f{name}()")
    world.ask(f"delete from {name} where id = 7")
    world.ask(f"update {name} set price = 0 where id = 3")
    world.ask(f"truncate seen{name}")
    assert world.rebuild().swapped
    assert world.rows() == expected(range(20))
    assert world.ask(f"select relrowsecurity from pg_class where relname = '{name}'") == [(True,)]
    assert world.ask(f"select * from seen{name}") == [], "nothing has happened that a trigger has not seen"


@pytest.mark.long
def test_a_table_that_can_not_be_replaced_leaves_the_flow_as_it_was(world):
    world.ask(f"create table l{world.name} (order_id bigint references {world.name} (id))")
    world.ask(f"insert into {world.name} values (999, 'by hand', 0)")
    world.ask(f"insert into l{world.name} values (999)")
    with pytest.raises(TargetError, match="can't be replaced"):
        world.rebuild()
    world.send(Order(50, "c50", 75.0))
    world.run()
    assert len(world.rows()) == 22
    world.ask(f"truncate l{world.name}")
    assert world.rebuild().swapped
    world.run()
    assert world.rows() == expected([*range(20), 50])


def test_a_rebuild_by_other_code_is_begun_anew_on_request(world):
    assert not world.rebuild(may_swap=lambda: False).swapped
    flow = world.pipeline.flows["copy"]
    world.pipeline.flows["copy"] = replace(flow, version="2")
    with pytest.raises(FlowError, match="with other code or columns is under way"):
        world.rebuild()
    assert world.rebuild(discard=True).swapped
    assert world.rows() == expected(range(20))


def test_a_target_that_two_flows_write_is_not_rebuilt(world):
    @world.pipeline.flow(reads={"orders": world.orders}, writes=world.pipeline.flows["copy"].writes)
    def other(orders):
        return orders

    with pytest.raises(FlowError, match="write the same target"):
        world.rebuild()


def test_two_rebuilds_at_once_do_not_undo_each_other(world):
    generations = Generations(world.spark, world.settings, Identity.of("", world.name, "copy"))
    stale = generations.read()
    assert world.rebuild().swapped
    with pytest.raises(FlowError, match="rebuilt by another process"):
        generations.write(stale.begun("", ""), stale)


def test_a_flow_that_runs_elsewhere_is_shut_out(world):
    with Runner(world.pipeline, world.settings, spark=world.spark) as runner:
        deadline = time.monotonic() + 60
        while runner.runs["copy"].status != "running" and time.monotonic() < deadline:
            world.send(Order(1, "c1", 1.5))
            time.sleep(0.3)
        world.rebuild()
        world.send(Order(2, "late", 0.0))
        with pytest.raises(FencedError):
            runner.wait(60)
    assert world.rows() == expected(range(20))
    world.run()
    assert (2, "late", 0.0) in world.rows()


@pytest.mark.long
def test_a_writer_that_can_not_be_shut_out_is_not_replaced(world, monkeypatch):
    """The database is away for a moment: the flow at work goes on."""
    world.rebuild(may_swap=lambda: False)

    def away(self):
        raise SinkError("PostgreSQL can't be reached")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresSink, "take_over", away)
        with pytest.raises(SinkError):
            world.rebuild()
    world.send(Order(50, "c50", 75.0))
    world.run()
    assert world.rebuild().swapped
    world.run()
    assert world.rows() == expected([*range(20), 50])


def test_what_the_log_has_not_is_not_rebuilt_in_silence(world, settings, unique):
    lag = {"min.compaction.lag.ms": "60000"}
    Broker(settings).configure(world.orders.name, lag)
    with pytest.raises(DataLossError, match=r"keeps every change for 0:01:00.*archive"):
        world.rebuild(until=datetime.now(UTC) - timedelta(minutes=2))
    world.rebuild(until=datetime.now(UTC) - timedelta(seconds=1))

    out = Topic(f"out.{unique}", Order, key="id")

    @world.pipeline.flow(reads={"orders": world.orders}, writes=out)
    def emitted(orders):
        return orders.drop("_deleted")

    with pytest.raises(FlowError, match="would emit all of its events again"):
        world.rebuild("emitted")


def test_state_is_built_again_and_goes_on(settings, spark, unique):
    name = f"r{unique}"
    orders = Topic(f"orders.{name}", Order, key="customer", partitions=2)
    pipeline = Pipeline(name)

    @pipeline.flow(reads={"orders": orders}, writes=PostgresTable(name, key="customer", write="upsert"))
    def spent(orders):
        return orders.groupBy("customer").agg(F.sum("price").alias("total"))

    apply([orders], Broker(settings))
    world = World(settings, spark, name, orders, pipeline)
    world.send(*(Order(n, f"c{n % 3}", 1.0) for n in range(30)))
    world.run()
    world.ask(f"update {name} set total = 0")
    with pytest.raises(FlowError, match="keeps state: it can be rebuilt up to the present only"):
        world.rebuild("spent", until=datetime.now(UTC))
    assert world.rebuild("spent").swapped
    assert sorted(world.ask(f"select customer, total from {name}")) == [(f"c{n}", 10.0) for n in range(3)]
    world.send(Order(100, "c0", 5.0))
    world.run()
    assert world.ask(f"select total from {name} where customer = 'c0'") == [(15.0,)]
