"""What earlier releases have stored goes on under its name: state, descriptions, ids and positions."""

from types import SimpleNamespace

import polars as pl
import pytest
from pyspark.sql.types import LongType, MapType, NullType, StringType, StructField, StructType

from penstock.durations import MICROSECOND
from penstock.log.redrive import GROUP
from penstock.pipeline.state import _operator, _used, compare_state
from penstock.process.columns.lineage import NOTHING, Lineage, lineage_of
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.keyed.function import KeyedFunction
from penstock.process.keyed.step import KeyedStep
from penstock.process.state.comparison import difficulties
from penstock.process.state.description import StateDescription, stored_key
from penstock.process.state.migration import migrated
from penstock.process.state.pinned import Pins
from penstock.process.state.step import BEFORE
from penstock.process.time.reordering import _STATE
from penstock.process.windows.kept import RETRACTED, RETRACTIONS
from penstock.process.windows.sessions import Sessions
from penstock.process.windows.shape import Session, Sliding
from penstock.process.windows.sliding import Slides
from penstock.process.wire.messages import stored_names

ROWS = pl.DataFrame(schema={"key": pl.String, "_us": pl.Int64})


def events(*names):
    """Events as state holds them, with columns of text."""
    event = StructType([StructField(name, StringType()) for name in names])
    return StructType([StructField("key", StringType()), StructField("_event", event)])


def test_the_key_is_not_taken_for_a_column_that_has_its_old_name():
    """The key was once called `card`, and what is kept beside it is called so now."""
    renamed = StructField("account", StringType(), True, Lineage(names=("card",)).to_metadata("account"))
    kept = StructType([renamed, StructField("card", StringType())])
    assert StateDescription.of("windows", kept, ("account",), 16).key == ["account"]


def described_state(*names):
    metadata = StateDescription.of("held back", events(*names), ("key",), 16).to_metadata()
    return StateDescription.of_column(metadata)


def column(name):
    return {"name": name, "type": "string", "metadata": {}}


def node(name, *columns):
    """A step of a plan that has the columns on both sides."""
    found = [column(each) for each in columns]
    sides = (SimpleNamespace(columns=found),)
    return SimpleNamespace(name=name, columns=found, keys=found, children=sides, aggregates=[("max", found)])


def description(*columns):
    """What is written beside the checkpoint of a flow whose steps have the columns."""
    steps = [node(name, *columns) for name in ("Aggregate", "Join", "Deduplicate")]
    state, used = [_operator(each) for each in steps], [_used(each) for each in steps]
    return {"version": "1", "reads": ["views"], "state": state, "used": used}


def test_a_flow_with_side_outputs_goes_on_with_its_checkpoint():
    before = {
        "version": "1",
        "reads": ["views"],
        "state": [
            {"step": "Aggregate", "shape": ["key string", "outlet string"]},
            {"step": "Join", "shape": ["key string", "outlet string"]},
            {
                "step": "Deduplicate",
                "shape": ["key string", "outlet string"],
                "keys": ["key string", "outlet string"],
            },
        ],
        "used": [["max(key, outlet)"], ["key string", "outlet string"], []],
    }
    after = description("key", SIDE_OUTPUT)
    assert after == before
    assert all(each.kept for each in compare_state(before, after))
    assert not all(each.kept for each in compare_state(before, description("key")))


def test_frames_with_side_outputs_are_compared_and_read():
    before, after = described_state("n", "outlet"), described_state("n", SIDE_OUTPUT)
    assert list(difficulties(before, after)) == []
    assert list(before.columns["_event"].type["struct"]) == ["n", "outlet"]
    assert list(after.columns["_event"].type["struct"]) == ["n", "outlet"]
    like = pl.DataFrame({"key": ["a"], "_event": [{"n": "1", SIDE_OUTPUT: "late"}]})
    old = pl.DataFrame({"key": ["a"], "_event": [{"n": "1", "outlet": "late"}]})
    assert migrated(old, like.clear(), lineage_of(events("n", SIDE_OUTPUT))).equals(like)


def test_a_users_own_column_is_not_taken_for_the_side_output():
    found = lineage_of(events("outlet", SIDE_OUTPUT)).fields["_event"].fields
    assert (found["outlet"].original("outlet"), found[SIDE_OUTPUT].original(SIDE_OUTPUT)) == (
        "outlet",
        SIDE_OUTPUT,
    )
    held = ["n", "outlet", SIDE_OUTPUT]
    schema = StructType([StructField(name, StringType()) for name in held])
    assert Pins().pin("event", schema).held == held


def test_pinned_events_with_side_outputs_go_on():
    kept = {"event 0": {"fields": {"n": "string", "outlet": "string"}, "room": True}}
    schema = StructType([StructField("n", StringType()), StructField(SIDE_OUTPUT, StringType())])
    pins = Pins(kept, began=True)
    assert pins.pin("event", schema).held == ["n", SIDE_OUTPUT]
    assert pins.taken == kept


def test_ids_are_made_of_the_stored_names():
    columns = {"rows": LongType(), SIDE_OUTPUT: StringType(), "kind": StringType(), "nothing": NullType()}
    schema = StructType([StructField(name, kind) for name, kind in columns.items()])
    schema = schema.add("_source", StructType([StructField("offset", LongType())]))
    assert stored_names(schema) == [("kind", "kind"), ("outlet", SIDE_OUTPUT), ("rows", "rows")]


@pytest.mark.parametrize(
    "windows",
    [Sessions(("key",), {}, 0, Session(5 * MICROSECOND)), Slides(("key",), {}, 0, Sliding(5 * MICROSECOND))],
    ids=["sessions", "sliding"],
)
def test_windows_keep_whether_a_result_was_emitted_under_its_name(windows):
    assert "_told" in windows.take(None, ROWS, BEFORE, BEFORE).kept.columns


def test_timers_are_kept_under_their_name():
    state = pl.DataFrame(schema={"card": pl.String, "closes": pl.Datetime("us")})
    step = KeyedStep(
        KeyedFunction(lambda rows, state: (state, rows), ("card",), state, ROWS, "polars"), timer="closes"
    )
    assert "_alarm" in step.empty.columns


def test_what_was_written_before_is_known():
    assert RETRACTIONS == (RETRACTED, "withdrawn")
    assert (GROUP, _STATE) == ("penstock.replay.", "held back")


def test_a_description_is_written_to_the_byte_as_it_was():
    key = StructField(
        "url", StringType(), metadata=Lineage(names=("link",), required=True).to_metadata("url")
    )
    kept = StructType([key, StructField("total", MapType(StringType(), LongType()))])
    state = StateDescription.of("state", kept, ("url",), 4, declared=True, title="state of {url string}")
    assert state.column == "state of {url string}, in 4 buckets by url"
    assert state.to_metadata() == {
        "penstock.state": '{"kind": "state", "by": ["link"], "buckets": 4, "declared": true, "columns": '
        '{"link": {"name": "url", "names": ["link"], "required": true, "type": "string"}, '
        '"total": {"name": "total", "names": [], "required": false, "type": {"map": "bigint"}}}}'
    }
    assert StateDescription.read(state.to_json()).to_json() == state.to_json()


def test_the_key_is_found_in_old_and_new_descriptions():
    old = {"shape": ["versions of struct<a:int>, in 16 buckets by card, shop binary"]}
    none = {"shape": ["ranking of url, in 1 buckets by  binary", "card string"]}
    assert stored_key([none, old]) == (["card", "shop"], NOTHING)
    new = {"shape": [], "frame": described_state("n").to_json()}
    assert stored_key([old, new])[0] == ["key"]
    assert stored_key([]) == ([], NOTHING)
