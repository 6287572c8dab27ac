"""Tables beside recent events: the latest row of the key, as a stream, in replay and in real time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import functions as F
from tests.integration.cards import SOURCE, START, Known, Payment, Profile

from penstock.errors import FlowError
from penstock.log import Broker, Consumer, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import keyed
from penstock.testing import Feed

PAYMENTS = f"card string, n int, at timestamp, {SOURCE}"
PROFILES = f"card string, home string, _deleted boolean, {SOURCE}"


def judged(payments, profiles):
    recent = keyed.recent(by="card", time="at", within="1 minute", at_most=3, tables={"profile": profiles})
    return payments.transform(recent).select("event.n", "profile.home", keyed.count().alias("count"))


def make_log(seed):
    """Payments and changes of profiles, as they were written; some rows are deleted and come again."""
    random, log, pays = Random(seed), [], True
    for number in range(90):
        pays ^= random.random() < 0.2  # some of a kind in a row: each change of sides is a batch
        card, place = random.choice((None, "a", "b", "c", "d")), START + timedelta(seconds=number)
        source = ("t", 0, number, place)
        if pays:
            log.append(("payments", (card, number, place - timedelta(seconds=random.randrange(5)), source)))
        else:
            home = None if random.random() < 0.3 else f"home{number}"
            log.append(("profiles", (card, home, home is None, source)))
    return log


def expected(log):
    homes, emitted = {}, {}
    for side, (card, value, *_) in log:
        if side == "profiles":
            homes[card] = value
        else:
            emitted[value] = homes.get(card)
    return emitted


def test_the_latest_row_of_the_key_as_a_stream_and_in_replay(spark):
    log = make_log(5)
    with Feed(spark, judged, output="update", payments=PAYMENTS, profiles=PROFILES) as feed:
        batch = []
        for (side, row), (following, _) in zip(log, [*log[1:], (None, None)], strict=True):
            batch.append(row)
            if following != side:
                feed.send(**{side: batch})
                batch = []
    streamed = {row.n: (row.home, row["count"]) for row in feed.results}
    frames = {
        side: spark.createDataFrame([row for name, row in log if name == side], schema)
        for side, schema in (("payments", PAYMENTS), ("profiles", PROFILES))
    }
    replayed = {row.n: (row.home, row["count"]) for row in judged(**frames).collect()}
    assert {n: home for n, (home, _) in streamed.items()} == expected(log)
    assert replayed == streamed
    assert len(feed.results) == len(streamed)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_in_real_time_with_a_row_that_changes_and_goes(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path)
    payments = Topic("beside.payments", Payment, key="card")
    profiles = Table("beside.profiles", Profile, key="card")
    results = Topic("beside.judged", Known, key="card")
    apply([payments, profiles], Broker(place))
    pipeline = Pipeline("beside")

    @pipeline.flow(
        reads={"payments": payments, "profiles": profiles},
        writes=results,
        mode="realtime",
        checkpoint_interval="5 seconds",
    )
    def judge(payments, profiles):
        recent = keyed.recent(by="card", time="at", within="1 minute", tables={"profile": profiles})
        emitted = payments.transform(recent)
        return emitted.select("event.id", "event.card", "event.at", F.col("profile.home").alias("home"))

    with (
        Runner(pipeline, place, spark=spark),
        Consumer(results, place) as consumer,
        Producer(place) as producer,
    ):
        heard = consumer.records(idle="60 seconds")

        def home():
            """Ask until it is answered differently: the two topics are not read in one order."""
            producer.send(payments, Payment("c", datetime.now(UTC)))
            producer.flush()
            return next(heard).event.home

        def until(wanted):
            return next(found for _ in range(200) if (found := home()) == wanted)

        assert home() is None
        producer.send(profiles, Profile("c", "Vienna", START))
        assert until("Vienna")
        producer.send(profiles, Profile("c", "Graz", START))
        assert until("Graz")
        producer.delete(profiles, "c")
        assert until(None) is None


def test_tables_are_checked(spark):
    rows = spark.createDataFrame([], "card string, home string")
    with pytest.raises(FlowError, match="'profile' has no column '_source'"):
        keyed.recent(by="card", time="at", within="1 minute", tables={"profile": rows})
    profiles = spark.createDataFrame([], PROFILES)
    with pytest.raises(FlowError, match="a watermark has no use"):
        keyed.recent(
            by="card", time="at", within="1 minute", watermark="1 minute", tables={"profile": profiles}
        )
    events = spark.createDataFrame([], "card string, at timestamp")
    with pytest.raises(FlowError, match="have no '_source'"):
        events.transform(keyed.recent(by="card", time="at", within="1 minute", tables={"profile": profiles}))
