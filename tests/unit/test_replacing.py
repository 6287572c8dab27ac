"""Replacing a flow: its generations, pinned batches and estimates, without Spark or a broker."""

import json
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace

import pytest
from tests.stored_checkpoint import Stored, planned, stored

from penstock.errors import FlowError, TargetError
from penstock.events import Event
from penstock.identity import Identity
from penstock.log import Topic
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.pipeline.attempt import refuse_other_batches
from penstock.pipeline.checkpoint import is_within
from penstock.pipeline.difference import Difference
from penstock.pipeline.generation import Generation
from penstock.pipeline.job import Cut
from penstock.pipeline.pinning import PASSED, Pinning, has_passed, next_end
from penstock.pipeline.replay_progress import Estimate
from penstock.pipeline.trial import Trial
from penstock.pipeline.versions import distance
from penstock.targets import KafkaTarget, LakeTable
from penstock.targets.side_outputs import target_of


@dataclass(frozen=True)
class Tick(Event):
    at: datetime


def test_a_batch_is_pinned_with_the_watermark_that_the_last_one_left():
    made = stored({0: {"a": {0: 5, 1: 5}}, 1: {"a": {0: 9, 1: 6}}}, committed=2)
    made.pin({"a": {0: 12, 1: 6}}, made.pattern() or "")
    _, metadata, orders, clock = made.files["offsets/2"].splitlines()
    assert json.loads(metadata) | {"batchTimestampMs": 0} == {
        "batchWatermarkMs": 1,
        "batchTimestampMs": 0,
        "conf": {"a": "b"},
    }
    assert json.loads(orders) == {"a": {"0": 12, "1": 6}}
    assert json.loads(clock) == {"clock": {"0": 1}}, "what is not named stays"


def test_a_first_batch_is_pinned_from_where_the_sources_began():
    made = Stored({"sources/0/0": '\0v1\n{"a":{"0":3}}', "sources/1/0": '\0v1\n{"clock":{"0":0}}'})
    made.pin({"a": {0: 4}}, planned(9))
    lines = made.files["offsets/0"].splitlines()[2:]
    assert [json.loads(line) for line in lines] == [{"a": {"0": 4}}, {"clock": {"0": 0}}]


def test_the_last_batch_within_a_position_is_found():
    made = stored({0: {"a": {0: 5, 1: 5}}, 1: {"a": {0: 9, 1: 6}}, 2: {"a": {0: 9, 1: 9}}}, committed=3)
    assert made.last_within({"a": {0: 9, 1: 8}}) == 1
    assert made.last_within({"a": {0: 4, 1: 8}}) == -1
    made.roll_back(1)
    assert (made.last_planned(), made.last_committed()) == (1, 1)


def test_steps_to_a_position_are_bounded_and_never_go_back():
    standing: Offsets = {"a": {0: 0, 1: 50}}
    ends = []
    while (end := next_end(standing, {"a": {0: 25, 1: 40}}, at_most=20)) is not None:
        ends.append(end["a"])
        standing = end
    assert ends == [{0: 10, 1: 50}, {0: 20, 1: 50}, {0: 25, 1: 50}]


def pinned(ends: dict[int, Offsets], committed: int, *, strict: bool) -> Pinning:
    job = SimpleNamespace(
        topics=[SimpleNamespace(name="a")], label="shop.large", identity=Identity("shop.large")
    )
    return Pinning(job, stored(ends, committed), {"a": {0: 9, 1: 6}}, strict=strict)


def test_a_batch_beyond_the_position_is_not_worked_on_in_silence():
    """Its results behind the position are nobody else's: a shadow has planned it, or even finished it."""
    within, beyond = {"a": {0: 9, 1: 6}}, {"a": {0: 9, 1: 7}}
    assert pinned({0: within, 1: within}, committed=1, strict=True).plan()
    assert not pinned({0: within}, committed=1, strict=True).plan()
    for committed in (1, 2):
        with pytest.raises(FlowError, match=r"batch 1 .* goes beyond.*`penstock rollback shop large`"):
            pinned({0: within, 1: beyond}, committed=committed, strict=True).plan()
    assert pinned({0: within, 1: beyond}, committed=1, strict=False).plan()


def test_a_cut_is_passed_by_its_own_mark():
    cut = Cut({"a": {0: 9}}, 5)
    checkpoint = Stored({})
    assert not has_passed(checkpoint, cut)
    checkpoint.write(PASSED, Cut({"a": {0: 9}}, 4).mark)
    assert not has_passed(checkpoint, cut), "it was another swap's"
    checkpoint.write(PASSED, Cut({"a": {0: 9}}, 5).mark)
    assert has_passed(checkpoint, cut)


def test_a_replay_is_refused_where_something_else_was_written():
    job = SimpleNamespace(label="shop.large", identity=Identity("shop.large"))
    replay, streamed = Batch("replay", 0, {}, {"a": {0: 9}}), Batch("c", 3, {}, {"a": {0: 9}})
    refuse_other_batches(job, replay, [Entry(1), Entry(1, Batch("replay", 0, {}, {"a": {0: 9}}))])
    shorter = Batch("replay", 0, {}, {"a": {0: 5}})
    for other in (streamed, shorter):
        with pytest.raises(FlowError, match=r"has written batch .* would write all of the log again"):
            refuse_other_batches(job, replay, [Entry(1), Entry(4, other)])


def test_positions_of_two_versions_are_compared():
    assert distance({"a": {0: 5, 1: 2}}, {"a": {0: 3, 1: 4}}) == 4
    assert is_within({}, {})
    assert not is_within({"a": {0: 1}}, {}), "what nobody has read is at its beginning"


def test_a_swap_and_a_rollback_change_places():
    begun = Generation(end={"a": {0: 2}}).begun("", "v2", shadow=True)
    assert begun.building is not None
    swapped = begun.cutting({"a": {0: 9}}, 3).swapped(kept=True)
    assert (swapped.current, swapped.former, swapped.cut) == (begun.building, 0, {"a": {0: 9}})
    assert not swapped.swapping
    back = swapped.turned_back().cutting({"a": {0: 12}}, 5).swapped(kept=True)
    assert (back.current, back.former) == (0, begun.building)
    assert (back.end, back.cut, back.cut_watermark) == ({"a": {0: 2}}, {"a": {0: 12}}, 5)
    forth = back.turned_back().cutting({}, 0).swapped(kept=True)
    assert forth.current == begun.building
    assert forth.current_made_by == "v2"


def test_a_swap_that_is_refused_leaves_things_as_they_were():
    begun = Generation().begun("", "v2", shadow=True)
    assert begun.cutting({}, 0).given_up() == begun
    swapped = begun.cutting({}, 0).swapped(kept=True)
    assert swapped.turned_back().cutting({}, 0).given_up() == swapped


def test_a_generation_of_an_earlier_release_is_read():
    assert Generation().begun("", "v1").swapped().former_made_by == "", "a rebuild keeps no former one"


def test_a_shadow_of_topics_writes_topics_beside_them():
    out, late = Topic("out", Tick), Topic("late", Tick)
    beside = KafkaTarget(out, (late,)).beside("g7")
    assert [topic.name for topic in beside.topics] == ["out.g7", "late.g7"]
    assert {name: topic.name for name, topic in beside._named.items()} == {"late": "late.g7"}
    assert target_of(beside, ()) is beside
    with pytest.raises(TargetError, match="which flows make themselves"):
        target_of(KafkaTarget(out), ())


def test_a_target_that_keeps_nothing_says_so():
    assert not LakeTable.keeps_former
    assert KafkaTarget.keeps_former


def test_an_estimate_before_and_after_all_was_read():
    estimate = Estimate(there=100, began=0.0)
    assert str(estimate) == "0 of 100 read (0 %), 0/s"
    estimate.see(0, now=2.0)  # Spark starts
    estimate.see(250, now=6.0)
    estimate.see(250, now=60.0)  # and writes
    assert str(estimate) == "100 of 100 read (100 %), 25/s, computing and writing"
    estimate.see(20, now=61.0)
    assert estimate.read == 100, "Spark forgets stages"


def test_precision_and_recall():
    tried = Trial("rule", read=100, hits=12, found=8, labelled=5, right=4)
    assert (tried.precision, tried.recall) == (0.5, 0.8)
    assert Trial("rule", 0, 0, 0, 0, 0).precision is None
    assert Trial("rule", 1, 1, 1).recall is None


def test_what_differs_is_added_up():
    found = Difference("f", ("id",), same=5, different=1, only_live=2, only_shadow=3)
    assert (found.differences, found.exact) == (6, True)
    assert not Difference("f", (), 0, 0, 0, 0, apart=3).exact
