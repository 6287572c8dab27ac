"""A section of the settings that a server reads its limits from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from penstock.durations import duration
from penstock.errors import SettingsError
from penstock.settings import Secret, reveal


@dataclass(frozen=True)
class Section:
    """The values of one section, by name; what it does not know is refused.

    >>> Section("registry", {"workers": "2"}, ("workers", "memory")).whole("workers", 3)
    2
    """

    name: str
    values: Mapping[str, str | Secret]
    known: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.values) - set(self.known))
        if unknown:
            raise SettingsError(
                f"[{self.name}] has an unknown setting {unknown[0]!r}",
                hint=f"known are {', '.join(self.known)}",
            )

    def text(self, name: str) -> str | None:
        """Return a value as it is written, secrets in the clear."""
        found = self.values.get(name)
        return None if found is None else reveal(found)

    def whole(self, name: str, usual: int) -> int:
        """Return a whole number."""
        text = self.text(name) or str(usual)
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise SettingsError(f"{self.name}.{name} is {text!r}, expected a whole number")
        return int(text)

    def duration(self, name: str, usual: timedelta) -> timedelta:
        """Return a duration, written as "10 minutes"."""
        text = self.text(name)
        return usual if text is None else duration(text)
