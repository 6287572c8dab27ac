"""A shadow is begun where the log is whole, and given up without another one in its place."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from penstock.errors import DataLossError, FlowError
from penstock.identity import Identity
from penstock.pipeline import shadowing
from penstock.pipeline.generation import Generation, Generations
from penstock.pipeline.rebuilding import Wanted, _Rebuild
from penstock.settings import Settings
from penstock.testing.sink_contract import Crash, crash_at

SHADOW = replace(Generation().begun("", "v2", shadow=True), building=7)
REBUILD = replace(Generation().begun("", "v2"), building=7)


class Kept(Generations):
    def __init__(self, known):
        self._identity, self.known = Identity("shop.large"), known

    def read(self):
        return self.known

    def write(self, generation, before):
        self.known = generation


@dataclass(frozen=True)
class Flow:
    name: str = "large"
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    flow: Flow
    number: int


class World:
    label, command, made_by, flow, settings = "shop.large", "shop large", "v2", Flow(), Settings()

    def __init__(self, known):
        self.generations, self.removed = Kept(known), []

    def alone(self):
        return nullcontext()

    def beside(self, number):
        return SimpleNamespace(remove=lambda _: self.removed.append(f"target {number}"))

    def forget(self, number):
        self.removed.append(f"checkpoint {number}")

    def shadow_job(self, number):
        return Job(self.flow, number)


@pytest.fixture
def begin(monkeypatch):
    """Begin a shadow over a log that has lost its oldest events."""

    def refuse_lost(flow, settings, until=None, *, partial):
        if not partial:
            raise DataLossError("the oldest events were deleted")

    monkeypatch.setattr(shadowing, "refuse_lost", refuse_lost)
    monkeypatch.setattr(shadowing, "refuse_unfit", lambda _: None)
    return lambda world, *, partial=False: shadowing._begun(world, partial=partial)


def test_a_log_that_is_not_whole_is_no_beginning(begin):
    world = World(Generation())
    with pytest.raises(DataLossError):
        begin(world)
    assert world.generations.known == Generation()
    job = begin(world, partial=True)
    assert job.flow.options == {"startingOffsets": "earliest"}
    assert world.generations.known.shadow
    assert begin(world).number == job.number, "one that was begun goes on"


def test_a_rebuild_that_is_under_way_is_not_taken_for_a_shadow(begin):
    with pytest.raises(FlowError, match=r"complete it with `penstock rebuild shop large`, .* --discard`"):
        begin(World(REBUILD))


@pytest.fixture
def discard(monkeypatch):
    world = World(SHADOW)
    monkeypatch.setattr(shadowing, "Versions", lambda *_: world)
    monkeypatch.setattr(shadowing, "chosen", lambda *_: [None])
    monkeypatch.setattr(
        shadowing, "forget_status", lambda _, each: world.removed.append(f"status of {each.sink}")
    )
    return world, lambda: shadowing.discard_shadow(None, "large", Settings(), None)


@pytest.mark.parametrize("known", [SHADOW, REBUILD])
def test_what_is_given_up_leaves_nothing_so_that_a_rollback_is_possible(discard, known):
    world, give_up = discard
    world.generations.known = known
    assert give_up()
    assert world.removed == ["checkpoint 7", "target 7", "status of shop.large.g7"]
    assert world.generations.known == Generation(last=7)
    assert not give_up(), "there is none any more"


@pytest.mark.parametrize("point", ["discard.begun", "discard.forgotten", "discard.removed"])
def test_what_is_given_up_in_part_does_not_go_on(discard, begin, monkeypatch, point):
    """Its table may be gone, with a checkpoint that stands at the end of the log."""
    world, give_up = discard
    with monkeypatch.context() as patched:
        crash_at(patched, point)
        with pytest.raises(Crash):
            give_up()
    again = r"run `penstock shadow shop large --discard` again: it completes it"
    with pytest.raises(FlowError, match=again):
        begin(world)
    with pytest.raises(FlowError, match=again):
        shadowing.refuse_no_shadow(world, world.generations.known)
    assert give_up()
    assert {"checkpoint 7", "target 7"} <= {*world.removed}
    assert world.generations.known == Generation(last=7)
    assert begin(world, partial=True).number > 7


def test_a_rebuild_that_is_given_up_in_part_does_not_go_on():
    work = object.__new__(_Rebuild)
    work._generations = Kept(replace(REBUILD, discarding=True))
    with pytest.raises(FlowError, match=r"--discard` again"):
        work._build(work._generations.known, Wanted())


def test_what_is_being_swapped_in_is_not_given_up(discard):
    world, give_up = discard
    world.generations.known = SHADOW.cutting({}, 0)
    with pytest.raises(FlowError, match="run `penstock swap shop large` again"):
        give_up()
    assert world.removed == []
