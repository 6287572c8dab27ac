"""Events beside tables: the latest row, a table that is loaded first, a database that is asked."""

from dataclasses import replace
from itertools import groupby
from random import Random

import psycopg
import pytest
from tests.integration.cards import SOURCE, START, Known, Payment, Profile, at

from penstock.errors import FlowError
from penstock.log import Broker, Consumer, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.attempt import Attempt
from penstock.process import joins
from penstock.settings import reveal
from penstock.testing import Feed

EVENTS = f"card string, n int, at timestamp, {SOURCE}"
TABLE = f"card string, home string, _deleted boolean, {SOURCE}"


def latest(events, table):
    return events.transform(joins.latest(table, on="card", name="profile"))


def test_the_latest_row_as_a_stream_and_in_replay(spark):
    random, log, homes, expected = Random(3), [], {}, {}
    for number in range(50):
        card, source = random.choice("abc"), ("t", 0, number, at(number))
        if number // 5 % 2:
            log.append(("events", (card, number, at(number), source)))
            expected[number] = homes.get(card)
        else:
            homes[card] = None if random.random() < 0.3 else f"home{number}"
            log.append(("table", (card, homes[card], homes[card] is None, source)))
    with Feed(spark, latest, output="update", events=EVENTS, table=TABLE) as feed:
        for side, rows in groupby(log, key=lambda each: each[0]):  # in a batch, two sources have no order
            feed.send(**{side: [row for _, row in rows]})
        streamed = {row.n: row.profile and row.profile.home for row in feed.results}
    frames = {
        side: spark.createDataFrame([row for of, row in log if of == side], schema)
        for side, schema in (("events", EVENTS), ("table", TABLE))
    }
    replayed = {row.n: row.profile and row.profile.home for row in latest(**frames).collect()}
    assert streamed == expected
    assert replayed == expected


@pytest.mark.timeout(240)
@pytest.mark.parametrize("mode", ["stream", pytest.param("realtime", marks=pytest.mark.long)])
def test_a_table_is_loaded_before_the_first_event(settings, spark, tmp_path, unique, mode):
    """The events were written first, and the table comes in several batches: each event finds its row."""
    place = replace(settings, data=tmp_path)
    payments = Topic(f"{unique}.payments", Payment, key="card")
    profiles = Table(f"{unique}.profiles", Profile, key="card")
    known = Topic(f"{unique}.known", Known, key="card")
    pipeline = Pipeline(unique)
    guarantee = "at-least-once" if mode == "stream" else None

    @pipeline.flow(
        reads={"payments": payments, "profiles": profiles},
        writes=known,
        guarantee=guarantee,
        mode=mode,
        options={"maxOffsetsPerTrigger": "40"} if mode == "stream" else {},
    )
    def find(payments, profiles):
        found = payments.transform(joins.latest(profiles, on="card", name="profile"))
        return found.selectExpr("id", "card", "profile.home as home", "at", "_source")

    cards = [f"card{number}" for number in range(100)]
    apply([payments, profiles], Broker(place))
    with Producer(place) as producer:
        producer.send_all(payments, [Payment(card, START, id=card) for card in cards])
        producer.flush()
        producer.send_all(profiles, [Profile(card, f"home of {card}", START) for card in cards])
    with Runner(pipeline, place, spark=spark, once=True) as runner:
        assert runner.wait(180)
    with Consumer(known, place) as consumer:
        homes = {record.event.card: record.event.home for record in consumer.records(idle="2 seconds")}
    assert homes == {card: f"home of {card}" for card in cards}


@pytest.mark.long
@pytest.mark.timeout(240)
def test_in_real_time_much_that_waits_is_worked_on_in_batches_first(
    settings, spark, tmp_path, unique, monkeypatch
):
    """More than is worth it waits; it is answered by a batch, and what comes then in real time."""
    place = replace(settings, data=tmp_path)
    payments, known = (Topic(f"{unique}.{name}", Known, key="card") for name in ("payments", "known"))
    pipeline = Pipeline(unique)

    @pipeline.flow(
        reads={"payments": payments}, writes=known, mode="realtime", checkpoint_interval="5 seconds"
    )
    def pass_on(payments):
        return payments

    apply([payments], Broker(place))
    runs, run = [], Attempt._run

    def noted(attempt, span, *, until_end):
        runs.append((attempt.job.flow.name, until_end))
        run(attempt, span, until_end=until_end)

    monkeypatch.setattr(Attempt, "_run", noted)
    with Producer(place) as producer:
        producer.send_all(payments, [Known("a", None, at(0), id=f"w{number}") for number in range(6_000)])
    with (
        Runner(pipeline, place, spark=spark),
        Consumer(known, place, deduplicate=True) as consumer,
        Producer(place) as producer,
    ):
        answered = consumer.records(idle="60 seconds")
        assert {next(answered).event.id for _ in range(6_000)} == {f"w{number}" for number in range(6_000)}
        producer.send(payments, Known("a", None, at(1), id="now"))
        producer.flush()
        assert next(answered).event.id == "now"
    assert [until_end for name, until_end in runs if name == "pass_on"] == [True, False]


def test_postgres_is_asked_for_keys(spark, settings, unique):
    table = f"profiles_{unique}"
    with psycopg.connect(reveal(settings.postgres), autocommit=True) as connection:
        connection.execute(f"create table {table} (card text primary key, home text)")
        connection.execute(f"insert into {table} values ('a', 'Vienna'), ('b', null)")
    profiles = joins.Postgres(settings.postgres, f"select card, home from {table} where card = any(%s)")
    remote = joins.remote(profiles, on="card", returns="card string, home string", name="profile")
    rows = spark.createDataFrame([("a",), ("b",), ("c",)], "card string").transform(remote).collect()
    assert {row.card: row.profile and row.profile.home for row in rows} == {
        "a": "Vienna",
        "b": None,
        "c": None,
    }
    assert {row.card: row.profile is None for row in rows} == {"a": False, "b": False, "c": True}


@pytest.mark.long
def test_several_streams_as_one_in_the_order_of_time(spark):
    random = Random(5)
    sides = {"payments": [], "logins": []}
    for number in range(120):
        time = number - random.randrange(8)
        side = random.choice(sorted(sides))
        sides[side].append((random.choice("abc"), number, at(time), (side, 0, number, at(number))))

    def merged(payments, logins):
        return joins.merged(by="card", time="at", watermark="10 seconds", payment=payments, login=logins)

    with Feed(spark, merged, payments=EVENTS, logins=EVENTS) as feed:
        for first in range(0, 120, 30):
            batch = range(first, first + 30)
            feed.send(**{name: [row for row in rows if row[1] in batch] for name, rows in sides.items()})
        feed.advance(at(500))
        streamed = feed.results
    replayed = merged(**{name: spark.createDataFrame(rows, EVENTS) for name, rows in sides.items()}).collect()
    wanted = sorted((row[0], row[2].replace(tzinfo=None), row[1]) for rows in sides.values() for row in rows)
    for rows in (streamed, replayed):
        emitted = [(row.card, row.at, (row.payment or row.login).n) for row in rows]
        assert sorted(emitted) == wanted
        assert all((row.payment is None) == (row.stream == "login") for row in rows)
        for card in "abc":
            own = [each for each in emitted if each[0] == card]
            assert own == sorted(own)


def test_what_can_not_be_joined_is_refused(spark):
    events, table = (spark.createDataFrame([], schema) for schema in (EVENTS, TABLE))
    with pytest.raises(FlowError, match="have a column 'n' already"):
        events.transform(joins.latest(table, on="card", name="n"))
    with pytest.raises(FlowError, match="expected more than 0"):
        joins.remote(print, on="card", returns="card string", rate=0)
    with pytest.raises(FlowError, match="need a column 'user'"):
        events.transform(joins.remote(print, on="user", returns="card string"))
    with pytest.raises(FlowError, match="'login' has no column 'at'"):
        joins.merged(by="card", time="at", watermark="1 second", login=table)
