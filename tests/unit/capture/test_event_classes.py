"""Captured tables as Python: what is printed can be imported."""

from penstock.capture.capture import Capture
from penstock.capture.event_classes import classes
from penstock.capture.tables import Column, TableShape
from penstock.capture.types import Type

ID = Column("id", Type("int8"), required=True)
NUMERIC = Type("numeric", modifier=(12 << 16 | 2) + 4)


def made(*shapes, **more):
    capture = Capture("shop", tables=tuple(each.path for each in shapes), **more)
    story: dict[str, object] = {"__name__": "story"}
    exec(classes(capture, shapes), story)
    return story


def test_each_table_has_a_class_and_a_table():
    orders = TableShape(
        "public", "orders", (ID, Column("price", NUMERIC), Column("class", Type("text"))), ("id",)
    )
    story = made(orders)
    assert story["Order"](id=1).price is None
    assert (story["ORDERS"].name, story["ORDERS"].key, story["ORDERS"].format) == (
        "shop.public.orders",
        "id",
        "debezium-json",
    )


def test_composite_keys_doubled_names_and_odd_ones_can_be_imported():
    lines = TableShape("public", "lines", (ID, Column("n", Type("int4"), required=True)), ("id", "n"))
    other = TableShape("sales", "lines", (ID,), ("id",))
    odd = TableShape("public", "9 odd", (Column('x", 1 / 0, "', Type("int4")), ID), ("id",))
    keyless = TableShape("public", "log", (ID,))
    story = made(lines, other, odd, keyless)
    assert {"PublicLine", "SalesLine"} <= set(story)


def test_flat_rows_need_a_time():
    at = Column("placed", Type("timestamptz"), required=True)
    with_time = TableShape("public", "orders", (ID, at), ("id",))
    without = TableShape("public", "places", (ID,), ("id",))
    story = made(with_time, without, format="flat-json")
    assert story["ORDERS"].time_of
    assert "PLACES" not in story
