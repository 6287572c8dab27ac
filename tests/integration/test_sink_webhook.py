"""The webhook passes the contract of sinks that write at least once; no receiver makes it lose an event."""

import json
import random
from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.integration.test_sink_kafka import read
from tests.receiver import Receiver

from penstock.errors import SinkError, TargetError
from penstock.log.dead_letters import DeadLetter
from penstock.log.ledger import Entry
from penstock.targets import SinkOptions, Webhook
from penstock.targets.webhook import Blame, Circuit, Retries, redrive_webhook, webhook_status
from penstock.targets.webhook.letters import letters_topic
from penstock.testing.lane_contract import FIRST, SECOND, LaneContract
from penstock.testing.sink_contract import AtLeastOnceContract, Crash, ExactlyOnceContract, batch, numbered

QUICK = {
    "retries": Retries(attempts=4, backoff="10 ms", longest="200 ms"),
    "circuit": Circuit(failures=4, rest="200 ms", wait="2 seconds"),
    "timeout": "1 second",
}


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


def letters(settings, sink):
    return [(message, DeadLetter.from_message(message)) for message in read(settings, letters_topic(sink))]


def own(dead, name):
    return dict(dead.headers)[f"penstock.webhook.{name}"].decode()


class TestWebhook(AtLeastOnceContract):
    opening = ("sink.webhook.claimed",)
    writing = ("sink.webhook.written",)

    @pytest.fixture(autouse=True)
    def listening(self, receiver):
        self.receiver = receiver

    def make_sink(self, spark, settings, unique, guarantee="at-least-once", hook=None, **options):
        hook = hook or Webhook(url=self.receiver.url, **QUICK)
        schema = self.rows(spark, []).schema
        return hook.sink(schema, SinkOptions(settings, unique, guarantee=guarantee, **options))

    def rows(self, spark, numbers):
        return numbered(spark, numbers)

    def contents(self, sink):
        return self.receiver.times().elements()

    test_a_batch_that_was_written_is_skipped = ExactlyOnceContract.test_a_batch_that_was_written_is_skipped
    test_a_zombie_is_refused = ExactlyOnceContract.test_a_zombie_is_refused
    test_rows_are_written_at_most_once_on_request = (
        ExactlyOnceContract.test_rows_are_written_at_most_once_on_request
    )

    def test_whatever_the_receiver_does_every_event_arrives(self, anew, put, settings, unique):
        """Failures of all kinds, for a third of the requests; a sound receiver takes each in the end."""
        chance = random.Random(7)
        kinds = (500, 503, (429, {"Retry-After": "1"}), "hang", "drop", "reset", "part", "close", 408)

        def decide(seen):
            return chance.choice(kinds) if chance.random() < 0.3 else 200

        self.receiver.decide = decide
        hook = Webhook(
            url=self.receiver.url, timeout="300 ms",
            retries=Retries(attempts=20, backoff="5 ms", longest="20 ms"), circuit=Circuit(100),
        )  # fmt: skip
        put(anew(hook=hook), batch(0, 0, 150))
        assert self.receiver.ids() == set(range(150))
        assert webhook_status(settings, unique).delivered == 150
        for seen in self.receiver.all:
            assert seen.id == str(seen.events[0]["id"])

    def test_the_receiver_is_killed_and_started_again(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 10))
        self.receiver.stop()
        with pytest.raises(SinkError, match="can't be reached: Connection refused"):
            put(sink, batch(1, 10, 20))
        self.receiver.start()
        put(sink, batch(1, 10, 20))
        assert sorted(self.contents(sink)) == list(range(20))

    def test_what_is_refused_is_a_dead_letter_and_can_be_redriven(self, anew, put, settings, unique):
        said = "no such number: " + "x" * 5000
        self.receiver.decide = lambda seen: (422, {}, said) if seen.events[0]["id"] % 5 == 0 else 200
        hook = Webhook(url=self.receiver.url, **QUICK)
        put(anew(hook=hook), batch(0, 0, 20))
        assert self.receiver.ids() == {each for each in range(20) if each % 5}
        found = [dead for _, dead in letters(settings, unique)]
        assert sorted(json.loads(dead.value)["id"] for dead in found) == [0, 5, 10, 15]
        for dead in found:
            assert own(dead, "id") == str(json.loads(dead.value)["id"])
            assert (own(dead, "status"), own(dead, "attempts")) == ("422", "1")
            assert own(dead, "response") == said[:2000]
            assert dead.error == "the webhook answered 422"
        status = webhook_status(settings, unique)
        assert (status.delivered, status.dead, status.resting) == (16, 4, 0)
        self.receiver.decide = lambda seen: 422 if seen.events[0]["id"] == 10 else 200
        done = redrive_webhook(hook, unique, settings)
        assert (done.sent, done.still_dead) == (3, 1)
        assert redrive_webhook(hook, unique, settings).still_dead == 1
        self.receiver.decide = 200
        assert redrive_webhook(hook, unique, settings).sent == 1
        assert redrive_webhook(hook, unique, settings).sent == 0
        assert self.receiver.ids() == set(range(20))

    def test_an_outage_burns_no_event_and_progress_is_not_sent_again(self, anew, put, settings, unique):
        """The endpoint fails in the midst of a batch, for longer than a batch waits."""
        self.receiver.decide = lambda seen: 200 if len(self.receiver.taken) < 10 else 503
        sink = anew(lanes=1)
        with pytest.raises(SinkError, match=r"answered 503; 4 failures in a row"):
            put(sink, batch(0, 0, 30))
        assert webhook_status(settings, unique, now=0.0).resting == 1
        asked = len(self.receiver.all)
        with pytest.raises(SinkError, match=r"answered 503"):
            put(sink, batch(0, 0, 30))
        assert len(self.receiver.all) - asked < 15, "an open circuit probes, and does no more"
        self.receiver.decide = 200
        put(anew(), batch(0, 0, 30))
        assert sorted(self.contents(sink)) == list(range(30))
        assert letters(settings, unique) == []
        status = webhook_status(settings, unique)
        assert (status.delivered, status.dead, status.resting) == (30, 0, 0)

    def test_a_batch_goes_as_an_array_and_comes_apart_where_it_is_refused(self, anew, put, settings, unique):
        self.receiver.decide = lambda seen: 400 if any(each["id"] == 7 for each in seen.events) else 200
        put(anew(hook=Webhook(url=self.receiver.url, batch=10, **QUICK), lanes=1), batch(0, 0, 40))
        assert self.receiver.ids() == {*range(40)} - {7}
        assert sorted(len(seen.events) for seen in self.receiver.taken) == [1] * 9 + [10] * 3
        (dead,) = [dead for _, dead in letters(settings, unique)]
        assert own(dead, "id") == "7"

    def test_lines_of_json(self, anew, put):
        hook = Webhook(url=self.receiver.url, batch=10, format="ndjson", **QUICK)
        put(anew(hook=hook, lanes=1), batch(0, 0, 25))
        assert self.receiver.ids() == set(range(25))
        assert self.receiver.taken[0].headers["content-type"] == "application/x-ndjson"
        assert self.receiver.taken[0].headers["penstock-events"] == "10"

    def test_events_of_a_key_come_in_order(self, anew, spark, settings, unique):
        chance = random.Random(3)
        self.receiver.decide = lambda _: 500 if chance.random() < 0.1 else 200
        hook = Webhook(url=self.receiver.url, key="name", **QUICK)
        rows = spark.range(300, numPartitions=3).select(
            "id", (F.col("id") % 7).cast("string").alias("name"), (F.col("id")).alias("_order")
        )
        sink = hook.sink(rows.schema, SinkOptions(settings, unique, guarantee="at-least-once"))
        sink.open()
        sink.write(rows, batch(0, 0, 300))
        seen = defaultdict(list)
        for event in self.receiver.firsts():
            seen[event["name"]].append(event["id"])
        assert len(seen) == 7
        assert all(ids == sorted(ids) for ids in seen.values())
        assert "_order" not in self.receiver.taken[0].events[0]

    def test_what_can_not_be_is_refused(self, spark, settings, unique):
        with pytest.raises(TargetError, match="can't be exactly-once"):
            self.make_sink(spark, settings, unique, guarantee="exactly-once")
        with pytest.raises(TargetError, match="'card', which the results don't have"):
            self.make_sink(spark, settings, unique, hook=Webhook(url=self.receiver.url, key="card"))

    def test_no_secret_is_in_an_error_or_a_letter(self, anew, put, settings, unique, spark):
        hidden = "hunter2-hunter2"
        partner = {"url": self.receiver.url + f"&t={hidden}", "token": hidden, "secret": hidden}
        place = replace(settings, connections={"partner": partner})
        self.receiver.decide = lambda seen: (401, {}, str(seen.headers))
        hook = Webhook(connection="partner", **QUICK)
        sink = self.make_sink(spark, place, unique, hook=hook)
        sink.open()
        with pytest.raises(SinkError, match="webhook connection 'partner' answered 401") as caught:
            put(sink, batch(0, 0, 3))
        assert hidden not in str(caught.value)
        assert hidden not in repr(sink._lanes)
        blamed = Webhook(connection="partner", blame=Blame(event=(401,)), **QUICK)
        sink = self.make_sink(spark, place, unique, hook=blamed)
        sink.open()
        put(sink, batch(0, 0, 3))
        found = letters(settings, unique)
        assert len(found) == 3
        for message, dead in found:
            assert hidden not in str(message.headers())
            assert "'authorization': '***'" in own(dead, "response")


class TestWebhookLanes(LaneContract):
    """What breaks off was sent, and is sent again: that much an endpoint can't undo."""

    @pytest.fixture(autouse=True)
    def listening(self, receiver):
        self.receiver = receiver

    def make_lanes(self, settings, unique):
        hook = Webhook(url=self.receiver.url, **QUICK)
        sink = hook.sink(
            StructType.fromDDL("id int"), SinkOptions(settings, unique, guarantee="at-least-once")
        )
        return sink._lanes

    def batch(self, numbers):
        ids = [str(number) for number in numbers]
        nothing = pa.nulls(len(ids))
        return pa.RecordBatch.from_pydict(
            {
                "id": ids,
                "key": ids,
                "body": [f'{{"id":{id}}}' for id in ids],
                "topic": nothing,
                "partition": nothing,
                "offset": nothing,
            }
        )

    def contents(self):
        return self.receiver.times().elements()

    def test_rows_that_break_off_leave_neither_rows_nor_entry(self, lanes):
        self.put(lanes, range(10), Entry(1, FIRST))

        def broken():
            yield self.batch(range(10, 15))
            raise Crash("in the midst of the rows")

        lane = lanes.open(0)
        with pytest.raises(Crash):
            lane.write(broken(), Entry(1, SECOND))
        lane.close()
        assert self._entry(lanes) == Entry(1, FIRST)
        self.put(lanes, range(10, 20), Entry(1, SECOND))
        assert sorted(self.receiver.ids()) == list(range(20))

    def test_a_zombie_sends_nothing(self, lanes):
        old = lanes.open(0)
        lanes.open(0).close()
        with pytest.raises(SinkError, match="broken in"):
            old.write([self.batch(range(10))], Entry(1, FIRST))
        assert self.receiver.all == []

    def test_a_repeated_batch_goes_on_only_if_it_is_the_same(self, lanes):
        self.receiver.decide = lambda _: 200 if len(self.receiver.taken) < 6 else 401
        with pytest.raises(SinkError):
            self.put(lanes, range(10), Entry(1, FIRST))
        self.receiver.decide = 200
        self.put(lanes, [1, 0, *range(2, 10)], Entry(1, FIRST))
        assert self.receiver.times() == {each: 2 if each < 6 else 1 for each in range(10)}
