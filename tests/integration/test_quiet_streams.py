"""A stream that has become quiet: its last windows close by the clock."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner, verify
from penstock.pipeline.conservation import Conservation
from penstock.process import windows
from penstock.process.windows import Watermark, agg


@dataclass(frozen=True)
class Beat(Event):
    heart: str
    at: datetime


@dataclass(frozen=True)
class Pulse(Event, time="end"):
    heart: str
    start: datetime
    end: datetime
    kind: str
    rows: int


beats = Topic("quiet.beats", Beat, key="heart", partitions=2)
native = Topic("quiet.native", Pulse, key="heart")
stateful = Topic("quiet.stateful", Pulse, key="heart")


def pulses(idle: str | None) -> Pipeline:
    """Beats in every ten seconds, natively, and in every twenty with a late policy."""
    pipeline, patient = Pipeline("quiet"), Watermark("10 minutes", idle=idle)
    tens = windows.tumbling("10 seconds", time="at", by="heart", watermark=patient)
    twenties = windows.hopping(
        "20 seconds", every="10 seconds", time="at", by="heart", watermark=patient, buckets=2
    )

    @pipeline.flow(reads={"beats": beats}, writes=native, output="append")
    def natively(beats: DataFrame) -> DataFrame:
        return beats.transform(tens.agg(F.count("*").alias("rows")))

    @pipeline.flow(reads={"beats": beats}, writes=stateful)
    def with_state(beats: DataFrame) -> DataFrame:
        return beats.transform(twenties.agg(latest=agg.max("at"))).drop("latest")

    return pipeline


@pytest.mark.long
@pytest.mark.timeout(200)
def test_the_windows_of_a_quiet_stream_close(settings, spark, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([beats], Broker(settings))
    now = datetime.now(UTC)
    sent = [Beat("a", now - timedelta(minutes=1)), Beat("a", now), Beat("b", now)]
    with Producer(settings) as producer:
        producer.send_all(beats, sent)
    with Runner(pulses("2 seconds"), place, spark=spark) as runner:
        for topic, rows in ((native, len(sent)), (stateful, 2 * len(sent))):
            found = emitted(topic, settings, runner, rows)
            assert {(each.kind, each.rows) for each in found} == {("on time", 1)}
    verifications = {each.flow: each for each in verify(pulses("2 seconds"), place, spark)}
    assert verifications["natively"].ok, verifications["natively"]
    assert (verifications["natively"].expected, verifications["natively"].found) == (3, 3)
    assert verifications["with_state"].windows == Conservation(
        taken=6, emitted=6, waiting=0, sent=0, dropped=0
    )


@pytest.mark.timeout(200)
def test_idle_begins_with_the_first_event(settings, spark, tmp_path):
    """A flow that has waited long for its first events has not moved its watermark meanwhile."""
    pipeline, first = Pipeline("quiet-start"), Topic("quiet.first", Beat, key="heart")
    soon = Watermark("1 second", idle="1 second")
    tens = windows.tumbling("10 seconds", time="at", by="heart", watermark=soon)
    written = Topic("quiet.counted", Pulse, key="heart")

    @pipeline.flow(reads={"beats": first}, writes=written, output="append")
    def counted(beats: DataFrame) -> DataFrame:
        return beats.transform(tens.agg(F.count("*").alias("rows")))

    with Runner(pipeline, replace(settings, data=tmp_path), spark=spark) as runner:
        while "_penstock_clock.quiet-start.counted" not in Broker(settings).topics():
            assert not runner.wait(0.2)
        time.sleep(6)
        with Producer(settings) as producer:
            producer.send_all(first, [Beat("a", datetime.now(UTC) - timedelta(hours=2 - n)) for n in (0, 1)])
        assert len(emitted(written, settings, runner, 2)) == 2


def emitted(topic, settings, runner, rows):
    """Results of a topic, once they have so many rows."""
    found, deadline = [], time.monotonic() + 90
    with Consumer(topic, settings, group="quiet") as consumer:
        while sum(each.rows for each in found) < rows:
            assert time.monotonic() < deadline, found
            assert not runner.wait(0), found
            found += [record.event for record in consumer.records(idle="500 ms")]
    return found
