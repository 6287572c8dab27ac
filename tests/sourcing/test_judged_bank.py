"""What a campaign's judge has to find: commands, money and events that are lost or doubled."""

from decimal import Decimal

import pytest

from tests.sourcing import judge
from tests.sourcing.fold import Fold
from tests.sourcing.journal import Order

HISTORY = [
    ("account", "ada", 1, "Opened", {"owner": "Ada"}, "clerk-0/0"),
    ("account", "bob", 1, "Opened", {"owner": "Bob"}, "clerk-0/1"),
    ("account", "ada", 2, "Deposited", {"amount": "100.00"}, "clerk-0/2"),
    ("transfer", "t", 1, "TransferRequested", {}, "clerk-0/3"),
    ("account", "ada", 3, "MoneySent", {"transfer": "t", "amount": "30.00"}, "process/1"),
    ("account", "bob", 2, "MoneyReceived", {"transfer": "t", "amount": "30.00"}, "process/2"),
    ("account", "ada", 4, "TransferSettled", {"transfer": "t"}, "process/2"),
    ("transfer", "t", 2, "TransferCompleted", {}, "process/2"),
]
ORDERS = {
    each.id: each
    for each in (
        Order("clerk-0/0", "open", "ada"),
        Order("clerk-0/1", "open", "bob"),
        Order("clerk-0/2", "deposit", "ada", "100"),
        Order("clerk-0/3", "transfer", "ada", "30", "bob"),
        Order("clerk-0/4", "withdraw", "bob", "500"),
    )
}
OUTCOMES = dict.fromkeys(ORDERS, "accepted") | {"clerk-0/4": "refused"}


def fold_of(history):
    found = Fold()
    for place, (category, stream, version, type, data, command) in enumerate(history):
        record = {"category": category, "stream": stream, "version": version, "type": type}
        found.add(record | {"id": f"e{place}", "at": "2026-11-18T00:00:00Z"}, data, command)
    return found


def wrong(history=HISTORY, outcomes=OUTCOMES):
    fold = fold_of(history)
    return [
        line.split(":")[0]
        for line in (*judge._of_commands(fold, ORDERS, outcomes), *judge._of_money(fold, ORDERS, outcomes))
    ]


def test_a_whole_history_is_all_right():
    assert wrong() == []
    fold = fold_of(HISTORY)
    assert fold.views()["balances"]["ada"] == ("Ada", Decimal(70), False, 4)
    assert list(fold.views()["statements"].values()) == [(100, 30, 2), (30, 0, 1)]
    seen = [(category, stream, version, f"e{n}") for n, (category, stream, version, *_) in enumerate(HISTORY)]
    assert list(judge._of_reader(fold, seen)) == []
    for strange in (seen[1:], [*seen, seen[0]], seen[::-1]):
        assert len(list(judge._of_reader(fold, strange))) == 1


@pytest.mark.parametrize(
    ("history", "outcomes", "found"),
    [
        (HISTORY[:2] + HISTORY[3:], OUTCOMES, {"commands", "store", "money"}),
        (HISTORY, OUTCOMES | {"clerk-0/4": "accepted"}, {"commands", "money"}),
        (HISTORY, OUTCOMES | {"clerk-0/2": "refused"}, {"commands", "money"}),
        (HISTORY, {id: each for id, each in OUTCOMES.items() if id != "clerk-0/4"}, {"commands"}),
        (HISTORY[:-1], OUTCOMES, {"transfers"}),
        (HISTORY[:5] + HISTORY[6:], OUTCOMES, {"money", "transfers"}),
        ([*HISTORY, HISTORY[5]], OUTCOMES, {"store", "money", "transfers"}),
    ],
)
def test_what_is_lost_or_doubled_is_found(history, outcomes, found):
    assert {*wrong(history, outcomes)} == found
