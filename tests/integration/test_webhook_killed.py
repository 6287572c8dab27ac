"""A flow that posts to a webhook is killed with -9, at its crash points and at random moments."""

import json
import random
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from tests import quick
from tests.integration import hooks as module
from tests.integration.hooks import hooks, partner_hook, sales
from tests.integration.shop import make_sales
from tests.integration.test_sink_kafka import read
from tests.receiver import Receiver, wait_for

from penstock.log import Broker, Producer, apply
from penstock.settings import Secret
from penstock.targets.webhook import redrive_webhook, verify_signature, webhook_status
from penstock.targets.webhook.letters import letters_topic
from penstock.testing import CrashHarness

MODULE = str(Path(module.__file__))
SECRET = "hunter2-hunter2"
FLOW = "hooks.partner"


class Feed:
    """Sends sales that no round had before, and keeps their ids."""

    def __init__(self, settings):
        self.settings, self.sent = settings, []

    def __call__(self, _=0, count=60):
        made = make_sales(count, seed=len(self.sent), start=len(self.sent))
        with Producer(self.settings) as producer:
            producer.send_all(sales, made)
        self.sent += [sale.id for sale in made]


def assert_in_order(receiver):
    """Of each key, what comes for the first time comes in the log's order."""
    places, seen = defaultdict(list), set()
    for request in receiver.taken:
        (event,) = request.events
        if request.id not in seen:
            place = tuple(int(request.headers[f"penstock-{name}"]) for name in ("partition", "offset"))
            places[event["customer"]].append(place)
            seen.add(request.id)
    assert all(each == sorted(each) for each in places.values())


@pytest.mark.long
@pytest.mark.timeout(400)
def test_no_kill_loses_an_event(settings, spark, tmp_path):
    receiver, chance = Receiver(), random.Random(11)
    refused = {f"sale-{number}" for number in range(0, 2000, 97)}
    trouble = (500, "drop", "close", (429, {"Retry-After": "0"}))

    def decide(seen):
        time.sleep(0.002)
        if seen.id in refused:
            return (422, {}, "not this one")
        return chance.choice(trouble) if chance.random() < 0.05 else 200

    receiver.decide = decide
    partner = {"url": receiver.url, "secret": SECRET}
    place = replace(
        settings,
        data=tmp_path,
        spark=quick.SPARK | {"spark.sql.shuffle.partitions": "2"},
        connections={"partner": partner},
    )
    apply([sales], Broker(place))
    feed = Feed(place)
    harness = CrashHarness(hooks, MODULE, place, feed=feed, timeout=120)
    try:
        for number, point in enumerate(("sink.webhook.sent", "sink.webhook.committed")):
            assert harness.kill_at({"partner": point}, number) == {FLOW: point}
        for _ in range(3):
            wanted = len(receiver.all) + chance.randrange(150)
            harness.driver.start()
            feed(count=200)
            wait_for(lambda wanted=wanted: len(receiver.all) > wanted, 90)
            harness.driver.kill()
        report = harness.run(spark, rounds=[{"partner": "flow.written"}])
    finally:
        harness.close()
    assert report.ok, report.verifications
    sent = set(feed.sent)
    dead = {json.loads(message.value())["id"] for message in read(place, letters_topic(FLOW))}
    assert dead == refused & sent
    assert receiver.ids() == sent - dead
    status = webhook_status(place, FLOW)
    assert (status.delivered, status.dead) == (len(sent) - len(dead), len(dead))
    assert_in_order(receiver)
    again = sum(receiver.times().values()) - len(receiver.ids())
    assert again < 1000, "progress within a batch is written down"
    for seen in receiver.taken:
        assert verify_signature(Secret(SECRET), seen.headers, seen.body, now=time.time()) == seen.id
    receiver.decide = 200
    assert redrive_webhook(partner_hook, FLOW, place).sent == len(dead)
    assert receiver.ids() == sent
    receiver.stop()
