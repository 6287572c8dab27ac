"""Upcasters, chained from any version to the newest, in Python and as Spark expressions."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

import pytest
from tests.schema_directory import MemoryDirectory

from penstock.errors import ConfigurationError, DecodeError
from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.schemas import cast, default, merge, python, rename, split, upcast
from penstock.schemas.upcasting import upcasts_from

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class OrderV1(Event, type="Order"):
    name: str
    amount: str
    at: datetime = NOW


@dataclass(frozen=True)
class OrderV2(Event, type="Order"):
    first: str
    last: str | None
    amount: Annotated[Decimal, Precision(12, 2)]
    street: str
    city: str
    at: datetime = NOW


@dataclass(frozen=True)
class OrderV3(Event, type="Order"):
    given: str
    family: str | None
    amount: Annotated[Decimal, Precision(12, 2)]
    address: str
    currency: str
    at: datetime = NOW


def shout(values):
    return values | {"address": values["address"].upper()}


UPCASTS = (
    upcast(
        1,
        split("name", into=("first", "last")),
        cast("amount", to="decimal(12,2)"),
        default("street", "?"),
        default("city", "?"),
    ),
    upcast(
        2,
        rename("first", to="given"),
        rename("last", to="family"),
        merge(("street", "city"), into="address", on=", "),
        default("currency", "EUR"),
        python(shout),
    ),
)


@pytest.mark.parametrize("format", ["avro", "json-schema"])
def test_an_event_of_any_version_is_read_as_the_newest(format):
    directory = MemoryDirectory()
    messages = [
        Topic("orders", type(event), format=format).codec(directory).encode(event)
        for event in (
            OrderV1("Ada Lovelace", "12.5", id="1"),
            OrderV2("Grace", None, Decimal(3), "Main St", "Arlington", id="2"),
            OrderV3("Mary", "Shelley", Decimal(4), "LONDON", "GBP", id="3"),
        )
    ]
    codec = Topic("orders", OrderV3, format=format, upcasts=UPCASTS).codec(directory)
    assert [codec.decode(message) for message in messages] == [
        OrderV3("Ada", "Lovelace", Decimal("12.50"), "?, ?", "EUR", id="1"),
        OrderV3("Grace", None, Decimal(3), "MAIN ST, ARLINGTON", "EUR", id="2"),
        OrderV3("Mary", "Shelley", Decimal(4), "LONDON", "GBP", id="3"),
    ]
    broken = Topic("orders", OrderV1, format=format).codec(directory).encode(OrderV1("x", "a lot", id="4"))
    with pytest.raises(DecodeError, match="'a lot', which can't be cast"):
        codec.decode(broken)


@pytest.mark.parametrize(
    "make",
    [
        lambda: upcast(0, default("a", 1)),
        lambda: upcast(1),
        lambda: cast("a", to="blob"),
        lambda: split("a", into=("b",)),
        lambda: split("a", into=("b", "c"), on=""),
        lambda: upcasts_from(1, [upcast(1, default("a", 1)), upcast(1, default("a", 2))]),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(ConfigurationError):
        make()


def test_a_version_without_an_upcast_of_its_own_goes_through_the_later_ones():
    first, third = upcast(1, default("a", 1)), upcast(3, rename("a", to="b"))
    for version, wanted in ((1, (first, third)), (2, (third,)), (3, (third,)), (4, ()), (None, ())):
        assert upcasts_from(version, [third, first]) == wanted


@dataclass(frozen=True)
class TicketV1(Event, type="Ticket"):
    name: str
    at: datetime = NOW


@dataclass(frozen=True)
class TicketV2(Event, type="Ticket"):
    name: str
    seat: int = 0
    at: datetime = NOW


@dataclass(frozen=True)
class TicketV3(Event, type="Ticket"):
    guest: str = "nobody"
    seat: int = 0
    at: datetime = NOW


def test_no_default_stands_in_for_what_a_later_upcast_would_bring():
    """Version 2 only adds a field, so that nobody wrote an upcast from version 1."""
    schemas = MemoryDirectory()
    one, two = (Topic("t", kind, format="avro").codec(schemas) for kind in (TicketV1, TicketV2))
    written = [one.encode(TicketV1("ann")), two.encode(TicketV2("bob", 7))]
    codec = Topic("t", TicketV3, format="avro", upcasts=(upcast(2, rename("name", to="guest")),)).codec(
        schemas
    )
    assert [(each.guest, each.seat) for each in map(codec.decode, written)] == [("ann", 0), ("bob", 7)]


ROWS = [
    {"text": text, "other": other, "number": number, "flag": flag, "real": real}
    for text, other, number, flag, real in [
        ("a b c", "x", 1, True, 1.5),
        ("a", None, -5, False, -0.0),
        ("", "y", 2**62, None, 1e300),
        (None, "z", None, True, None),
        ("12", "12.345", 12, True, 12.0),
        (" 7", "-0.5", 0, False, 0.1),
        ("1e3", ".5", 7, None, 3.0),
        ("99999999999999999999", "+1.", 1, True, 2.0),
        ("a.b", "日本 語", 1, True, 2.0),
    ]
]
STEPS = [
    rename("text", to="renamed"),
    default("text", "none"),
    default("fresh", 7),
    split("text", into=("one", "two")),
    split("text", into=("one", "two", "three"), on="."),
    merge(("text", "other"), into="both", on="-"),
    *(
        cast(name, to=to)
        for name in ("text", "other", "number", "flag", "real")
        for to in ("string", "long", "double", "decimal(6,2)")
    ),
]


def test_every_declarative_step_does_the_same_in_spark(spark):
    from pyspark.sql import functions as F

    from penstock.schemas.upcasting import Native

    rows = spark.createDataFrame(ROWS, "text string, other string, number long, flag boolean, real double")
    rows = rows.coalesce(1).withColumn("place", F.monotonically_increasing_id())
    columns = []
    for number, step in enumerate(STEPS):
        native = step.compile(Native({name: F.col(name) for name in ROWS[0]}))
        broken = (
            F.greatest(F.lit(False), *(F.coalesce(each, F.lit(False)) for each in native.broken))
            if native.broken
            else F.lit(False)
        )
        columns.append(
            F.struct(
                broken.alias("broken"), *(column.alias(name) for name, column in native.columns.items())
            ).alias(f"s{number}")
        )
    found = rows.orderBy("place").select(*columns).collect()
    for row, answers in zip(ROWS, found, strict=True):
        for number, step in enumerate(STEPS):
            answer = answers[number].asDict()
            try:
                expected = step.apply(row)
            except DecodeError:
                assert answer["broken"], (step, row, answer)
                continue
            assert not answer.pop("broken"), (step, row, answer)
            assert answer == expected, (step, row)


def test_python_steps_say_that_spark_can_not_run_them():
    with pytest.raises(ConfigurationError, match="'shout' is Python"):
        python(shout).compile(None)
