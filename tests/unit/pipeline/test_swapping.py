"""Swapping, over generations in memory: what comes in between, breaks off, or can't be cleaned up."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.stored_checkpoint import stored

from penstock.errors import FencedError, FlowError, LogError, SinkError, TargetError
from penstock.identity import Identity
from penstock.pipeline import swapping
from penstock.pipeline.diffing import Compared
from penstock.pipeline.generation import Generation, Generations
from penstock.pipeline.job import Job
from penstock.pipeline.pinning import PASSED
from penstock.pipeline.swapping import _Swap
from penstock.pipeline.versions import Standing
from penstock.settings import Settings

SHADOW = replace(Generation().begun("", "v2", shadow=True), building=7)
SWAPPED = SHADOW.cutting({"a": {0: 5}}, 7).swapped(kept=True)
P, FURTHER = Standing({"a": {0: 9}}, 7), Standing({"a": {0: 12}}, 7)


class Kept(Generations):
    def __init__(self, known):
        self._identity, self.known = Identity("shop.large"), known

    def read(self):
        return self.known

    def write(self, generation, before):
        assert self.known == before
        self.known = generation


@dataclass
class Target:
    """A topic, or else a table."""

    log: list[str]
    swap_shuts_out = False
    keeps_former = True
    damaged: Exception | None = None

    def remove(self, settings):
        self.log.append("removed")

    def exchange(self, other, kept, settings):
        self.log.append("exchanged")
        if self.damaged:
            raise self.damaged


@dataclass
class Sink:
    number: int
    log: list[str]
    broken: Exception | None = None

    def take_over(self):
        if self.broken:
            raise self.broken
        self.log.append(f"shut {self.number} out")
        return ()

    def open(self, *, anew=False):
        self.log.append(f"claimed {self.number}" + " anew" * anew)

    def write(self, rows, batch):
        assert batch.topics == {"a": "id"}
        self.log.append(f"wrote batch {batch.number}")

    def close(self):
        pass


class Log(list):
    """What has happened, with another process that comes in between."""

    def __init__(self, world):
        self.world = world

    def append(self, entry):
        super().append(entry)
        if self.world.overtaken is not None and entry == self.world.overtaken[0]:
            self.world.generations.known = self.world.overtaken[1]


@dataclass
class World:
    """The versions of a flow whose standing is said one after the other; the last one stays."""

    known: Generation
    standings: list[Any]
    writes_topics: bool = True
    log: list[str] = field(init=False)
    reported: list[str] = field(default_factory=list)
    broken: Exception | None = None
    additional: bool = False
    overtaken: tuple[str, Generation] | None = None  # what another process leaves behind after an entry
    label, command, made_by = "shop.large", "shop large", "v2"
    flow = SimpleNamespace(name="large", is_native=False)
    pipeline, settings = SimpleNamespace(name="shop"), Settings()
    spark = SimpleNamespace(createDataFrame=lambda rows, schema: None)
    rows = SimpleNamespace(schema=None)

    def __post_init__(self):
        self.log = Log(self)
        self.generations, self.target = Kept(self.known), Target(self.log)
        self.kept = stored({0: {"a": {0: 5}}, 1: {"a": {0: 9}}, 2: {"a": {0: 11}}}, committed=3)
        rolled_back = self.kept.roll_back
        self.kept.roll_back = lambda last: (self.log.append(f"rolled back to {last}"), rolled_back(last))

    def report(self, flow, what):
        self.reported.append(what)

    def refuse_additional(self, standing):
        assert standing == P
        if self.additional:
            raise FlowError("it reads a topic more")

    def beside(self, number):
        return self.target

    def job(self, number):
        return Job(SimpleNamespace(name="large"), Identity("shop.large", number))

    live_job = shadow_job = job

    def sink(self, job):
        return Sink(job.identity.generation, self.log, self.broken)

    def checkpoint(self, number):
        return self.kept

    def topic_ids(self, number, known):
        return {"a": "id"}

    def standing(self, number, entries, known):
        found = self.standings.pop(0) if len(self.standings) > 1 else self.standings[0]
        if isinstance(found, Exception):
            raise found
        return found

    def seen(self, number, known):
        return FURTHER if number == known.building else self.standing(number, (), known)

    def of_reads(self, position):
        return {topic: each for topic, each in position.items() if topic == "a"}

    def run(self, job):
        self.log.append(f"brought up to {job.stops_at}")

    def forget(self, number):
        self.log.append(f"forgot {number}")


@pytest.fixture
def placed(monkeypatch):
    """The positions that groups get, and the generations whose status is forgotten."""
    found = SimpleNamespace(positions=[], statuses=[])
    groups = SimpleNamespace(place=lambda group, position: found.positions.append(position))
    monkeypatch.setattr(swapping, "Groups", lambda _: groups)
    monkeypatch.setattr(swapping, "forget_status", lambda _, each: found.statuses.append(each.generation))
    return found


def swap(world, **given):
    options = {"at_most": None, "wanted": Compared(), "may_swap": lambda: True} | given
    return _Swap(world).swap(*options.values())


def test_a_topic_changes_hands_where_the_version_at_work_stands(placed):
    world = World(SHADOW, [P])
    assert swap(world).swapped
    assert world.log == [
        "shut 0 out",
        "brought up to {'a': {0: 9}}",
        "shut 0 out",
        "claimed 7",
        "claimed 7 anew",
        "wrote batch 1",
        "rolled back to 1",
        "removed",
    ]
    known = world.generations.known
    assert (known.current, known.former, known.cut, known.swapping) == (7, 0, P.position, False)
    assert (placed.positions, placed.statuses) == ([P.position], [0]), "the former one's last word is over"


@pytest.mark.parametrize(
    "meanwhile", [FURTHER, replace(P, watermark=8), FlowError("was ended in the midst of a batch")]
)
@pytest.mark.parametrize("command", ["swap", "rollback"])
def test_a_flow_that_was_started_again_meanwhile_is_left_at_work(placed, meanwhile, command):
    """As by a supervisor, while both were compared: what it has emitted would be emitted again."""
    before = SHADOW if command == "swap" else SWAPPED
    world = World(before, [P, meanwhile])
    with pytest.raises(FlowError, match=r"was started again meanwhile|in the midst"):
        swap(world) if command == "swap" else _Swap(world).turn_back(lambda: True)
    known = world.generations.known
    assert (known.current, known.swapping, known.former) == (before.current, False, before.former)
    assert known.building == before.building
    assert not any(each.startswith(("claimed", "rolled back")) for each in world.log)


COMPLETED = SHADOW.cutting(P.position, P.watermark).swapped(kept=True)
TURNED_BACK = COMPLETED.turned_back().cutting({}, 0).swapped(kept=True)
BEGUN = SHADOW.cutting(P.position, P.watermark)


@pytest.mark.parametrize("after", ["shut 0 out", "claimed 7", "claimed 7 anew"])
@pytest.mark.parametrize("meanwhile", [COMPLETED, TURNED_BACK, SHADOW])
def test_a_late_second_swap_leaves_alone_what_the_first_one_has_put_in_place(placed, after, meanwhile):
    """As one that stood still while it was completed on another machine, and the flow emitted since."""
    world = World(BEGUN, [P], overtaken=(after, meanwhile))
    world.kept.write(PASSED, "the mark")
    with pytest.raises(FencedError, match=r"another process has ended the swap of flow 'shop.large'"):
        swap(world)
    assert world.log[-1] == after, "nothing was forgotten, written or rolled back any more"
    assert world.generations.known == meanwhile
    assert world.kept.last_planned() == 2
    assert world.kept.read(PASSED) == "the mark"


def test_a_late_second_swap_exchanges_no_tables(placed):
    begun = SHADOW.cutting({}, 0)
    world = World(begun, [P], writes_topics=False, overtaken=("shut 0 out", TURNED_BACK))
    with pytest.raises(FencedError, match="another process has ended the swap"):
        swap(world)
    assert "exchanged" not in world.log
    assert world.generations.known == TURNED_BACK


def test_what_is_put_in_place_has_passed_nothing_yet(placed):
    world = World(BEGUN, [P])
    world.kept.write(PASSED, "the mark of an earlier swap")
    assert swap(world).swapped
    assert world.kept.read(PASSED) is None


def test_a_topic_more_is_refused_before_anything_is_brought_up(placed):
    world = World(SHADOW, [P], additional=True)
    with pytest.raises(FlowError, match="a topic more"):
        swap(world)
    assert world.log == ["shut 0 out"]
    assert world.generations.known == SHADOW
    table = World(SHADOW, [P], writes_topics=False, additional=True)
    assert swap(table).swapped, "it changes as a whole"


@pytest.mark.parametrize("command", [swapping.swap, swapping.rollback])
def test_one_process_at_a_time_replaces_a_flow(placed, monkeypatch, command):
    world = World(SHADOW if command is swapping.swap else SWAPPED, [P])
    entered = []

    @contextmanager
    def alone():
        entered.append(list(world.log))
        yield
        assert not world.generations.known.swapping

    world.alone = alone
    monkeypatch.setattr(swapping, "Versions", lambda *_: world)
    monkeypatch.setattr(swapping, "chosen", lambda *_: [None])
    assert command(None, "large", Settings(), None).swapped
    assert entered == [[]]


def test_an_interrupted_swap_looks_again_before_it_is_completed(placed):
    begun = SHADOW.cutting(P.position, P.watermark)
    assert swap(World(begun, [P])).swapped
    world = World(begun, [FURTHER])
    with pytest.raises(FlowError, match="was started again meanwhile"):
        swap(world)
    assert world.generations.known == SHADOW


def test_the_other_command_does_not_complete_it(placed):
    world = World(SWAPPED.turned_back().cutting(P.position, 7), [P])
    with pytest.raises(FlowError, match="run `penstock rollback shop large` again"):
        swap(world)
    assert world.log == []
    assert _Swap(world).turn_back(lambda: True).swapped
    assert world.generations.known.current == 0


@pytest.mark.parametrize("writes_topics", [True, False])
def test_a_writer_that_can_not_be_shut_out_is_not_replaced(placed, writes_topics):
    world = World(SHADOW, [P], writes_topics, broken=SinkError("the database is away"))
    with pytest.raises(SinkError, match="is away"):
        swap(world)
    assert world.generations.known == SHADOW
    begun = World(SHADOW.cutting(P.position, 7), [P], writes_topics, broken=SinkError("it is away"))
    with pytest.raises(SinkError, match="is away"):
        swap(begun)
    assert begun.generations.known.swapping, "the same command completes it"


def test_a_table_that_moves_on_goes_with_its_checkpoint(placed):
    world = World(SHADOW, [P, P, FURTHER], writes_topics=False)
    assert swap(world).swapped
    assert [each for each in world.log if "brought" not in each] == ["shut 0 out", "shut 0 out", "exchanged"]


def test_a_table_of_which_nobody_knows_whether_it_has_changed_hands_is_not_given_back(placed):
    world = World(SHADOW.cutting({}, 0), [P], writes_topics=False, broken=TargetError("no rights"))
    with pytest.raises(TargetError):
        swap(world)
    assert world.generations.known.swapping


def test_what_can_not_be_cleaned_up_keeps_no_flow_down(placed, monkeypatch):
    world = World(replace(SHADOW, former=3, kept=True), [P])
    monkeypatch.setattr(world.target, "remove", lambda _: 1 / 0)
    monkeypatch.setattr(placed, "positions", None)
    monkeypatch.setattr(swapping, "forget_status", lambda *_: (_ for _ in ()).throw(LogError("no broker")))
    done = swap(world)
    assert (done.swapped, done.position) == (True, P.position)
    assert (world.generations.known.current, world.generations.known.swapping) == (7, False)
    assert [each.level for each in world.reported] == ["warning"] * 3
    assert "division by zero" in world.reported[1]


def test_what_no_rollback_needs_is_removed_but_never_what_is_in_place(placed):
    world = World(replace(SHADOW, former=3, kept=True), [P], writes_topics=False)
    swap(world)
    assert world.log[-2:] == ["removed", "forgot 3"]
    back = World(world.generations.known, [P], writes_topics=False)
    _Swap(back).turn_back(lambda: True)
    assert "forgot 0" not in back.log
