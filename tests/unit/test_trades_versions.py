"""Versions of trades, and traffic of which quotes and average prices are known."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from penstock.apps.trades.events import Quote, Report
from penstock.apps.trades.expected import quotes_of, traded_of
from penstock.apps.trades.traffic import SYMBOLS, Traffic
from penstock.apps.trades.versions import differences

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MONEY = pl.Decimal(18, 2)
COLUMNS = {"trade": pl.String, "version": pl.Int64, "symbol": pl.String, "money": MONEY, "shares": pl.Int64}
STATE = {"trade": pl.String, "version": pl.Int64, "money": MONEY, "shares": pl.Int64}
COUNT = 6_000


def reports(*rows):
    made = [(trade, version, "S", Decimal(money), shares) for trade, version, money, shares in rows]
    return pl.DataFrame(made, COLUMNS, orient="row").with_columns(at=pl.lit(NOON))


def state(*rows):
    return pl.DataFrame(rows, STATE, orient="row")


def nothing(*trades):
    return state(*((trade, None, None, None) for trade in trades))


def emitted(found):
    return [*zip(*(found[name].to_list() for name in ("trade", "version", "money", "shares")), strict=True)]


def test_the_first_version_is_the_whole_and_later_ones_the_difference():
    last, changes = differences(
        reports(("a", 1, 100, 10), ("b", 1, 50, 5), ("a", 2, 90, 9), ("a", 3, 0, 0)), nothing("a", "b")
    )
    assert emitted(changes) == [("a", 1, 100, 10), ("b", 1, 50, 5), ("a", 2, -10, -1), ("a", 3, -90, -9)]
    assert sorted(emitted(last)) == [("a", 3, 0, 0), ("b", 1, 50, 5)]
    assert changes.schema["money"] == last.schema["money"] == MONEY


def test_what_is_known_is_not_added_again_and_what_is_older_changes_nothing():
    known = state(("a", 2, Decimal(90), 9))
    last, changes = differences(reports(("a", 2, 90, 9), ("a", 1, 100, 10), ("a", 3, 80, 8)), known)
    assert emitted(changes) == [("a", 3, -10, -1)]
    assert emitted(last) == [("a", 3, 80, 8)]
    kept, none = differences(reports(("a", 1, 100, 10)), known)
    assert (emitted(kept), emitted(none)) == ([("a", 2, 90, 9)], [])


def test_how_reports_are_cut_into_calls_does_not_matter():
    rows = [("a", 2, 0, 0), ("a", 1, 100, 10), ("b", 1, 7, 1), ("b", 1, 7, 1), ("b", 2, 9, 3)]
    _, whole = differences(reports(*rows), nothing("a", "b"))
    known, parts = nothing("a", "b"), []
    for row in rows:
        own, others = known.filter(pl.col("trade") == row[0]), known.filter(pl.col("trade") != row[0])
        last, changes = differences(reports(row), own)
        known = pl.concat([others, last])
        parts += emitted(changes)
    assert parts == emitted(whole)


@pytest.fixture(scope="module")
def traffic():
    made = Traffic(seed=4)
    sent = [made.next() for _ in range(COUNT)]
    return made, [*sent, *made.rest()]


def test_a_trade_has_the_last_quote_that_is_not_after_it():
    made = [
        Quote("S", Decimal(price), Decimal(price + 1), NOON + timedelta(seconds=at))
        for price, at in ((10, 0), (12, 5))
    ]
    trades = [
        Report(f"t{at}", 1, "S", Decimal(11), 1, NOON + timedelta(seconds=at)) for at in (-1, 0, 4, 5, 9)
    ]
    sides = quotes_of(trades, made)
    assert [each and int(each[0]) for each in sides.values()] == [None, 10, 10, 12, 12]


def test_a_minute_has_the_newest_version_of_its_trades():
    versions = [("a", 2, 0), ("a", 1, 10), ("b", 1, 5), ("b", 2, 7), ("b", 2, 7)]
    made = [Report(trade, version, "S", Decimal(2), shares, NOON) for trade, version, shares in versions]
    assert traded_of(made) == {("S", NOON): (Decimal(14), 7)}


def test_reports_are_cancelled_replaced_overtaken_and_repeated(traffic):
    made, sent = traffic
    assert {report.symbol for report in made.reports} == {*SYMBOLS}
    assert sum(report.quantity == 0 for report in made.reports) > 20
    assert len({report.id for report in made.reports}) < len(made.reports)
    seen, overtaken = set(), 0
    for report in made.reports:
        overtaken += report.version > 1 and report.trade not in seen
        seen.add(report.trade)
    assert overtaken > 3
    assert len(sent) == len(made.reports) + len(made.quotes)


def test_quotes_and_trades_are_less_than_ten_seconds_late_and_corrections_minutes(traffic):
    for events, limit in ((traffic[0].quotes, 10), ([r for r in traffic[0].reports if r.version == 1], 10)):
        highest = events[0].at
        for event in events:
            assert highest - event.at < timedelta(seconds=limit)
            highest = max(highest, event.at)
    highest, latest = NOON.replace(year=2000), timedelta(0)
    for report in traffic[0].reports:
        highest = max(highest, report.at)
        latest = max(latest, highest - report.at)
    assert latest > timedelta(minutes=5)


def test_the_same_seed_gives_the_same_events(traffic):
    again = Traffic(seed=4)
    assert [again.next() for _ in range(500)] == traffic[1][:500]
