"""A new version of a flow in the shadow of the one at work: compared, swapped in, and rolled back."""

import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from pyspark.sql import functions as F

from penstock import points
from penstock.errors import DataLossError, FencedError, FlowError, SinkError, TopicError
from penstock.events import Event
from penstock.identity import Identity
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import (
    Pipeline,
    Runner,
    diff,
    discard_shadow,
    rebuild,
    rollback,
    shadow,
    swap,
    swapping,
)
from penstock.pipeline.diffing import Compared, compared
from penstock.pipeline.flow_status import flow_statuses
from penstock.pipeline.generation import Generations
from penstock.pipeline.replay_progress import ReplayProgress
from penstock.pipeline.swapping import _Swap
from penstock.pipeline.versions import Versions
from penstock.process import read, windows
from penstock.settings import Settings, reveal
from penstock.targets import PostgresTable
from penstock.targets.postgres import ledger
from penstock.targets.postgres import swap as postgres_swap
from penstock.targets.postgres.connection import connect
from penstock.testing.sink_contract import Crash, crash_at

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Order(Event):
    id: int
    customer: str
    price: float
    at: datetime = NOON


@dataclass(frozen=True)
class Priced(Event):
    id: str
    order: int
    price: float
    by: str
    at: datetime = NOON


@dataclass(frozen=True)
class Counted(Event):
    id: str
    customer: str
    orders: int
    at: datetime = NOON


@dataclass
class World:
    """A topic of orders which a thread fills all the time, and two versions of a pipeline that reads it."""

    settings: Settings
    spark: Any
    name: str
    orders: Topic[Order]
    versions: dict[str, Pipeline]
    sent: list[Order] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def send(self, count: int, seconds: int = 0) -> None:
        """Send orders of five customers, so many seconds of event time apart."""
        numbers = range(len(self.sent), len(self.sent) + count)
        made = [Order(n, f"c{n % 5}", 1.5, NOON + n * timedelta(seconds=seconds)) for n in numbers]
        with Producer(self.settings) as producer:
            producer.send_all(self.orders, made)
        self.sent += made

    def begin_load(self) -> None:
        def load() -> None:
            while not self._ending.wait(0.05):
                self.send(3)

        self._thread = threading.Thread(target=load, daemon=True)
        self._thread.start()

    def end_load(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join(30)

    def run(self, version: str) -> None:
        with Runner(self.versions[version], self.settings, spark=self.spark, once=True) as runner:
            runner.wait(120)

    def shadow(self, version: str, flow: str = "flow", **options: Any) -> None:
        job = shadow(self.versions[version], flow, self.settings, self.spark, **options)
        with Runner(self.versions[version], self.settings, jobs=[job], once=True, spark=self.spark) as runner:
            runner.wait(120)

    def do(self, command, version: str, flow: str = "flow", **options: Any):
        return command(self.versions[version], flow, self.settings, self.spark, **options)

    def crash(self, monkeypatch, point: str, command, version: str) -> None:
        with monkeypatch.context() as patched:
            crash_at(patched, point)
            with pytest.raises(Crash):
                self.do(command, version)

    def ask(self, statement: str):
        with psycopg.connect(reveal(self.settings.dsn()), autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    def events(self, topic: Topic[Any]) -> list[Any]:
        return read(self.spark, topic, self.settings).collect()


def begun(runner: Runner) -> None:
    deadline = time.monotonic() + 60
    while any(run.status != "running" for run in runner.runs.values()):
        assert time.monotonic() < deadline, "it did not begin"
        time.sleep(0.1)


@pytest.fixture
def world(settings, spark, unique):
    name = f"v{unique}"
    orders = Topic(f"orders.{name}", Order, key="customer", partitions=2)
    apply([orders], Broker(settings))
    made = World(settings, spark, name, orders, {})
    yield made
    made.end_load()


def spending(world: World, version: str, factor: float, **options: Any) -> None:
    pipeline = world.versions[version] = Pipeline(world.name)
    target = PostgresTable(world.name, key="customer", write="upsert", **options)

    @pipeline.flow(name="flow", reads={"orders": world.orders}, writes=target, version=version)
    def spent(orders):
        total = F.sum(F.col("price") * factor).alias("total")
        return orders.groupBy("customer").agg(total, F.count("*").alias("orders"))


def spent_by(world: World, factor: float) -> list[tuple]:
    counts = Counter(order.customer for order in world.sent)
    return sorted((customer, n * 1.5 * factor, n) for customer, n in counts.items())


def rows_of(world: World) -> list[tuple]:
    return sorted(world.ask(f"select customer, total, orders from {world.name}"))


def test_a_table_is_swapped_in_with_a_new_column_and_rolled_back(world):
    spending(world, "1", 1.0, columns=("id", "customer", "total"))
    spending(world, "2", 2.0)
    world.send(15)
    world.run("1")
    world.shadow("2")
    refused = world.do(swap, "2", at_most=4)
    assert not refused.swapped
    assert (refused.difference.different, refused.difference.same) == (5, 0), "in columns that both have"
    assert world.do(diff, "2", ignore=("total",)).differences == 0
    assert '"total":4.5' in refused.difference.examples[0].live
    assert '"total":9.0' in refused.difference.examples[0].shadow
    columns = f"select column_name from information_schema.columns where table_name = '{world.name}'"
    assert sorted(world.ask(columns)) == [("customer",), ("id",), ("total",)], "it is as it was"
    assert world.do(swap, "2", at_most=5).swapped
    world.send(5)
    world.run("2")
    assert rows_of(world) == spent_by(world, 2.0)
    assert world.do(rollback, "1").swapped
    world.run("1")
    assert sorted(world.ask(f"select customer, total from {world.name}")) == [
        row[:2] for row in spent_by(world, 1.0)
    ]


@pytest.mark.long
def test_a_table_changes_hands_under_load_and_back(world, monkeypatch):
    spending(world, "1", 1.0)
    spending(world, "2", 2.0)
    world.send(20)
    world.begin_load()
    with Runner(world.versions["1"], world.settings, spark=world.spark) as live:
        begun(live)
        world.shadow("2")
    with pytest.raises(FlowError, match="made by another version"):
        world.do(swap, "1")
    refused = world.do(swap, "2", at_most=4)
    assert not refused.swapped
    assert (refused.difference.different, refused.difference.same) == (5, 0)
    assert refused.difference.exact
    world.run("1")
    for point in ("swap.begun", "swap.placed"):
        world.crash(monkeypatch, point, swap, "2")
        with pytest.raises(FlowError, match="run `penstock swap"):
            world.run("1")
    assert world.do(swap, "2").swapped
    world.end_load()
    world.run("2")
    assert rows_of(world) == spent_by(world, 2.0)
    world.send(5)
    world.crash(monkeypatch, "swap.placed", rollback, "1")
    for other in (swap, rebuild):
        with pytest.raises(FlowError, match="run `penstock rollback"):
            world.do(other, "2")
    assert world.do(rollback, "1").swapped
    world.run("1")
    assert rows_of(world) == spent_by(world, 1.0)
    assert world.do(rollback, "2").swapped, "and forth again"
    world.run("2")
    assert rows_of(world) == spent_by(world, 2.0)


@pytest.mark.long
def test_a_table_with_another_key_and_another_column_is_swapped_in(world):
    pipelines = {
        "1": ("customer", ("customer", "total")),
        "2": (("customer", "kind"), ("customer", "kind", "total")),
    }
    for version, (key, columns) in pipelines.items():
        pipeline = world.versions[version] = Pipeline(world.name)
        target = PostgresTable(world.name, key=key, write="upsert", columns=columns)

        @pipeline.flow(name="flow", reads={"orders": world.orders}, writes=target, version=version)
        def spent(orders):
            kind = F.when(F.col("id") < 5, "early").otherwise("late").alias("kind")
            return orders.select("customer", kind, F.col("price").alias("total"))

    world.send(10)
    world.run("1")
    epoch = f"select epoch from penstock.ledger where sink = '{world.name}.flow'"
    before = world.ask(epoch)
    world.shadow("2")
    assert world.do(swap, "2").swapped
    assert world.ask(epoch) > before, "who writes the former one is shut out"
    world.send(5)
    world.run("2")
    assert world.ask(f"select kind, count(*) from {world.name} group by 1 order by 1") == [
        ("early", 5),
        ("late", 5),
    ]
    assert world.do(rollback, "1").swapped
    world.run("1")
    assert world.ask(f"select count(*) from {world.name}") == [(5,)]


def replay(world: World, version: str) -> tuple[Runner, list[str]]:
    reported: list[str] = []
    runner = Runner(
        world.versions[version],
        world.settings,
        mode="replay",
        once=True,
        spark=world.spark,
        report=lambda _, what: reported.append(what),
    )
    return runner, reported


@pytest.mark.long
def test_a_replay_knows_how_much_it_has_read(world):
    spending(world, "1", 1.0)
    world.send(200)
    runner, _ = replay(world, "1")
    progress = ReplayProgress(world.spark, world.settings, [*world.versions["1"].flows.values()])
    with runner:
        while not runner.wait(0.1):
            progress.look()
    assert runner.runs["flow"].has_written
    assert progress.estimate.there == 200
    assert progress.look().read == 200
    assert rows_of(world) == spent_by(world, 1.0)
    again, reported = replay(world, "1")
    with again:
        again.wait(60)
    assert not again.runs["flow"].has_written
    assert "its replay was done before, up to 200 offsets: nothing was written" in reported


@pytest.mark.long
def test_a_replay_shuts_no_stream_out(world):
    spending(world, "1", 1.0)
    world.send(10)
    with Runner(world.versions["1"], world.settings, spark=world.spark) as live:
        begun(live)
        refused, _ = replay(world, "1")
        with pytest.raises(FlowError, match="a replay would write all of the log again"), refused:
            refused.wait(60)
        world.send(10)
        deadline = time.monotonic() + 60
        while rows_of(world) != spent_by(world, 1.0) and time.monotonic() < deadline:
            live.wait(0.5)
    assert rows_of(world) == spent_by(world, 1.0)


def pricing(world: World, version: str, priced: Topic[Priced], **options: Any) -> None:
    pipeline = world.versions[version] = Pipeline(world.name)

    @pipeline.flow(name="flow", reads={"orders": world.orders}, writes=priced, version=version, **options)
    def prices(orders):
        changed = F.when(F.col("id") % 10 == 0, F.lit(float(version))).otherwise(F.col("price"))
        return orders.select(
            F.col("id").alias("order"), changed.alias("price"), F.lit(version).alias("by"), "at", "_source"
        )


@pytest.mark.long
def test_a_topic_changes_hands_under_load_and_back(world, monkeypatch):
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.send(20)
    world.begin_load()
    with Runner(world.versions["1"], world.settings, spark=world.spark) as live:
        begun(live)
        world.shadow("2")
        found = world.do(diff, "2", ignore=("by",))
        assert found.exact, "although it runs"
        assert found.differences == found.different >= 2
        assert found.differences < (found.same + found.differences) / 5
        assert '"price":2.0' in found.examples[0].shadow
    for point in ("swap.begun", "swap.rolled-back", "swap.placed"):
        world.crash(monkeypatch, point, swap, "2")
    assert world.do(swap, "2").swapped
    world.run("2")
    assert world.do(rollback, "1").swapped
    world.end_load()
    world.run("1")
    events = world.events(priced)
    assert sorted(each.order for each in events) == [order.id for order in world.sent], "each once"
    assert {each.by for each in events} == {"1", "2"}
    assert not Broker(world.settings).topics([f"{priced.name}.g0"])
    by_customer: dict[str, list] = {}
    for each in sorted(events, key=lambda each: each.order):  # as they were sent
        by_customer.setdefault(world.sent[each.order].customer, []).append(each.by)
    for versions in by_customer.values():
        changes = [one for one, other in pairwise(versions) if one != other]
        assert len(changes) <= 2, "one version ends where the other begins"


def orders_of(world: World, priced: Topic[Priced]) -> list[int]:
    return sorted(each.order for each in world.events(priced))


@pytest.mark.long
def test_a_flow_that_is_started_while_both_are_compared_is_not_replaced(world, monkeypatch):
    """As by a supervisor: what it emits then would be emitted again by the other one."""
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.send(10)
    world.run("1")
    world.shadow("2")

    def meanwhile(*given):
        world.send(5)
        world.run("1")
        return compared(*given)

    with monkeypatch.context() as patched:
        patched.setattr(swapping, "compared", meanwhile)
        with pytest.raises(FlowError, match="was started again meanwhile"):
            world.do(swap, "2", at_most=1000)
    world.send(5)
    world.run("1")
    assert world.do(swap, "2").swapped
    world.send(5)
    world.run("2")
    assert orders_of(world, priced) == [order.id for order in world.sent], "each once"
    statuses = [each for each in flow_statuses(world.settings) if each.identity.pipeline == world.name]
    assert 0 not in {each.generation for each in statuses}, "the former one's last word is over"


@pytest.mark.long
def test_a_topic_that_was_swapped_loses_its_checkpoint_and_begins_anew(world):
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.send(10)
    world.run("1")
    world.shadow("2")
    assert world.do(swap, "2").swapped
    identity = Identity.of("", world.name, "flow")
    generations = Generations(world.spark, world.settings, identity)
    folder = generations.at_work().folder(world.settings.flows)
    world.send(5)
    world.run("2")
    shutil.rmtree(f"{folder}/checkpoint")
    world.send(5)
    for _ in range(2):
        run = Runner(world.versions["2"], world.settings, spark=world.spark, once=True, from_ledger=True)
        with run:
            run.wait(120)
    world.send(5)
    world.run("2")
    assert orders_of(world, priced) == [order.id for order in world.sent], "each once"
    with Runner(world.versions["2"], world.settings, spark=world.spark, once=True, begin_anew=True) as anew:
        anew.wait(120)
    assert orders_of(world, priced) == sorted(2 * [order.id for order in world.sent])
    assert generations.read().cut == {}


@pytest.mark.long
def test_a_position_of_a_topic_that_was_made_again_is_not_cut_over(world):
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.send(10)
    world.run("1")
    Broker(world.settings).delete(world.orders.name)
    apply([world.orders], Broker(world.settings))
    world.send(30)
    world.shadow("2")
    with pytest.raises(TopicError, match=r"made again .* --begin-anew"):
        world.do(swap, "2")
    assert not Generations(world.spark, world.settings, Identity.of("", world.name, "flow")).read().swapping


@pytest.mark.long
def test_what_spark_has_written_by_itself_is_not_swapped_whatever_the_declaration_says(world):
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced, guarantee="at-least-once")
    world.send(10)
    world.run("1")
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.shadow("2")
    with pytest.raises(FlowError, match="was written by Spark itself"):
        world.do(swap, "2")


def between(monkeypatch, wanted: str, act) -> None:
    """Let something happen at the first time that a process passes a point, while it stands still there."""
    left = [act]

    def sent(_: str, line: str) -> None:
        if line.split()[1] == wanted and left:
            left.pop()()

    monkeypatch.setenv(points.VARIABLE, "nobody listens")
    monkeypatch.setattr(points, "_send", sent)


def elsewhere(world: World, version: str) -> _Swap:
    """A swap on another machine, which the lock of the data folder does not reach."""
    pipeline = world.versions[version]
    return _Swap(Versions(pipeline, pipeline.flows["flow"], world.settings, world.spark))


@pytest.mark.long
def test_a_swap_that_wakes_up_late_lets_nothing_be_emitted_twice(world, monkeypatch):
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    pricing(world, "1", priced)
    pricing(world, "2", priced)
    world.send(10)
    world.run("1")
    world.shadow("2")

    def complete() -> None:
        assert elsewhere(world, "2").swap(None, Compared(), lambda: True).swapped
        world.send(5)
        world.run("2")

    with monkeypatch.context() as patched:
        between(patched, "swap.begun", complete)
        with pytest.raises(FencedError, match="another process has ended the swap"):
            world.do(swap, "2")
    world.send(5)
    world.run("2")
    assert orders_of(world, priced) == [order.id for order in world.sent], "each once"


@pytest.mark.long
def test_a_swap_that_wakes_up_late_exchanges_no_table_that_was_rolled_back(world, monkeypatch):
    spending(world, "1", 1.0)
    spending(world, "2", 2.0)
    world.send(10)
    world.run("1")
    world.shadow("2")

    def complete() -> None:
        assert elsewhere(world, "2").swap(None, Compared(), lambda: True).swapped
        assert elsewhere(world, "1").turn_back(lambda: True).swapped

    with monkeypatch.context() as patched:
        between(patched, "swap.begun", complete)
        with pytest.raises(FencedError, match="another process has ended the swap"):
            world.do(swap, "2")
    assert rows_of(world) == spent_by(world, 1.0)
    world.send(5)
    world.run("1")
    assert rows_of(world) == spent_by(world, 1.0)


@dataclass(frozen=True)
class Refund(Event):
    id: int
    price: float
    at: datetime = NOON


def pricing_both(world: World, version: str, refunds: Topic[Refund], priced: Topic[Priced]) -> None:
    pipeline = world.versions[version] = Pipeline(world.name)
    reads = {"orders": world.orders, "refunds": refunds}

    @pipeline.flow(name="flow", reads=reads, writes=priced, version=version)
    def prices(orders, refunds):
        both = orders.select("id", "price", "at").union(refunds.select("id", "price", "at"))
        return both.select(F.col("id").alias("order"), "price", F.lit(version).alias("by"), "at")


@pytest.mark.long
def test_the_past_of_a_topic_more_is_not_lost_in_silence(world):
    refunds = Topic(f"refunds.{world.name}", Refund, key="id")
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    apply([refunds], Broker(world.settings))
    pricing(world, "1", priced)
    pricing_both(world, "2", refunds, priced)
    with Producer(world.settings) as producer:
        producer.send_all(refunds, [Refund(-1, 1.0)])
    world.send(5)
    world.run("1")
    world.shadow("2")
    with pytest.raises(FlowError, match=rf"reads '{refunds.name}', which the version at work has not read"):
        world.do(swap, "2")
    world.send(5)
    world.run("1")
    assert orders_of(world, priced) == [order.id for order in world.sent], "it goes on"


@pytest.mark.long
def test_a_topic_of_which_nothing_came_yet_is_one_that_was_read(world):
    refunds = Topic(f"refunds.{world.name}", Refund, key="id")
    priced = Topic(f"priced.{world.name}", Priced, key="order", partitions=2)
    apply([refunds], Broker(world.settings))
    pricing_both(world, "1", refunds, priced)
    pricing_both(world, "2", refunds, priced)
    world.send(5)
    world.run("1")
    world.shadow("2")
    assert world.do(swap, "2").swapped
    with Producer(world.settings) as producer:
        producer.send_all(refunds, [Refund(-1, 1.0)])
    world.run("2")
    assert orders_of(world, priced) == [-1, *(order.id for order in world.sent)]


@pytest.fixture
def tables(settings, unique):
    """A table, and another one that is to take its place."""
    live = PostgresTable(f"t{unique}", key="id", write="upsert")
    with connect(live.address(settings), "test") as connection:
        ledger.prepare(connection)
        for name, id in ((live.name, 1), (live.beside("g7").name, 7)):
            connection.execute(f"create table {name} (id bigint primary key)")
            connection.execute(f"insert into {name} values ({id})")
        yield live, connection


def ids(connection, name: str) -> list[int]:
    return [row[0] for row in connection.execute(f"select id from {name}")]


def test_a_table_that_is_held_is_waited_for_briefly(tables, settings, monkeypatch):
    """Whoever would read it waits behind the swap: not for as long as somebody else's report takes."""
    live, connection = tables
    monkeypatch.setattr(postgres_swap, "_TRIES", 2)
    with psycopg.connect(reveal(settings.dsn()), application_name="a report") as report:
        report.execute(f"select * from {live.name}, {live.name}__g7")
        began = time.monotonic()
        held = r"is held by process \d+ of \w+ \(a report\); .* the same command again"
        with pytest.raises(SinkError, match=held):
            live.exchange(live.beside("g7"), live.beside("g0"), settings)
        with pytest.raises(SinkError, match=held):
            live.beside("g7").remove(settings)
        assert time.monotonic() - began < 30
        assert ids(connection, live.name) == [1]
    live.exchange(live.beside("g7"), live.beside("g0"), settings)
    assert (ids(connection, live.name), ids(connection, f"{live.name}__g0")) == ([7], [1])


def test_a_table_that_is_free_after_a_while_changes_hands(tables, settings):
    live, connection = tables
    report = psycopg.connect(reveal(settings.dsn()))
    report.execute(f"select * from {live.name}")
    threading.Timer(3, report.close).start()
    live.exchange(live.beside("g7"), live.beside("g0"), settings)
    assert ids(connection, live.name) == [7]


def test_of_two_swaps_of_a_table_the_second_one_sees_what_the_first_has_done(tables, settings):
    live, connection = tables
    given = (live, live.beside("g7"), live.beside("g0"))
    second = threading.Timer(0.5, lambda: done.append(live.exchange(*given[1:], settings)))
    done: list[None] = []
    with connect(live.address(settings), "first") as first, first.transaction():
        postgres_swap._swap(first, *given)
        second.start()
        time.sleep(1.5)
    second.join(30)
    assert done == [None], "it was swapped before"
    assert (ids(connection, live.name), ids(connection, f"{live.name}__g0")) == ([7], [1])


def counting(world: World, version: str, counted: Topic[Counted], step: int = 1) -> None:
    pipeline = world.versions[version] = Pipeline(world.name)

    @pipeline.flow(name="flow", reads={"orders": world.orders}, writes=counted, version=version)
    def counts(orders):
        grouped = orders.groupBy("customer").agg((F.count("*") * step).cast("int").alias("orders"))
        return grouped.withColumn("at", F.lit(NOON))


def counts_of(world: World, counted: Topic[Counted]) -> list[tuple[str, int]]:
    return sorted((each.customer, each.orders) for each in world.events(counted))


def crash_once(monkeypatch, wanted: str) -> list[str]:
    """Let a flow fail at the first time that it passes a point, as if it were started anew there."""
    passed: list[str] = []

    def sent(_: str, line: str) -> None:
        if line.split()[1] == wanted:
            passed.append(wanted)
            if len(passed) == 1:
                raise Crash(wanted)

    monkeypatch.setenv(points.VARIABLE, "nobody listens")
    monkeypatch.setattr(points, "_send", sent)
    return passed


@pytest.mark.long
def test_state_comes_along_although_it_is_ahead_or_behind(world, monkeypatch):
    counted = Topic(f"counted.{world.name}", Counted, key="customer")
    counting(world, "1", counted)
    counting(world, "2", counted, step=100)
    world.send(5)
    world.run("1")
    world.send(5)
    world.shadow("2")  # it is ahead, by what nobody has written to the topic yet
    assert world.do(swap, "2").swapped
    with monkeypatch.context() as patched:
        passed = crash_once(patched, "swap.passed")
        world.run("2")
    assert len(passed) == 2
    by_both = sorted([*((f"c{n}", 1) for n in range(5)), *((f"c{n}", 200) for n in range(5))])
    assert counts_of(world, counted) == by_both, "the new one begins behind the other, with the state of all"
    assert world.do(rollback, "1").swapped
    with monkeypatch.context() as patched:
        crash_once(patched, "swap.advanced")
        world.run("1")
    assert counts_of(world, counted) == by_both, "it catches up and writes nothing"
    world.send(5)
    world.run("1")
    assert counts_of(world, counted) == sorted([*by_both, *((f"c{n}", 3) for n in range(5))])


@pytest.mark.long
def test_what_is_refused_says_what_to_do(world):
    spending(world, "1", 1.0)
    spending(world, "2", 2.0)
    with pytest.raises(FlowError, match=r"has no shadow.*penstock shadow"):
        world.do(diff, "1")
    with pytest.raises(FlowError, match="no former version"):
        world.do(rollback, "1")
    world.send(5)
    world.run("1")
    world.shadow("2")
    with pytest.raises(FlowError, match=r"has a shadow.*--discard"):
        world.do(rebuild, "1")
    world.send(5)
    world.shadow("2")
    with pytest.raises(FlowError, match=r"5 events apart.*--once"):
        world.do(swap, "2", at_most=0)
    late = shadow(world.versions["2"], "flow", world.settings, world.spark)
    assert world.do(discard_shadow, "2")
    with pytest.raises(FlowError, match=r"has no shadow"):
        world.do(swap, "2")
    oldest = {
        number: 1 for number, (_, end) in Broker(world.settings).offsets(world.orders.name).items() if end
    }
    Broker(world.settings).delete_records(world.orders.name, oldest)
    with pytest.raises(DataLossError, match=r"the oldest events .* were deleted.* --partial"):
        world.shadow("2")
    world.shadow("2", partial=True)
    world.shadow("2")
    with (
        pytest.raises(FencedError, match="not being built any more"),
        Runner(world.versions["2"], world.settings, jobs=[late], spark=world.spark) as runner,
    ):
        runner.wait(60)
    tables = world.ask(f"select tablename from pg_tables where tablename like '{world.name}%'")
    assert len(tables) == 2


@dataclass(frozen=True)
class Pulse(Event, time="end"):
    customer: str
    start: datetime
    end: datetime
    kind: str
    rows: int


def pulsing(world: World, version: str, pulses: Topic[Pulse], factor: int, delay: str = "1 second") -> None:
    pipeline = world.versions[version] = Pipeline(world.name)
    tens = windows.tumbling("10 seconds", time="at", by="customer", watermark=delay)

    @pipeline.flow(
        name="flow", reads={"orders": world.orders}, writes=pulses, output="append", version=version
    )
    def counts(orders):
        return orders.transform(tens.agg((F.count("*") * factor).alias("rows")))


@pytest.mark.long
def test_windows_are_emitted_by_one_version_or_the_other(world):
    pulses = Topic(f"pulses.{world.name}", Pulse, key="customer")
    pulsing(world, "1", pulses, 1)
    pulsing(world, "2", pulses, 100)
    world.send(30, seconds=1)
    world.run("1")
    world.shadow("2")
    found = world.do(diff, "2")
    assert (found.key, found.same, found.differences) == (("customer", "start", "end"), 0, 10)
    assert found.windows == 2
    assert world.do(swap, "2").swapped
    world.send(30, seconds=1)
    world.run("2")
    assert world.do(rollback, "1").swapped
    world.send(30, seconds=1)
    world.run("1")
    emitted = sorted((each.start, each.rows) for each in world.events(pulses))
    starts = [start for start, _ in emitted]
    assert set(Counter(starts).values()) == {5}, "each window once for each customer"
    assert [rows for _, rows in emitted] == 10 * [2] + 15 * [200] + 15 * [2]


@pytest.mark.long
def test_windows_that_were_computed_in_silence_are_left_to_the_former_version(world):
    """Its watermark is another one at the cut: it is refused, rolled back, and nothing counts as emitted."""
    pulses = Topic(f"pulses.{world.name}", Pulse, key="customer")
    pulsing(world, "1", pulses, 1, "8 seconds")
    pulsing(world, "2", pulses, 100)
    world.send(30, seconds=1)
    world.run("1")
    world.send(30, seconds=1)
    world.shadow("2")  # it is ahead
    assert world.do(swap, "2").swapped
    with pytest.raises(FlowError, match=r"would be emitted twice, or by none.*`penstock rollback`"):
        world.run("2")
    world.shadow("2")
    with pytest.raises(FlowError, match=r"give it up first: `penstock shadow .* --discard`"):
        world.do(rollback, "1")
    assert world.do(discard_shadow, "2")
    assert world.do(rollback, "1").swapped
    world.run("1")
    world.send(30, seconds=1)
    world.run("1")
    starts = Counter(each.start for each in world.events(pulses))
    assert set(starts.values()) == {5}, "each window once for each customer"
    assert len(starts) == 8, "and none is lost"
    assert {each.rows for each in world.events(pulses)} == {2}
