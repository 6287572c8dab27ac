"""What a request may cost the registry, by the settings `[registry]`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from penstock.errors import SettingsError
from penstock.settings import Settings
from penstock.web.section import Section

_KNOWN = ("token", "deadline", "memory", "workers")


@dataclass(frozen=True)
class Limits:
    """How long a schema may take to be parsed and compared, with how much memory, and how many at once.

    The deadline is of the processor's time; on the clock, four times as much may pass.

    >>> Limits(deadline=timedelta(seconds=3)).workers
    3
    """

    deadline: timedelta = timedelta(seconds=5)
    memory: int = 512  # megabytes beyond what an idle worker has
    workers: int = 3

    def __post_init__(self) -> None:
        if self.deadline <= timedelta(0) or self.memory < 64 or self.workers < 1:
            raise SettingsError(
                f"the registry's limits are {self.deadline}, {self.memory} MB and {self.workers} workers",
                hint="give a deadline above 0, 64 MB or more and 1 worker or more",
            )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits that the settings name, and the usual ones for the rest."""
        section, usual = Section("registry", settings.registry, _KNOWN), cls()
        return cls(
            section.duration("deadline", usual.deadline),
            section.whole("memory", usual.memory),
            section.whole("workers", usual.workers),
        )
