"""The three joins, killed with -9 on the way: what they emitted is exactly what the log says."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests import quick
from tests.integration import joined as module
from tests.integration.joined import (
    Order,
    Payment,
    Product,
    Shipment,
    joined,
    orders,
    payments,
    priced,
    products,
    shipments,
    shipped,
    view,
)  # fmt: skip
from tests.reference import joins as reference

from penstock.log import Broker, Consumer, Producer, apply
from penstock.testing import Driver, wait_until_caught_up

START = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 150


def at(seconds):
    return START + timedelta(seconds=seconds)


class World:
    """Sends changes and events at random, and knows what has become of them."""

    def __init__(self, settings):
        self.settings, self.random, self.number = settings, Random(7), 0
        self.orders, self.products = {}, {}
        self.payments, self.shipments, self.versions = [], [], []

    def send(self, count):
        with Producer(self.settings) as producer:
            for _ in range(count):
                self.number += 1
                getattr(self, f"_{self.random.choice(('order', 'product', 'payment', 'shipment'))}")(producer)

    def end(self):
        """Move the watermarks past all that was sent."""
        with Producer(self.settings) as producer:
            for number in range(2):
                last = at(100_000 + number)
                producer.send(payments, Payment("end", "end", last, id=f"end{number}"))
                producer.send(shipments, Shipment("end", last, id=f"e{number}"))
                producer.flush()

    def _order(self, producer):
        order = f"o{self.random.randrange(30)}"
        if self.random.random() < 0.2:
            self.orders.pop(order, None)
            producer.delete(orders, order)
        else:
            product = f"p{self.random.randrange(8)}"
            self.orders[order] = (product, order)
            producer.send(orders, Order(order, product, at(self.number)))

    def _product(self, producer):
        product, price = f"p{self.random.randrange(8)}", self.random.randrange(5)
        self.products[product] = (product, price)
        self.versions.append((product, self.number, price))
        producer.send(products, Product(product, price, at(self.number)))

    def _payment(self, producer):
        order, product = f"o{self.random.randrange(30)}", f"p{self.random.randrange(8)}"
        self.payments.append((order, product, self.number))
        producer.send(payments, Payment(order, product, at(self.number), id=f"m{self.number}"))

    def _shipment(self, producer):
        order = f"o{self.random.randrange(30)}"
        self.shipments.append((order, self.number, f"s{self.number}"))
        producer.send(shipments, Shipment(order, at(self.number), id=f"s{self.number}"))


def read(topic, settings):
    with Consumer(topic, settings) as consumer:
        return list(consumer.records(idle="1 second"))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_joins_that_are_killed_emit_everything_once(settings, tmp_path):
    place = replace(settings, data=tmp_path, spark=quick.SPARK)
    apply([orders, products, payments, shipments, view, priced, shipped], Broker(settings))
    run, world = Driver(joined.name, str(Path(module.__file__)), place), World(settings)
    world.send(300)
    run.start()
    try:
        broker, deadline = Broker(settings), time.monotonic() + PATIENCE
        while not all(broker.end(topic.name, 0) > 5 for topic in (view, priced, shipped)):
            assert time.monotonic() < deadline, run.last_words()
            world.send(5)
            time.sleep(0.2)
        run.kill()
        world.send(200)
        run.start()
        wait_until_caught_up(joined, place, PATIENCE)
        world.end()
        wait_until_caught_up(joined, place, PATIENCE)
        await_lonely_payments(settings, world)
        assert run.stop() == 0
    finally:
        run.kill()
    check_view(settings, world)
    check_prices(settings, world)
    check_shipments(settings, world)


def await_lonely_payments(settings, world):
    """Spark emits what has found no partner in the batch after the one that moves the watermark."""
    deadline, wanted = time.monotonic() + PATIENCE, len(expected_shipments(world))
    while len(found_shipments(settings)) < wanted and time.monotonic() < deadline:
        time.sleep(0.5)


def check_view(settings, world):
    """Every change was possible when it was emitted, and together they are a fresh join."""
    held = {}
    for record in read(view, settings):
        if record.event is None:
            assert held.pop(record.key.decode(), None) is not None
        else:
            event = record.event
            assert (event.order in held) == (event.change == "update")
            assert held.get(event.order) != (event.product, event.price, event.at)
            held[event.order] = (event.product, event.price, event.at)
    fresh = reference.tables(world.orders, world.products, "left")
    emitted = {order: (product, price) for order, (product, price, _) in held.items()}
    assert emitted == {order: (one[0], other and other[1]) for (order, _), (one, other) in fresh.items()}


def check_prices(settings, world):
    found = [record.event for record in read(priced, settings)]
    events = [(product, number, f"m{number}") for _, product, number in world.payments]
    emitted = {event.payment: event.price for event in found if event.payment.startswith("m")}
    assert emitted == reference.as_of(events, world.versions)
    assert max(Counter(event.payment for event in found).values()) == 1


def check_shipments(settings, world):
    assert found_shipments(settings) == expected_shipments(world)


def found_shipments(settings):
    events = [record.event for record in read(shipped, settings)]
    pairs = ((event.payment, event.shipment) for event in events if event.payment.startswith("m"))
    return sorted(pairs, key=str)


def expected_shipments(world):
    left = [(order, number, f"m{number}") for order, _, number in world.payments]
    return reference.within(left, world.shipments, 0, 60, "left")
