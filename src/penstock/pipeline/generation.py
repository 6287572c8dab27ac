"""Generations of a flow: each rebuild makes a new one, beside the one that is at work."""

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import msgspec
from pyspark.sql import SparkSession

from penstock.errors import FencedError, FlowError
from penstock.identity import Identity
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.folder import READY
from penstock.settings import Settings

_FILE = "generation.json"  # in the flow's folder, beside the checkpoints


@dataclass(frozen=True)
class Generation:
    """Which generation of a flow is at work, and what is known of the one that is being built.

    Generations are numbered by the second in which they were begun: no number comes twice. `end` is where
    the log was read to by a rebuild that left no checkpoint: the flow goes on behind it. `made_by` is what
    the rebuild computes with, `built` its end, once it is whole; `swapping` says that it is being put in
    the other's place. `former` was at work before; with `kept`, its contents and checkpoint are still there.

    A `shadow` is one that goes on as a stream beside the one at work; what is built is `discarding` while it
    is being removed. `cut` is up to where, when it was put in place, a topic had the results of the one
    before, and `cut_watermark` (in ms) how far its windows were emitted: the one at work computes that part
    and writes nothing of it.
    """

    current: int = 0
    end: Offsets = field(default_factory=dict)
    building: int | None = None
    until: str = ""
    made_by: str = ""
    built: Offsets | None = None
    swapping: bool = False
    former: int | None = None
    shadow: bool = False
    cut: Offsets = field(default_factory=dict)
    cut_watermark: int = 0
    next_cut: Offsets = field(default_factory=dict)  # that of the one that is being put in place
    next_watermark: int = 0
    kept: bool = False
    former_end: Offsets = field(default_factory=dict)
    former_made_by: str = ""
    current_made_by: str = ""
    last: int = 0  # the number of what was given up last
    discarding: bool = False

    @property
    def command(self) -> str:
        """The command that puts what is being built in place, and completes that when it was interrupted."""
        if not self.shadow:
            return "rebuild"
        return "rollback" if self.building == self.former else "swap"

    def begun(self, until: str, made_by: str, *, shadow: bool = False) -> Self:
        """Return it with a rebuild under way, which goes on if it was begun before."""
        last = max(self.current, self.former or 0, self.last)
        number = self.building or max(int(time.time()), last + 1)
        return replace(self, building=number, until=until, made_by=made_by, shadow=shadow)

    def without_rebuild(self) -> Self:
        """Return it without the rebuild that is under way."""
        last = max(self.building or 0, self.last)
        without = replace(self, building=None, until="", made_by="", built=None, last=last)
        return replace(without, swapping=False, shadow=False, next_cut={}, next_watermark=0, discarding=False)

    def begun_anew(self) -> Self:
        """Return it when the one at work has forgotten all: nothing of the log is another one's any more."""
        return replace(self, end={}, cut={}, cut_watermark=0)

    def turned_back(self) -> Self:
        """Return it with the former generation as the one that is to be put in place."""
        return replace(
            self, building=self.former, made_by=self.former_made_by, built=self.former_end, shadow=True
        )

    def cutting(self, position: Offsets, watermark: int) -> Self:
        """Return it while the one that was built takes the place of the other, which stands there."""
        return replace(self, swapping=True, next_cut=position, next_watermark=watermark)

    def given_up(self) -> Self:
        """Return it when a swap was refused: a shadow is still one, a former generation still the former."""
        if self.command == "rollback":
            return self.without_rebuild()
        return replace(self, swapping=False, next_cut={}, next_watermark=0)

    def swapped(self, *, kept: bool = False) -> Self:
        """Return what is at work when the one that was built has taken the place of the other."""
        return type(self)(
            self.current if self.building is None else self.building,
            self.built or {},
            former=self.current,
            cut=self.next_cut,
            cut_watermark=self.next_watermark,
            kept=kept,
            former_end=self.end if kept else {},
            former_made_by=self.current_made_by if kept else "",
            current_made_by=self.made_by if kept else "",
            last=self.last,
        )


def generation_on_disk(settings: Settings, identity: Identity) -> Generation | None:
    """Read it without Spark, if the folder of flows is on a disk of this machine; None if it is elsewhere."""
    root = settings.flows.removeprefix("file:").removeprefix("//")
    if "://" in root or not root.startswith("/"):
        return None
    home = Path(identity.home(root))
    for name in (_FILE, _FILE + READY, _FILE):  # somebody may be replacing it just now
        with suppress(OSError):
            return msgspec.json.decode((home / name).read_bytes(), type=Generation)
    return Generation()


class Generations:
    """Reads and writes which generation of a flow is at work."""

    def __init__(self, spark: SparkSession, settings: Settings, identity: Identity) -> None:
        self._identity = replace(identity, generation=0)
        self._home = Checkpoint(spark, identity.home(settings.flows))

    def read(self) -> Generation:
        found = self._home.read(_FILE)
        return Generation() if found is None else msgspec.json.decode(found, type=Generation)

    def write(self, generation: Generation, before: Generation) -> None:
        """Write what follows on what was read before; refuse if somebody else was quicker."""
        if self.read() != before:
            raise FlowError(
                f"flow {self._identity.label!r} is being rebuilt by another process", hint="let that one end"
            )
        self._home.write(_FILE, msgspec.json.encode(generation).decode())

    def read_for(self, command: str = "") -> Generation:
        """Read for a command; refuse while another one has begun to replace what is at work."""
        found = self.read()
        if found.swapping and found.command != command:
            flow = self._identity
            raise FlowError(
                f"flow {flow.label!r} is being replaced by a {found.command}, and that was interrupted",
                hint=f"run `penstock {found.command} {flow.pipeline} {flow.flow}` again: it completes it",
            )
        return found

    def at_work(self) -> Identity:
        """Return the identity of the generation that is at work; not while it is being replaced."""
        return self.of(self.read_for().current)

    def refuse_former(self, identity: Identity) -> None:
        """Refuse a generation that was replaced while it ran."""
        if self.at_work() != identity:
            raise FencedError(
                f"flow {identity.label!r} was rebuilt meanwhile, and this is the generation of before",
                hint="start it again: it goes on behind what was rebuilt",
            )

    def refuse_discarding(self, known: Generation) -> None:
        """Refuse to go on with what is being given up: a part of it may be gone."""
        if known.discarding:
            flow = self._identity
            raise FlowError(
                f"what was made beside flow {flow.label!r} is being given up, and that was interrupted",
                hint=f"run `penstock shadow {flow.pipeline} {flow.flow} --discard` again: it completes it",
            )

    def refuse_overtaken(self, known: Generation) -> None:
        """Refuse to put in place what another process has put in place, or given up, since it was read."""
        if self.read() != known:
            raise FencedError(
                f"another process has ended the {known.command} of flow {self._identity.label!r} meanwhile",
                hint="start the flow: if anything is left to be done, it says so",
            )

    def refuse_discarded(self, identity: Identity) -> None:
        """Refuse a generation that is not being built any more: it is swapped in meanwhile, or discarded."""
        found = self.read()
        if found.swapping or found.discarding or found.building != identity.generation:
            raise FencedError(
                f"generation {identity.generation} of flow {identity.label!r} is not being built any more",
                hint="it is swapped in or was discarded meanwhile: start it again",
            )

    def of(self, number: int) -> Identity:
        return replace(self._identity, generation=number)
