"""The trades application: quotes of trades, and average prices that corrections correct."""

from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.trades.command import demo
from penstock.apps.trades.events import Quote, Report, quotes, reports
from penstock.apps.trades.expected import quotes_of, traded_of
from penstock.apps.trades.pipeline import average_price, beside_quotes, changed
from penstock.apps.trades.traffic import Traffic
from penstock.apps.trades.versions import RETURNS
from penstock.local import running
from penstock.testing import Feed


@pytest.fixture(scope="module")
def traffic():
    made = Traffic()
    return made, [*(made.next() for _ in range(1_000)), *made.rest()]


def test_trades_have_the_quotes_of_their_moment(spark, traffic):
    made, sent = traffic
    with Feed(spark, beside_quotes, reports=reports, quotes=quotes) as feed:
        feed.send(
            reports=[each for each in sent if isinstance(each, Report)],
            quotes=[each for each in sent if isinstance(each, Quote)],
        )
        feed.advance(made.now + timedelta(hours=1))
    found = {row.trade: (row.bid, row.ask) if row.bid is not None else None for row in feed.results}
    assert found == quotes_of((report for report in made.reports if report.version == 1), made.quotes)
    assert len(feed.results) == len(found)


def test_average_prices_are_those_of_the_newest_versions(spark, traffic):
    made, _ = traffic
    with Feed(spark, changed, reports=reports) as feed:
        feed.send(reports=made.reports[:200])
        feed.send(reports=made.reports[200:])
    averages = average_price(spark.createDataFrame(feed.results, RETURNS)).collect()
    assert {
        (row.symbol, row.start.astimezone(UTC)): (row.traded, row.volume) for row in averages
    } == traded_of(made.reports)
    assert all(row.vwap == round(row.traded / row.volume, 6) for row in averages if row.volume)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_quotes_and_average_prices_are_right():
    with running(services=demo.services) as settings:
        plan = Plan(rate=200, seconds=5, after=2, patience=300)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
