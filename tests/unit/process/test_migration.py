"""State of an older shape, brought to the present one: any field added, renamed, left out, however deep."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.process.columns.lineage import Lineage, lineage_of, original
from penstock.process.dedup import FirstStep
from penstock.process.state.comparison import difficulties
from penstock.process.state.description import StateDescription
from penstock.process.state.frames import pack, unpack
from penstock.process.state.migration import migrated, renamed
from penstock.process.state.step import BEFORE
from penstock.process.time.reordering import ReorderStep
from penstock.process.windows.aggregates import Average, Collect, Count, Distinct, First, Last, Max, Sum, Top
from penstock.process.windows.panes import Panes
from penstock.process.windows.sessions import Sessions
from penstock.process.windows.shape import Fixed, Session, Sliding
from penstock.process.windows.sliding import Slides
from penstock.process.windows.steps import WindowStep
from penstock.process.wire.lineages import lineages
from penstock.schemas import default, merge, rename, spark_schema, split, upcast


class Channel(Enum):
    WEB = "web"


@dataclass(frozen=True)
class Address:
    city: str
    zip: str = "0000"


@dataclass(frozen=True)
class Order(Event):
    buyer: str
    address: Address
    at: datetime
    channel: Channel = Channel.WEB
    tip: Annotated[Decimal, Precision(12, 2)] = Decimal("1.25")
    due: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    day: date = date(2026, 1, 2)
    seal: bytes = b"\x00\xff"
    tags: list[str] = field(default_factory=list)
    note: str | None = None


orders = Topic("orders", Order, upcasts=(upcast(1, rename("name", to="buyer")),))


def shape(topic):
    """The columns of a topic as flows read them."""
    written = lineages(topic)
    return StructType(
        [
            StructField(each.name, each.dataType, metadata=written[each.name].to_metadata(each.name))
            for each in spark_schema(topic.event)
        ]
    )


POLARS = {
    "id": pl.String, "buyer": pl.String, "address": pl.Struct({"city": pl.String, "zip": pl.String}),
    "at": pl.Datetime("us", "UTC"), "channel": pl.String, "tip": pl.Decimal(12, 2),
    "due": pl.Datetime("us", "UTC"), "day": pl.Date, "seal": pl.Binary, "tags": pl.List(pl.String),
    "note": pl.String,
}  # fmt: skip
LIKE = pl.DataFrame(
    schema={"_key": pl.String, "_event": pl.Struct(POLARS), "parts": pl.List(pl.Struct(POLARS))}
)
KEPT = lineage_of(
    StructType(
        [
            StructField("_key", StringType()),
            StructField("_event", shape(orders)),
            StructField("parts", ArrayType(shape(orders))),
        ]
    )
)


def test_defaults_of_the_class_and_names_of_the_upcasters():
    old = {"id": "1", "name": "ada", "address": {"city": "Linz"}, "at": datetime(2026, 1, 1, tzinfo=UTC)}
    kept = pl.DataFrame({"_key": ["ada"], "_event": [old], "parts": [[old, old]]})
    found = migrated(kept, LIKE, KEPT)
    assert found.schema == LIKE.schema
    (row,) = found.to_dicts()
    now = {
        "id": "1", "buyer": "ada", "address": {"city": "Linz", "zip": "0000"}, "at": old["at"],
        "channel": "web", "tip": Decimal("1.25"), "due": datetime(2026, 1, 1, tzinfo=UTC),
        "day": date(2026, 1, 2), "seal": b"\x00\xff", "tags": [], "note": None,
    }  # fmt: skip
    assert row == {"_key": "ada", "_event": now, "parts": [now, now]}
    assert (
        renamed(kept.rename({"_key": "name"}), Lineage(fields={"buyer": Lineage(("name",))})).columns[0]
        == "buyer"
    )


names = st.sampled_from([f"f{number}" for number in range(8)])


def structs(depth):
    """A struct as (name → its values' kind), where a kind is a struct again, a list of it, or a number."""
    inner = (
        st.none() if depth == 0 else st.one_of(st.none(), structs(depth - 1), st.tuples(structs(depth - 1)))
    )
    return st.dictionaries(names, inner, min_size=1, max_size=4)


def dtype(kind):
    if kind is None:
        return pl.Int64
    if isinstance(kind, tuple):
        return pl.List(dtype(kind[0]))
    return pl.Struct({name: dtype(each) for name, each in kind.items()})


def value(kind, seed):
    if kind is None:
        return seed
    if isinstance(kind, tuple):
        return [value(kind[0], seed + number) for number in range(seed % 3)]
    return {name: value(each, seed + place) for place, (name, each) in enumerate(kind.items())}


def expected(old, before, after):
    """What is to become of a value, without frames."""
    if before is None and after is None:
        return old
    if isinstance(before, tuple):
        return [expected(each, before[0], after[0]) for each in old]
    return {
        name: expected(old[there], before[there], kind) if (there := found(name, before)) else None
        for name, kind in after.items()
    }


def found(name, before):
    return next((each for each in (name, f"{name}_old") if each in before), None)


def aligned(before, after):
    """The kind of what was there is the same as before; other changes are refused before state is read."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        return (aligned(before[0], after[0]),)
    if isinstance(before, dict) and isinstance(after, dict):
        return {
            name: aligned(before[there], kind) if (there := found(name, before)) else kind
            for name, kind in after.items()
        }
    return without_old(before)


def without_old(kind):
    if isinstance(kind, tuple):
        return (without_old(kind[0]),)
    if isinstance(kind, dict):
        return {name.removesuffix("_old"): without_old(each) for name, each in kind.items()}
    return None


def past(kind):
    """Every field may have been called otherwise."""
    if kind is None:
        return {}
    fields = kind[0] if isinstance(kind, tuple) else kind
    return {name: Lineage((f"{name}_old",), fields=past(each)) for name, each in fields.items()}


@given(structs(2), structs(2), st.sets(names), st.integers(0, 9))
def test_any_field_added_renamed_or_left_out(before, after, old_names, seed):
    before = {f"{name}_old" if name in old_names else name: kind for name, kind in before.items()}
    after = aligned(before, after)
    kept = pl.DataFrame(
        {"_us": [seed, 1], "e": [value(before, seed), None]}, schema={"_us": pl.Int64, "e": dtype(before)}
    )
    like = pl.DataFrame(schema={"_us": pl.Int64, "e": dtype(after)})
    brought = migrated(unpack(pack(kept)), like, Lineage(fields={"e": Lineage(fields=past(after))}))
    assert brought.schema == like.schema
    assert brought.to_dicts() == [
        {"_us": seed, "e": expected(value(before, seed), before, after)},
        {"_us": 1, "e": None},
    ]


def test_a_name_that_has_passed_to_another_field():
    """`a` became `b`, and there is a new `a`: what was kept as `a` alone is the old one."""
    topic = Topic("orders", Order, upcasts=(upcast(1, rename("note", to="buyer"), default("tip", "2.00")),))
    written = lineages(topic)
    assert (written["note"].original("note"), written["buyer"].original("buyer")) == ("note@2", "note")
    assert (written["tip"].default, written["tip"].required) == ("2.00", False)
    like = pl.DataFrame(schema={"buyer": pl.String, "note": pl.String})
    fields = Lineage(fields={name: written[name] for name in like.columns})
    assert migrated(pl.DataFrame({"note": ["x"]}), like, fields).rows() == [("x", None)]
    assert migrated(pl.DataFrame({"note": ["x"], "buyer": ["y"]}), like, fields).rows() == [("y", "x")]


def test_lineage_ends_where_a_step_makes_a_field_of_others():
    topic = Topic("orders", Order, upcasts=(upcast(1, split("name", into=("buyer", "note"))),))
    assert lineages(topic)["note"].required
    topic = Topic("orders", Order, upcasts=(upcast(1, merge(("first", "last"), into="buyer")),))
    assert lineages(topic)["buyer"].required
    assert not lineages(orders)["note"].required


def test_a_column_under_another_name_is_not_the_field_any_more():
    written = lineages(orders)["buyer"].to_metadata("buyer")
    schema = StructType(
        [
            StructField("buyer", StringType(), metadata=written),
            StructField("key", StringType(), metadata=written),
        ]
    )
    assert (original(schema, "buyer"), original(schema, "key")) == ("name", "key")


US = timedelta(microseconds=10)
AGGREGATES = {
    "n": Count, "v": Sum, "mean": Average, "most": Max, "first": First, "last": Last, "all": Collect,
    "different": Distinct, "top": Top,
}  # fmt: skip
MADE = {name: each("v") for name, each in AGGREGATES.items()}
STEPS = {
    "held": ReorderStep(),
    "first": FirstStep(("key",), 10, None),
    "panes": WindowStep(Panes(("key",), MADE, 5, Fixed(US, US)), None),
    "sessions": WindowStep(Sessions(("key",), MADE, 5, Session(US)), None),
    "slides": WindowStep(Slides(("key",), MADE, 5, Sliding(US)), None),
}


@pytest.mark.parametrize("name", STEPS)
def test_state_without_rows_has_the_types_of_state(name):
    """What is kept of no rows is what older state is brought to."""
    order = {"key": ["a", "b"], "_us": [100, 200], "_partition": [0, 0], "_offset": [0, 1]}
    rows = pl.DataFrame(order).with_columns(
        pl.col("_partition").cast(pl.Int32), *(pl.lit(1, pl.Int64).alias(each) for each in AGGREGATES)
    )
    rows = rows.with_columns(pl.struct("key", "v").alias("_event"))
    empty = STEPS[name](None, rows.clear(), BEFORE, BEFORE).kept
    kept = unpack(pack(STEPS[name](None, rows, BEFORE, BEFORE).kept))
    assert kept.height
    assert kept.schema == empty.schema


def state(event, *, kind="versions", key="_key", buckets=16, declared=False, **columns):
    more = [StructField(name, type) for name, type in columns.items()]
    fields = StructType([StructField(key, StringType()), StructField("_event", event), *more])
    described = StateDescription.of(kind, fields, (key,), buckets, declared=declared)
    return StateDescription.of_column(described.to_metadata())


def without(struct, *names):
    return StructType([each for each in struct if each.name not in names])


def test_what_can_be_followed_and_what_not():
    now = state(shape(orders))
    before = shape(Topic("orders", Order))
    named = StructType([*without(before, "buyer", "tip", "tags"), StructField("name", StringType())])
    assert list(difficulties(state(named), now)) == []
    assert list(difficulties(state(before), state(without(before, "note")))) == []
    found = list(difficulties(state(without(named, "name")), now))
    assert found == ["_event.buyer is new, and has no default"]
    changed = StructType([*without(named, "address"), StructField("address", StringType())])
    assert list(difficulties(state(changed), now)) == ["_event.address was string, and would be a struct"]
    assert list(difficulties(now, state(shape(orders), buckets=8))) == [
        "it was in 16 buckets, and would be in 8 buckets"
    ]
    assert list(difficulties(now, state(shape(orders), kind="held"))) == [
        "it was versions, and would be held"
    ]


def test_a_flow_can_not_go_back_to_an_older_name():
    """State of the newer version would not be found under it."""
    v1 = StructType([*without(shape(Topic("orders", Order)), "buyer"), StructField("name", StringType())])
    now = state(shape(orders))
    assert list(difficulties(state(v1), now)) == []
    found = "_event.name was called buyer, which no upcaster says"
    assert list(difficulties(now, state(v1))) == [found]


def test_state_that_is_declared_may_grow():
    event = without(shape(orders), "note")
    before = state(event, declared=True)
    grown = state(event, declared=True, total=LongType())
    assert list(difficulties(before, grown)) == []
    assert list(difficulties(grown, before)) == ["it had total"]
    assert list(difficulties(state(event), state(event, total=LongType()))) == ["it would have total"]
    wider = [state(event, declared=True, total=each) for each in (IntegerType(), LongType(), StringType())]
    assert list(difficulties(*wider[:2])) == []
    assert list(difficulties(*wider[1:])) == ["total was bigint, and would be string"]
