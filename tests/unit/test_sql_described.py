"""Flows in SQL as values: what is refused when they are described, without Spark."""

import inspect
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError, FlowError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process.sql.text import nearest
from penstock.process.windows import Watermark


@dataclass(frozen=True)
class Tick(Event):
    at: datetime


@dataclass(frozen=True)
class Span(Event, time="end"):
    start: datetime
    end: datetime


ticks, tocks, rates = Topic("ticks", Tick), Topic("tocks", Tick), Table("rates", Tick, key="id")
spans = Topic("spans", Span, time="start")


def describe(query="SELECT * FROM ticks", **options):
    pipeline = Pipeline("clock")
    pipeline.sql("copy", query, **{"reads": {"ticks": ticks}, "writes": tocks} | options)
    return pipeline.flows["copy"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reads": {}}, "reads nothing"),
        ({"query": " \n"}, "an empty query"),
        ({"query": Path("nowhere.sql")}, r"can't be read.*nowhere\.sql"),
        ({"reads": {"the-ticks": ticks}}, "'the-ticks', which is no name in SQL"),
        ({"looks_up": {"Ticks": rates}}, "differ in capitals only"),
        (
            {"watermark": {"tick": "1 second"}},
            "a watermark of 'tick', which it does not read; it reads ticks",
        ),
        ({"watermark": {"ticks": Watermark("1 second", future="1 hour")}}, "with `future` or `sources`"),
        ({"reads": {"rates": rates}, "watermark": {"rates": "1 second"}}, "its changes have none"),
        ({"watermark": {"ticks": "soon"}}, "soon"),
        ({"writes": ticks}, "writes the topic it reads"),
        ({"mode": "realtime", "guarantee": "exactly-once"}, "can't be exactly-once in realtime mode"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_described(options, message):
    with pytest.raises(ConfigurationError, match=message):
        describe(**options)


def test_a_query_is_the_function_of_a_flow_like_any_other(tmp_path):
    path = tmp_path / "copy.sql"
    path.write_text("SELECT * FROM ticks")
    flow = describe(path, looks_up={"rates": rates}, lanes=2, version="3", watermark={"ticks": "1 second"})
    assert (flow.lanes, flow.version, flow.output) == (2, "3", "append")
    assert [*inspect.signature(flow.function).parameters] == ["ticks", "rates"]
    assert flow.function.__name__ == "copy"
    assert flow.function.text == "SELECT * FROM ticks"
    assert flow.function.times["ticks"].column == "at"


def test_the_time_is_that_of_the_topic():
    flow = describe(reads={"ticks": spans}, watermark={"ticks": "1 second"})
    assert flow.function.times["ticks"].column == "start"


def test_results_are_final_but_in_real_time():
    assert describe(mode="realtime").output == "update"
    assert describe(mode="replay").output == "append"
    assert describe(output="update").output == "update"


def test_a_pipeline_has_each_flow_once():
    pipeline = Pipeline("clock")
    pipeline.sql("copy", "SELECT * FROM ticks", reads={"ticks": ticks}, writes=tocks)
    with pytest.raises(FlowError, match="two flows 'copy'"):
        pipeline.sql("copy", "SELECT * FROM ticks", reads={"ticks": ticks}, writes=tocks)


def test_the_nearest_names_are_named():
    assert nearest("view", ["views", "clicks"]) == "did you mean views?"
    assert nearest("orders", ["views", "clicks"]) == "there is clicks, views"
    assert nearest("orders", []) is None
