"""Generations of a flow: each rebuild makes a new one, beside the one that is at work."""

import time
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
from pyspark.sql import SparkSession

from penstock.errors import FencedError, FlowError
from penstock.identity import Identity
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.settings import Settings

_FILE = "generation.json"  # in the flow's folder, beside the checkpoints


@dataclass(frozen=True)
class Generation:
    """Which generation of a flow is at work, and what is known of the one that is being built.

    Generations are numbered by the second in which they were begun: no number comes twice. `end` is where
    the log was read to by a rebuild that left no checkpoint: the flow goes on behind it. `made_by` is what
    the rebuild computes with, `built` its end, once it is whole; `swapping` says that it is being put in
    the other's place. `former` was at work before.
    """

    current: int = 0
    end: Offsets = field(default_factory=dict)
    building: int | None = None
    until: str = ""
    made_by: str = ""
    built: Offsets | None = None
    swapping: bool = False
    former: int | None = None

    def begun(self, until: str, made_by: str) -> Self:
        """Return it with a rebuild under way, which goes on if it was begun before."""
        number = self.building or max(int(time.time()), self.current + 1)
        return replace(self, building=number, until=until, made_by=made_by)

    def without_rebuild(self) -> Self:
        """Return it without the rebuild that is under way."""
        return type(self)(self.current, self.end, former=self.former)

    def swapped(self) -> Self:
        """Return what is at work when the one that was built has taken the place of the other."""
        return type(self)(self.building or self.current, self.built or {}, former=self.current)


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

    def at_work(self) -> Identity:
        """Return the identity of the generation that is at work; not while it is being replaced."""
        found = self.read()
        if found.swapping:
            flow = self._identity
            raise FlowError(
                f"flow {flow.label!r} is being replaced by what was rebuilt, and that was interrupted",
                hint=f"run `penstock rebuild {flow.pipeline} {flow.flow}` again: it completes it",
            )
        return self.of(found.current)

    def refuse_former(self, identity: Identity) -> None:
        """Refuse a generation that was replaced while it ran."""
        if self.at_work() != identity:
            raise FencedError(
                f"flow {identity.label!r} was rebuilt meanwhile, and this is the generation of before",
                hint="start it again: it goes on behind what was rebuilt",
            )

    def of(self, number: int) -> Identity:
        return replace(self._identity, generation=number)
