"""Several processes as one, which are started and killed together."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.apps.demo.work import Process


@dataclass(frozen=True)
class Processes:
    """Is alive as long as all of them are."""

    all: Sequence[Process]

    @property
    def alive(self) -> bool:
        return all(each.alive for each in self.all)

    def start(self) -> None:
        """Start them, one after the other; nothing is waited for."""
        for each in self.all:
            each.start()

    def kill(self) -> None:
        """End all with -9."""
        for each in self.all:
            each.kill()

    def last_words(self) -> str:
        """The end of what the first dead one has said."""
        return next((each.last_words() for each in self.all if not each.alive), "")
