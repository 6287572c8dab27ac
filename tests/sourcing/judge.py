"""Compares what is left after a campaign with the log of the store, folded by code of its own."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import psycopg

from penstock.apps.bank.pipeline import STORE
from penstock.settings import Settings
from tests.capture.running import records
from tests.sourcing.fold import ZERO, Fold, folded
from tests.sourcing.journal import ACCEPTED, Order, read

ENDS = {
    "TransferCompleted": {"MoneySent", "MoneyReceived", "TransferSettled"},
    "TransferFailed": {"MoneySent", "MoneyReturned"},
}
_VIEWS = {
    "balances": "select account, owner, balance, closed, version from bank_balances",
    "statements": "select account, month, paid_in, paid_out, movements from bank_statements",
    "movements": "select id, account, amount from bank_movements",
}


def differences(settings: Settings, folder: Path, seen: list[tuple[str, str, int, str]]) -> list[str]:
    """What is wrong: nothing, if the list is empty."""
    fold = folded(settings)
    orders, outcomes = _journals(folder)
    broken = (folder / "clerks.log").read_text().count("Traceback")
    return [
        *([f"clerks: they broke {broken} times"] if broken else ()),
        *_of_commands(fold, orders, outcomes),
        *_of_money(fold, orders, outcomes),
        *_of_reader(fold, seen),
        *_of_topics(fold, settings),
        *_of_views(fold, settings),
    ]


def _journals(folder: Path) -> tuple[dict[str, Order], dict[str, str]]:
    orders: dict[str, Order] = {}
    outcomes: dict[str, str] = {}
    for path in folder.glob("*.journal"):
        more, known = read(path)
        orders, outcomes = orders | more, outcomes | known
    return orders, outcomes


def _of_commands(fold: Fold, orders: dict[str, Order], outcomes: dict[str, str]) -> Iterable[str]:
    """What was accepted is in the log, what was refused is not, and nothing else is."""
    accepted = {id for id, outcome in outcomes.items() if outcome == ACCEPTED}
    done = {id for id in fold.commands if id.startswith("clerk-")}
    for name, found in (
        ("was accepted and is not in the log", accepted - done),
        ("is in the log and was not accepted", done - accepted),
        ("has no outcome", orders.keys() - outcomes.keys()),
    ):
        if found:
            yield f"commands: {len(found)} of {len(orders)}, such as {min(found)}: {name}"
    if fold.disordered:
        yield f"store: {fold.disordered} events that do not follow their predecessor"


def _of_money(fold: Fold, orders: dict[str, Order], outcomes: dict[str, str]) -> Iterable[str]:
    paid_in = sum((each.paid_in for each in orders.values() if outcomes.get(each.id) == ACCEPTED), ZERO)
    there = sum(fold.balances.values(), ZERO)
    if paid_in != there:
        yield f"money: {paid_in} was paid in, and {there} is there"
    if min(fold.balances.values(), default=ZERO) < 0:
        yield f"money: an account has {min(fold.balances.values())}"
    if fold.unfinished:
        yield f"transfers: {len(fold.unfinished)} of {len(fold.ends)} did not end"
    for id, end in fold.ends.items():
        moved = {type for transfer, type in fold.moves if transfer == id}
        expected = ENDS.get(end, set())
        if moved != expected and not (end == "TransferFailed" and not moved):
            yield f"transfers: {id} is a {end}, and its money {sorted(moved)}"
    doubled = [place for place, count in fold.moves.items() if count > 1]
    if doubled:
        yield f"transfers: {len(doubled)} moved more than once, such as {doubled[0]}"


def _of_reader(fold: Fold, seen: list[tuple[str, str, int, str]]) -> Iterable[str]:
    expected = [(each["category"], each["stream"], each["version"], each["id"]) for each in fold.events]
    if seen != expected:
        missing, more = {*expected} - {*seen}, {*seen} - {*expected}
        yield (
            f"reader: saw {len(seen)} of {len(expected)} events; {len(missing)} missing, "
            f"{len(more)} strange, {len(seen) - len({*seen})} doubled, or in another order"
        )


def _of_topics(fold: Fold, settings: Settings) -> Iterable[str]:
    """Each event is on its topic once, as it is stored, and behind those that it follows."""
    stored = {each["id"]: each for each in fold.events}
    seen: Counter[str] = Counter()
    newest: dict[tuple[str, str], int] = {}
    disordered = changed = 0
    for category in ("account", "transfer"):
        for each in records(settings, f"{STORE}.{category}"):
            place = category, each.value["stream"]
            disordered += each.value["version"] != newest.get(place, 0) + 1
            newest[place] = each.value["version"]
            changed += each.value != stored.get(each.value["id"])
            seen[each.value["id"]] += 1
    missing, doubled = stored.keys() - seen.keys(), seen.total() - len(seen)
    if missing or doubled or disordered or changed:
        yield (
            f"topics: of {len(stored)} events {len(missing)} missing, {doubled} doubled, "
            f"{disordered} out of order, {changed} not as stored"
        )


def _of_views(fold: Fold, settings: Settings) -> Iterable[str]:
    expected = fold.views()
    with psycopg.connect(settings.dsn().value) as connection:
        for name, query in _VIEWS.items():
            keys = 2 if name == "statements" else 1
            rows = [tuple(row) for row in connection.execute(query)]
            found = {row[0] if keys == 1 else row[:keys]: row[keys:] for row in rows}
            wrong = [key for key in {*expected[name], *found} if expected[name].get(key) != found.get(key)]
            if wrong or len(rows) != len(found):
                key = wrong[0] if wrong else None
                yield (
                    f"{name}: {len(wrong)} of {len(expected[name])} rows differ, "
                    f"such as {key}: {found.get(key)} instead of {expected[name].get(key)}"
                )
