"""What a request may cost the registry, by the settings `[registry]`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from penstock.durations import duration
from penstock.errors import SettingsError
from penstock.settings import Settings, reveal

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
        given = {name: reveal(value) for name, value in settings.registry.items()}
        unknown = sorted(set(given) - set(_KNOWN))
        if unknown:
            raise SettingsError(
                f"[registry] has an unknown setting {unknown[0]!r}", hint=f"known are {', '.join(_KNOWN)}"
            )
        usual = cls()
        return cls(
            duration(given["deadline"]) if "deadline" in given else usual.deadline,
            _whole(given, "memory", usual.memory),
            _whole(given, "workers", usual.workers),
        )


def _whole(given: dict[str, str], name: str, usual: int) -> int:
    text = given.get(name, str(usual))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise SettingsError(f"registry.{name} is {text!r}, expected a whole number")
    return int(text)
