"""The shop's flows give what its books say, on frames, as streams, and through a kill -9."""

from dataclasses import replace
from datetime import UTC

import pytest
from tests import quick
from tests.shop_books import Books

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.shop import events
from penstock.apps.shop.command import demo
from penstock.apps.shop.pipeline import COLUMNS, running_low, sold, view
from penstock.apps.shop.traffic import ChangePrice, PlaceOrder, Traffic
from penstock.local import installed, running
from penstock.testing import Feed
from penstock.testing.topic_rows import TopicRows


@pytest.fixture(scope="module")
def books():
    made, traffic = Books(first_stock=12), Traffic()
    for _ in range(400):
        made.perform(traffic.next())
    return made


def viewed(rows):
    """The last row of each line, in the order of the view's columns; Spark's times are in UTC."""
    return {
        row.line_id: tuple(
            row[name].replace(tzinfo=UTC) if name == "placed" else row[name] for name in COLUMNS
        )
        for row in rows
    }


def frame(spark, table, changes):
    rows = TopicRows(table)
    return spark.createDataFrame([rows.row(each) for each in changes], rows.schema)


def test_the_view_is_what_the_books_say(spark, books):
    changes = books.changes
    lines = frame(spark, events.lines, changes["lines"])
    orders, products = (frame(spark, getattr(events, name), changes[name]) for name in ("orders", "products"))
    seen = view(sold(lines, orders), products).select(*COLUMNS).collect()
    assert viewed(seen) == books.view
    assert len(seen) == len(books.view) > 400


@pytest.mark.long
def test_a_new_price_changes_every_line_that_refers_to_it(spark):
    books = Books()
    for number in range(1, 7):
        books.perform(PlaceOrder(number, "ada", ((number % 2, 3),)))
    with Feed(spark, view, lines=events.sold_lines, products=events.products) as feed:
        feed.send(lines=books.sold, products=books.changes["products"])
        before = len(books.changes["products"])
        books.perform(ChangePrice(1, books.products[1].price * 2))
        changed = feed.send(products=books.changes["products"][before:])
    assert sorted(row.line_id for row in changed) == [11, 31, 51]
    assert viewed(feed.results) == books.view


def test_a_product_that_runs_low_is_alerted_once_until_it_is_restocked(spark, books):
    changes, half = books.changes["products"], len(books.changes["products"]) // 2
    with Feed(spark, running_low, output="update", products=events.products) as feed:
        feed.send(products=changes[:half])
        feed.send(products=changes[half:])
    alerted = [(row.product_id, row.stock) for row in feed.results]
    assert sorted(alerted) == sorted(books.falls)
    assert len(books.falls) > 100


@pytest.mark.long
@pytest.mark.timeout(400)
def test_through_a_kill_every_copy_is_what_the_source_says():
    """On a platform of its own, as the demo has it."""
    with running(services=installed(demo.services)) as settings:
        plan = Plan(rate=20, seconds=8, warm_up=5)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
