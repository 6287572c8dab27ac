"""The shop's traffic: the same for the same seed, whole, and with something of everything."""

from itertools import islice

from tests.shop_books import START, Books

from penstock.apps.demo.comparison import Comparison
from penstock.apps.shop.outcome import Outcome, StandStill
from penstock.apps.shop.traffic import CancelOrder, PlaceOrder, Traffic


def acts(count, seed=1):
    traffic = Traffic(seed)
    return [traffic.next() for _ in range(count)], traffic


def outcome(**changed):
    right = {
        "transactions": 9,
        "copies": {"table": Comparison(3, 0, 0, 0, 0)},
        "handled": {"all": 4, "payment": 4},
        "wrong": {"payment": 0},
        "expected": {7: [9, 8]},
        "alerted": {7: [9, 8]},
        "delays": [0.5, 2.0],
        "still": None,
    }
    return Outcome(**right | changed).report()


def test_the_same_seed_gives_the_same_acts_and_another_gives_others():
    assert acts(300)[0] == acts(300)[0]
    assert acts(300)[0] != acts(300, seed=2)[0]


def test_an_order_is_placed_once_and_cancelled_once_at_most_and_never_before():
    made, traffic = acts(5_000)
    placed, cancelled = set(), set()
    for act in made:
        if isinstance(act, PlaceOrder):
            assert act.order_id not in placed
            assert len({product for product, _ in act.items}) == len(act.items) > 0
            placed.add(act.order_id)
        elif isinstance(act, CancelOrder):
            assert act.order_id in placed - cancelled
            cancelled.add(act.order_id)
    assert (traffic.made, traffic.placed, traffic.cancelled) == (5_000, len(placed), len(cancelled))
    assert {type(act).__name__ for act in made} == {"PlaceOrder", "CancelOrder", "ChangePrice", "Restock"}


def test_products_run_low_and_again_after_they_were_restocked():
    books = Books()
    for act in islice(acts(3_000)[0], 3_000):
        books.perform(act)
    falls = [product for product, _ in books.falls]
    assert len(falls) > len({*falls}) > 100


def test_a_report_claims_only_what_every_copy_service_and_alert_bears_out():
    assert outcome().complete
    assert outcome(copies={"lake": Comparison(3, 1, 0, 0, 0)}).problems == ["lake: 1 of 3 results lost"]
    assert outcome(handled={"all": 0, "payment": 0}).problems == [
        "payment: 0 rows wrong, 0 of 0 events handled"
    ]
    assert outcome(handled={"all": 4, "payment": 5}).problems == [
        "payment: 0 rows wrong, 5 of 4 events handled"
    ]
    assert outcome(wrong={"payment": 2}).problems == ["payment: 2 rows wrong, 4 of 4 events handled"]
    assert outcome(alerted={7: [9, 9, 8]}).problems == ["alerts: 3 of 2, or others than these"]


def test_a_service_that_stood_still_is_in_the_report_with_what_the_others_did_meanwhile():
    still = StandStill("analytics", START, START.replace(second=8), behind=70, others=[0.02, 0.04])
    figures = {name: (value, what) for name, value, what in outcome(still=still).figures}
    assert figures["stood still"] == ("8 s", "analytics, 70 events behind then")
    assert figures["not hurt"] == ("40 ms", "p50 of 2 payments meanwhile; p99 40 ms")
