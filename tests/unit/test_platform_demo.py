"""The demo of everything: which flows it runs, and what it reports."""

from types import SimpleNamespace

from penstock.apps.fraud.blocking import Blocking
from penstock.apps.fraud.pipeline import fraud
from penstock.apps.fraud.report import Report
from penstock.apps.platform.cards import _figures, _problems
from penstock.apps.platform.pipeline import CARDS, ORDERS, platform
from penstock.apps.platform.work import CARDS_FOR_ONE_ORDER, Work
from penstock.apps.shop.pipeline import shop


def test_flows_of_two_applications_run_in_one_process_under_names_of_their_own():
    assert [*platform.flows] == [*CARDS, *ORDERS]
    assert all(platform.flows[name] is fraud.flows[name] for name in CARDS)
    assert all(platform.flows[name] is shop.flows[name] for name in ORDERS)


def test_a_report_has_a_problem_for_everything_that_is_not_as_it_has_to_be():
    assert [*_problems(Report(1))] == ["there was no alert"]
    assert [*_problems(Report(1, alerts=9))] == []
    wrong = Report(1, alerts=9, lost={"a"}, wrong={"b"}, missing=2, doubled=3, blocking=Blocking(wrong=4))
    assert [*_problems(wrong)] == [
        "1 alerts lost",
        "1 alerts wrong",
        "2 missing where each stands once",
        "3 twice there",
        "4 refused for nothing",
    ]


def test_counts_latency_precision_and_recall_are_shown():
    found = Report(1, sent=900, alerts=9, repeated=2, between=[0.02], quality={"many": (1.0, 0.5, 6)})
    figures = {name: (value, what) for name, value, what in _figures(found)}
    assert figures["card transactions"][0] == "900"
    assert figures["alerts"] == ("9", "out; 0 lost, 0 wrong, 2 re-emitted after the kill")
    assert figures["precision/recall"] == ("1 rules", "many 1.00/0.50")
    assert figures["p50"][0] == "20 ms"


def test_of_ten_transactions_of_cards_there_is_one_of_the_shops():
    sent = {"cards": 0, "shop": 0}

    def counting(name):
        return SimpleNamespace(send=lambda count: sent.update({name: sent[name] + count}))

    work = Work.__new__(Work)
    work._cards, work._shop, work._owed = counting("cards"), counting("shop"), 0
    for count in (3, 4, 8, 0, 15, 27):
        work.send(count)
    assert sent == {"cards": 57, "shop": 57 // CARDS_FOR_ONE_ORDER}
