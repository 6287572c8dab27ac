"""Gateways that are killed under load: every event is written once, and every answer stays what it was."""

import logging
import random
import threading
import time
from collections import Counter, defaultdict
from datetime import UTC, datetime

import confluent_kafka
import httpx
import msgspec
import pytest
from tests.gateway_process import GatewayProcess
from tests.integration.gateway_shop import sales

from penstock.log import Broker, apply
from penstock.testing.listener import PointListener

LOG = logging.getLogger(__name__)
POINTS = ("gateway.sent", "gateway.recorded", "gateway.committed")
CLIENTS, LONGEST = 8, 240.0


class Killer:
    """Kills a gateway and starts it again: held at each point in turn, then at any moment."""

    def __init__(self, settings, seed):
        self.random, self.kills = random.Random(seed), Counter()
        self.wanted, self.held = None, threading.Event()
        self.listener = PointListener(self._decide)
        self.gateway = GatewayProcess(settings, **self.listener.environment)

    def _decide(self, point, _):
        if point != self.wanted:
            return False
        self.wanted = None
        self.held.set()
        return True

    def run(self):
        for point in (*POINTS, None, None):
            self.held.clear()
            self.wanted = point
            if point is None or not self.held.wait(20):
                time.sleep(self.random.uniform(0.2, 1.5))
            self.gateway.kill()
            self.kills[point if self.held.is_set() else "any moment"] += 1
            self.gateway.start()

    def close(self):
        self.gateway.kill()
        self.listener.close()


class Client(threading.Thread):
    """Sends sales with a key each, and repeats a request until it is answered, at either gateway."""

    def __init__(self, name, addresses, ended):
        super().__init__()
        self.customer, self.addresses, self.ended = name, addresses, ended
        self.answers = defaultdict(set)
        self.failures = Counter()
        self.random, self.error = random.Random(name), None

    def run(self):
        try:
            self.send_all()
        except BaseException as error:
            self.error = error
            raise

    def send_all(self):
        number = 0
        with httpx.Client(timeout=40) as http:
            while not self.ended.is_set():
                self.send(http, number)
                if number and self.random.random() < 0.2:
                    self.send(http, self.random.randrange(number))  # one that was answered before
                number += 1

    def send(self, http, number):
        at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
        body = {"customer": self.customer, "number": number, "at": at}
        headers = {"Idempotency-Key": f"{self.customer}/{number}"}
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            address = self.random.choice(self.addresses)
            try:
                answer = http.post(f"{address}/topics/{sales.name}", json=body, headers=headers)
            except httpx.HTTPError as error:
                self.failures[type(error).__name__] += 1
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                (event,) = answer.json()["events"]
                self.answers[number].add((event["partition"], event["offset"], event["id"]))
                return
            assert answer.status_code in (429, 503), answer.text
            self.failures[answer.status_code] += 1
            time.sleep(0.05)
        raise AssertionError(f"{number} was never answered")


def counted(settings):
    """All sales in the topic, read by a plain client of Kafka's."""
    client = confluent_kafka.Consumer(
        {
            **settings.client(),
            "group.id": "count",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    client.assign([confluent_kafka.TopicPartition(sales.name, each, 0) for each in range(sales.partitions)])
    found, ends = defaultdict(list), 0
    while ends < sales.partitions:
        message = client.poll(10)
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ends += 1
            continue
        sale = msgspec.json.decode(message.value())
        place = (message.partition(), message.offset(), sale["id"])
        found[sale["customer"], sale["number"]].append(place)
    client.close()
    return found


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_gateways_write_every_event_once(settings):
    apply([sales], Broker(settings))
    ended = threading.Event()
    killers = [Killer(settings, seed) for seed in (1, 2)]
    clients = [Client(f"c{n}", [each.gateway.address for each in killers], ended) for n in range(CLIENTS)]
    try:
        at_work = [*clients, *(threading.Thread(target=each.run) for each in killers)]
        for each in at_work:
            each.start()
        for each in at_work[CLIENTS:]:
            each.join()
        time.sleep(2)
        ended.set()
        for each in clients:
            each.join()
    finally:
        ended.set()
        for each in killers:
            each.close()
    sent = {(each.customer, number): places for each in clients for number, places in each.answers.items()}
    assert [each.error for each in clients if each.error is not None] == []
    own = {each.customer for each in clients}  # other tests of this broker write the topic, too
    found = {key: places for key, places in counted(settings).items() if key[0] in own}
    kills = sum((each.kills for each in killers), Counter())
    failures = sum((each.failures for each in clients), Counter())
    LOG.info("%s sales, kills %s, failures %s", len(sent), dict(kills), dict(failures))
    assert sum(kills.values()) == 2 * (len(POINTS) + 2)
    assert {point for point in POINTS if kills[point]} == set(POINTS)
    assert len(sent) > 100
    assert {key: len(places) for key, places in found.items()} == dict.fromkeys(sent, 1)
    assert {key: {places[0]} for key, places in found.items()} == sent
