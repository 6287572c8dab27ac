"""The truth of the joins, without a broker: what is sent is kept, and results are judged by it."""

import time
from datetime import timedelta

from penstock.lab.experiments.joins.beside import AsOf
from penstock.lab.experiments.joins.near import Near
from penstock.lab.experiments.joins.view import View


class Kept:
    """Keeps what is sent, as a producer would hand it over."""

    def __init__(self):
        self.rows = {}

    def send(self, topic, event):
        self.rows.setdefault(topic.name, []).append(event)

    def delete(self, topic, key):
        self.rows.setdefault(topic.name, []).append(key)


def sent(kind, count=200):
    kept = Kept()
    kind.send(kept, count)
    return [kept.rows.get(topic.name, []) for topic in kind.topics[:2]]


def result(kind, left, right):
    kind.take("", {"left": left, "right": right})


def test_a_pair_within_reach_is_matched_once():
    kind = Near("x.", timedelta(seconds=30))
    sent(kind)
    time.sleep(1.1)  # the first clicks are due
    kind.send(Kept(), 0)
    (click, shown), *_ = sorted(kind._pairs)
    result(kind, click, shown)
    assert kind.compare()["matched"] == 1
    result(kind, click, shown)
    assert (kind.compare()["matched"], kind.compare()["wrong"]) == (0, 1)


def test_who_is_alone_in_truth_may_be_alone():
    kind = Near("x.", timedelta(seconds=30))
    sent(kind)
    shown = next(iter(kind._single["right"]))
    result(kind, None, shown)
    result(kind, 10_000, shown)
    assert (kind.compare()["unmatched"], kind.compare()["wrong"]) == (1, 1)


def test_a_payment_has_the_row_of_its_time():
    kind = AsOf("x.", timedelta(seconds=30))
    payments, rows = sent(kind)
    assert kind.compare()["truth_matched"] + kind.compare()["truth_unmatched"] == len(payments)
    for each in payments:
        valid = [row.n for row in rows if row.key == each.key and row.at <= each.at]
        result(kind, each.n, max(valid, default=None))
    found = kind.compare()
    assert found["matched"] == found["truth_matched"]
    assert found["unmatched"] == found["truth_unmatched"] > 0
    assert found["wrong"] == 0


def test_another_row_is_newer_or_older():
    kind = AsOf("x.", timedelta(seconds=30))
    sent(kind)
    left, truth = next((left, truth) for left, truth in kind._truth.items() if truth is not None)
    result(kind, left, truth + 1)
    assert (kind.compare()["newer"], kind.compare()["wrong"]) == (1, 1)


def test_a_view_is_right_when_it_has_all_of_both_tables():
    kind = View("x.", timedelta(seconds=1))
    sent(kind, 400)
    for order, (product, n) in kind._orders.items():
        kind.take(order, {"left": n, "right": kind._products.get(product)})
    found = kind.compare()
    assert (found["matched"], found["unmatched"]) == (found["truth_matched"], found["truth_unmatched"])
    assert found["wrong"] == 0
    kind.take("order-999", {"left": 1, "right": None})
    assert kind.compare()["wrong"] == 1
    kind.take("order-999", None)
    assert kind.compare()["wrong"] == 0
