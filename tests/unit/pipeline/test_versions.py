"""Where a version of a flow stands: by its ledger, and not beyond where it was swapped in before it emits."""

import json
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from tests.stored_checkpoint import stored

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.log.ledger import Batch, Entry
from penstock.pipeline import Pipeline
from penstock.pipeline.generation import Generation
from penstock.pipeline.job import Cut
from penstock.pipeline.pinning import PASSED
from penstock.pipeline.versions import Standing, Versions
from penstock.settings import Settings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT = ({"a": {0: 5}}, {"a": {0: 9}}, {"a": {0: 12}})
CUT = Cut(AT[1], 3)
KNOWN = Generation(current=5, former=0, cut=CUT.position, cut_watermark=CUT.watermark)


@dataclass(frozen=True)
class Tick(Event):
    at: datetime


@dataclass(frozen=True)
class Person(Event):
    name: str
    at: datetime


TICKS, REFUNDS = Topic("a", Tick), Topic("refunds", Tick)
PEOPLE = Table("people", Person, key="name")


class Remembered(Versions):
    """With one checkpoint, in memory."""

    kept = None

    def checkpoint(self, number):
        return self.kept


def versions(committed=3, reads=(TICKS,), settings=None):
    pipeline = Pipeline("shop")
    named = dict(zip("ab", reads, strict=False))
    function = (lambda a: a) if len(named) == 1 else (lambda a, b: a)
    pipeline.flow(name="large", reads=named, writes=Topic("out", Tick))(function)
    made = Remembered(pipeline, pipeline.flows["large"], settings or Settings(), None)
    object.__setattr__(made, "kept", stored(dict(enumerate(AT)), committed))
    return made


def entries(number, checkpoint="own"):
    return [Entry(4, Batch(checkpoint, number, {}, {**AT[number], "clock": {0: 1}}))] * 2


def test_what_was_computed_in_silence_is_not_emitted():
    made = versions()
    assert made.standing(5, entries(2), KNOWN) == Standing(CUT.position, CUT.watermark)
    assert made.seen(5, KNOWN) == Standing(CUT.position, CUT.watermark)
    half = [*entries(1), *entries(2)]
    assert made.standing(5, half, KNOWN).position == CUT.position, "half a batch of nothing is nothing"
    made.kept.write(PASSED, replace(CUT, watermark=2).mark)
    assert made.seen(5, KNOWN).position == CUT.position, "that was another swap"
    made.kept.write(PASSED, CUT.mark)
    assert made.standing(5, entries(2), KNOWN) == Standing(AT[2], 7)
    assert made.seen(5, KNOWN) == Standing(AT[2], 7)


def test_another_generation_stands_where_its_checkpoint_does():
    assert versions().seen(7, KNOWN) == Standing(AT[2], 7)


def test_results_that_are_out_in_part_are_not_cut_over():
    with pytest.raises(FlowError, match="in the midst of a batch"):
        versions().standing(5, [*entries(1), *entries(2)], Generation(current=5))


@pytest.mark.parametrize("found", [[Entry()], [], entries(1), entries(2, "another")])
def test_what_spark_has_written_by_itself_is_not_known_to_the_offset(found):
    """The flow was run in real time, whatever its declaration says today."""
    with pytest.raises(FlowError, match=r"is or was written by Spark itself"):
        versions().standing(5, found, Generation(current=5))


@pytest.mark.parametrize("by", [{"by": "spark"}, {}])
def test_what_spark_has_begun_to_write_by_itself_is_not_known_either(by):
    """The flow was started in real time, and was killed in its first batch there: nothing is committed."""
    made = versions()
    made.kept.write("settled.json", json.dumps({"batch": 2, "decoder": {}, **by}))
    with pytest.raises(FlowError, match=r"is or was written by Spark itself"):
        made.standing(5, entries(2), Generation(current=5))
    made.kept.write("settled.json", json.dumps({"batch": 2, "decoder": {}, "by": "sink"}))
    assert made.standing(5, entries(2), Generation(current=5)).position == AT[2]


def test_a_new_version_does_not_read_a_topic_whose_past_nobody_would_emit():
    made = versions(reads=(TICKS, REFUNDS))
    with pytest.raises(FlowError, match=r"reads 'refunds', which .* by none; let a flow of its own"):
        made.refuse_additional(Standing(AT[2]))
    made.refuse_additional(Standing({**AT[2], "refunds": {0: 0}}))
    made.refuse_additional(Standing({}))
    versions().refuse_additional(Standing({**AT[2], "refunds": {0: 4}}))


def test_a_table_beside_events_is_only_looked_at():
    versions(reads=(TICKS, PEOPLE)).refuse_additional(Standing(AT[2]))
    with pytest.raises(FlowError, match="reads 'people'"):
        versions(reads=(PEOPLE,)).refuse_additional(Standing(AT[2]))


def test_one_process_at_a_time_has_a_flow_for_itself(tmp_path):
    made = versions(settings=Settings(data=tmp_path))
    waiting = threading.Thread(target=lambda: entered.append(made.alone().__enter__()), daemon=True)
    entered = []
    with made.alone():
        waiting.start()
        waiting.join(0.2)
        assert not entered
    waiting.join(10)
    assert entered


def test_a_ledger_that_is_ahead_of_the_checkpoint_counts():
    assert versions(committed=2).standing(5, entries(2), Generation(current=5)).position == AT[2]
    assert versions(committed=0).standing(5, [Entry()], Generation(current=5)).position == {}
