"""Generations of a flow: each rebuild makes a new one, beside the one that is at work."""

from dataclasses import dataclass, field, replace
from typing import Self

import msgspec
from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.settings import Settings

_FILE = "generation.json"  # in the flow's folder, beside the checkpoints


@dataclass(frozen=True)
class Generation:
    """Which generation of a flow is at work, and what is known of the one that is being built.

    `end` is where the log was read to by a rebuild that left no checkpoint: the flow goes on behind it.
    `built` is the end of the one that is being built, once it is whole; `swapping` says that it is being put
    in the other's place.
    """

    current: int = 0
    end: Offsets = field(default_factory=dict)
    building: int | None = None
    until: str = ""
    built: Offsets | None = None
    swapping: bool = False

    def begun(self, until: str) -> Self:
        """Return it with a rebuild under way, which goes on if it was begun before."""
        return replace(self, building=self.building or self.current + 1, until=until)

    def swapped(self) -> Self:
        """Return what is at work when the one that was built has taken the place of the other."""
        return type(self)(self.building or self.current, self.built or {})


class Generations:
    """Reads and writes which generation of a flow is at work."""

    def __init__(self, spark: SparkSession, settings: Settings, identity: Identity) -> None:
        self._identity = identity
        self._home = Checkpoint(spark, identity.home(settings.flows))

    def read(self) -> Generation:
        found = self._home.read(_FILE)
        return Generation() if found is None else msgspec.json.decode(found, type=Generation)

    def write(self, generation: Generation) -> None:
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

    def of(self, number: int) -> Identity:
        return replace(self._identity, generation=number)
