"""The view of two tables as frames alone: what is emitted adds up to a fresh join, for every kind of join."""

from random import Random
from zlib import crc32

import polars as pl
import pytest
from tests.reference import joins as reference

from penstock.errors import FlowError
from penstock.process.columns.names import SOURCE
from penstock.process.joins.view import (
    ID,
    KEY,
    LEFT,
    LEFT_ID,
    NEW,
    OLD,
    RESULT,
    RIGHT,
    RIGHT_ID,
    SIDE,
    ViewStep,
    moved,
    net,
)
from penstock.process.state.runs import GONE, HASH

ROW = pl.Struct({"value": pl.Int64})
RUN = {
    KEY: pl.String,
    ID: pl.String,
    GONE: pl.Boolean,
    LEFT: ROW,
    RIGHT: ROW,
    SOURCE: pl.Struct({"partition": pl.Int32, "offset": pl.Int64, "written": pl.Int64}),
    SIDE: pl.Int32,
    HASH: pl.Int64,
}


class World:
    """Orders that refer to products, both changing at random; and the view that the step keeps of them."""

    def __init__(self, seed, how):
        self.random, self.how, self.offset = Random(seed), how, 0
        self.orders, self.products = {}, {}
        self.followed, self.runs, self.view = {}, [], {}
        self.step = ViewStep(how, pl.DataFrame(schema=RUN))

    def batch(self, count):
        orders, products = [], []
        for _ in range(count):
            (orders if self.random.random() < 0.5 else products).append(self.offset)
            self.offset += 1
        rows = self._follow([self._order(place) for place in orders])
        rows = pl.concat([rows, frame([self._product(place) for place in products])])
        if rows.height:
            done = self.step(self.runs, rows, 0, 0)
            self.runs.append(done.changed)
            self._take(done.rows)

    def _order(self, offset):
        order = f"o{self.random.randrange(9)}"
        if self.random.random() < 0.3:
            self.orders.pop(order, None)
            return change(None, order, None, 0, offset)
        self.orders[order] = (self.random.choice([None, *"abc"]), self.random.randrange(3))
        return change(self.orders[order][0], order, self.orders[order][1], 0, offset)

    def _product(self, offset):
        product = self.random.choice("abc")
        if self.random.random() < 0.3:
            self.products.pop(product, None)
            return change(product, product, None, 1, offset)
        self.products[product] = (product, self.random.randrange(3))
        return change(product, product, self.products[product][1], 1, offset)

    def _follow(self, changes):
        """An order that refers to another product now is gone from the one before."""
        state = {ID: pl.String, f"{KEY}_before": pl.String, OLD: pl.Boolean}
        known = [(order, *self.followed.get(order, (None, None))) for order in {row[1] for row in changes}]
        kept, rows = moved(frame(changes), pl.DataFrame(known, state, orient="row"))
        gone = {row[1] for row in changes} - {*kept[ID]}
        self.followed = {order: was for order, was in self.followed.items() if order not in gone}
        self.followed |= {order: was for order, *was in kept.rows()}
        return hashed(rows)

    def _take(self, emitted):
        """Apply what was emitted; each change has to be possible, and to change something."""
        product = pl.when(pl.col(LEFT_ID).is_null()).then(RIGHT_ID)
        rows = net(emitted.with_columns(pl.col(LEFT_ID).alias(RESULT[0]), product.alias(RESULT[1])))
        for *result, old, new, _ in rows.select(*RESULT, OLD, NEW, SOURCE).rows():
            assert self.view.pop(tuple(result), None) == old
            if new is not None:
                self.view[tuple(result)] = new


def change(key, id, value, side, offset):
    row = None if value is None else {"value": value}
    place = {"partition": 0, "offset": offset, "written": offset}
    return (key, id, value is None, *((row, None) if side == 0 else (None, row)), place, side, 0)


def frame(rows):
    return hashed(pl.DataFrame(rows, RUN, orient="row"))


def hashed(rows):
    """Few hashes of keys, so that different ones are neighbours."""
    hashes = [crc32(str(key).encode()) % 2 << 32 | crc32(id.encode()) % 3 for key, id in rows[KEY, ID].rows()]
    return rows.with_columns(pl.Series(HASH, hashes, pl.Int64))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("seed", range(10))
def test_after_every_batch_the_view_is_a_fresh_join(how, seed):
    world = World(seed, how)
    for _ in range(12):
        world.batch(world.random.choice((1, 3, 12)))
        fresh = reference.tables(world.orders, world.products, how)
        assert world.view == {
            (order, None if order else product): {
                LEFT: order and {"value": one[1]},
                RIGHT: product and {"value": other[1]},
            }
            for (order, product), (one, other) in fresh.items()
        }


def test_a_key_that_has_moved_to_another_partition_is_refused():
    """Offsets say which of two changes is newer, within a partition."""
    step, row = ViewStep("inner", pl.DataFrame(schema=RUN)), frame([change("a", "a", 1, 1, 7)])
    moved_on = row.with_columns(pl.col(SOURCE).struct.with_fields(partition=pl.lit(2, pl.Int32)))
    run = step([], row, 0, 0).changed
    for runs, rows in (([run], moved_on), ([], pl.concat([row, moved_on]))):
        with pytest.raises(FlowError, match="changes of the key 'a' in its partitions 0 and 2"):
            step(runs, rows, 0, 0)
