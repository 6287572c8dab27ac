"""Where a version of a flow stands: by its ledger, and not beyond where it was swapped in before it emits."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from tests.stored_checkpoint import stored

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Topic
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


class Remembered(Versions):
    """With one checkpoint, in memory."""

    kept = None

    def checkpoint(self, number):
        return self.kept


def versions(committed=3):
    pipeline = Pipeline("shop")

    @pipeline.flow(reads={"ticks": Topic("a", Tick)}, writes=Topic("out", Tick))
    def large(ticks):
        return ticks

    made = Remembered(pipeline, pipeline.flows["large"], Settings(), None)
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


def test_a_ledger_that_is_ahead_of_the_checkpoint_counts():
    assert versions(committed=2).standing(5, entries(2), Generation(current=5)).position == AT[2]
    assert versions(committed=0).standing(5, [Entry()], Generation(current=5)).position == {}
