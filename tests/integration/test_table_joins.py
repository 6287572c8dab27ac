"""Views of two tables: after every batch, the changes add up to a fresh join, and none is emitted twice."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from pyspark.errors import SparkRuntimeException
from tests.integration.cards import SOURCE, START
from tests.reference import joins as reference

from penstock.errors import FlowError
from penstock.process import joins, lookup
from penstock.testing import Feed

ORDERS = f"order string, product string, amount int, _deleted boolean, {SOURCE}"
PRODUCTS = f"sku string, price int, _deleted boolean, {SOURCE}"
KEYED = f"sku string, stock int, _deleted boolean, {SOURCE}"


class Tables:
    """Two tables that change at random: rows come, move, go, come again, and are written without change."""

    def __init__(self, seed, foreign):
        self.random, self.offset, self.foreign = Random(seed), 0, foreign
        self.left, self.right = {}, {}

    def changes(self, count):
        made = {"left": [], "right": []}
        for _ in range(count):
            side = self.random.choice(("left", "right"))
            made[side].append(self._change(side))
        return made

    def _change(self, side):
        self.offset += 1
        table = getattr(self, side)
        sku = self.random.choice([None, *"abcd"] if side == "left" and self.foreign else "abcd")
        id = f"o{self.random.randrange(12)}" if side == "left" and self.foreign else sku
        value = self.random.randrange(3)
        source = ("t", 0, self.offset, START + timedelta(seconds=self.offset))
        gone = self.random.random() < 0.3
        if gone:
            table.pop(id, None)
        else:
            table[id] = (sku, value)
        columns = (id, None if gone else sku) if side == "left" and self.foreign else (id,)
        return (*columns, None if gone else value, gone, source)


def taken(view, rows, foreign):
    """Apply what was emitted to a view; each change has to be possible, and to change something."""
    for row in rows:
        one, other = row.order, row.product
        pair = (one and (one.order if foreign else one.sku), other and other.sku)
        held = (one and (one.product if foreign else one.sku, one.amount if foreign else one.stock),
                other and (other.sku, other.price))  # fmt: skip
        key = result_key(pair, foreign)
        assert (key in view) == (row.change != "insert")
        assert row._deleted == (row.change == "delete")
        if row._deleted:
            assert view.pop(key) == (pair, held)
        else:
            assert view.get(key) != (pair, held)
            view[key] = (pair, held)


def result_key(pair, foreign):
    """A product is there once, so that the order alone says which row it is."""
    if not foreign:
        return pair[0] or pair[1]
    return pair if pair[0] is None else pair[0]


def expected(tables, how, foreign):
    rows = reference.tables(tables.left, tables.right, how)
    return {result_key(pair, foreign): (pair, held) for pair, held in rows.items()}


def operator(how, foreign):
    on, keys = (("product", "sku"), ("order", "sku")) if foreign else ("sku", "sku")

    def view(left, right):
        return left.transform(
            joins.tables(right, on=on, keys=keys, how=how, names=("order", "product"), buckets=2)
        )

    return view


def replayed(spark, log, how, foreign):
    schemas = {"left": ORDERS if foreign else KEYED, "right": PRODUCTS}
    frames = {side: spark.createDataFrame(rows, schemas[side]) for side, rows in log.items()}
    held = {}
    taken(held, operator(how, foreign)(**frames).collect(), foreign)
    return held


@pytest.mark.parametrize(
    ("how", "foreign"), [("full", True), pytest.param("inner", True, marks=pytest.mark.long), ("full", False)]
)
def test_the_view_is_a_fresh_join_after_every_batch(spark, how, foreign):
    """Those of the other kinds differ in the step alone, which has a test of its own."""
    tables = Tables(seed=len(how) + foreign, foreign=foreign)
    held, log = {}, {"left": [], "right": []}
    schema = ORDERS if foreign else KEYED
    with Feed(spark, operator(how, foreign), left=schema, right=PRODUCTS) as feed:
        for _ in range(5):
            changes = tables.changes(14)
            for side, rows in changes.items():
                log[side] += rows
            taken(held, feed.send(**{side: rows for side, rows in changes.items() if rows}), foreign)
            assert held == expected(tables, how, foreign)
    assert feed.results
    assert replayed(spark, log, how, foreign) == held


@pytest.mark.parametrize("how", ["left", "right"])
def test_in_replay_the_rows_that_are_left_are_joined(spark, how):
    tables = Tables(seed=5, foreign=True)
    assert replayed(spark, tables.changes(70), how, True) == expected(tables, how, True)


def test_what_can_not_be_joined_is_refused(spark):
    orders, products = (spark.createDataFrame([], schema) for schema in (ORDERS, PRODUCTS))
    with pytest.raises(FlowError, match="no 'outer' join"):
        joins.tables(products, on="product", keys="order", how="outer")
    with pytest.raises(FlowError, match="'change' and 'right' are not free"):
        joins.tables(products, on="product", keys="order", names=("change", "right"))
    with pytest.raises(FlowError, match="'right' side of a join has no column 'product'"):
        orders.transform(joins.tables(products, on="product", keys=("order", "sku")))
    with pytest.raises(FlowError, match="'amount', int, with 'sku', string"):
        orders.transform(joins.tables(products, on=("amount", "sku"), keys=("order", "sku")))


def test_keys_of_every_type_are_compared_as_values(spark):
    """Their texts may be the same: two parts that run together, an hour that comes twice in autumn."""
    kind = "struct<one:string,two:string,bytes:binary,weight:double,at:timestamp>"
    hour = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    values = [
        ("x, y", "z", b"\xff", float("nan"), hour),
        ("x", "y, z", b"\xff", float("nan"), hour),
        ("x", "y, z", b"\xfe", 0.0, hour),
        ("x", "y, z", b"\xfe", 0.0, hour + timedelta(hours=1)),
    ]
    left, right = (f"key {kind}, {name} int, _deleted boolean, {SOURCE}" for name in ("a", "b"))
    rows = [(key, number, False, ("t", 0, number, START)) for number, key in enumerate(values)]
    same = [((*key[:3], -0.0 if key[3] == 0 else key[3], key[4]), *rest) for key, *rest in rows]

    def view(left, right):
        return left.transform(joins.tables(right, on="key", keys="key", how="full", buckets=1))

    spark.conf.set("spark.sql.session.timeZone", "Europe/Vienna")
    try:
        with Feed(spark, view, left=left, right=right) as feed:
            feed.send(left=rows[:1])
            feed.send(right=same[:1])
            feed.send(left=rows[1:], right=same[1:])
        replayed = view(spark.createDataFrame(rows, left), spark.createDataFrame(same, right)).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert sorted((row.left.a, row.right.b) for row in replayed) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    last = {(row.left and row.left.a): row.right and row.right.b for row in feed.results}
    assert last == {0: 0, 1: 1, 2: 2, 3: 3}
    assert [row.change for row in feed.results] == ["insert", "update", "insert", "insert", "insert"]


def test_a_table_that_was_given_more_partitions_is_refused_in_replay(spark):
    """Offsets say which of two changes is newer, within a partition."""
    rows = [("a", 1, False, ("t", partition, 9 - partition, START)) for partition in (1, 0)]
    table = spark.createDataFrame(rows, KEYED)
    events = spark.createDataFrame(rows, KEYED).drop("_deleted")
    views = (
        table.transform(joins.tables(table, on="sku", keys="sku")),
        lookup.current(table, "sku"),
        events.transform(joins.latest(table, on="sku")),
    )
    for view in views:
        with pytest.raises(SparkRuntimeException, match="one key in its partitions 0 and 1: it was given"):
            view.collect()


def test_a_table_may_have_columns_of_any_name(spark):
    rows = [("a", "b", False, ("t", 0, 1, START))]
    table = spark.createDataFrame(rows, f"row string, `a.b` string, _deleted boolean, {SOURCE}")
    small = lookup.current(table, "row")
    assert small.collect() == [("a", "b")]
    (found,) = table.transform(lookup.broadcast(small, by="a.b", name="rules")).select("rules").collect()
    assert found.rules["b"].row == "a"
    with pytest.raises(FlowError, match="events have a column 'row' already"):
        table.transform(lookup.broadcast(small, by="row", name="row"))
    view = table.transform(joins.tables(table, on="a.b", keys="row"))
    assert len(view.collect()) == 1
