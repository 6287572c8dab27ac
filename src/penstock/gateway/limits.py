"""What a client may cost the gateway, by the settings `[gateway]`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from penstock.errors import SettingsError
from penstock.settings import Settings
from penstock.web.section import Section

KNOWN = (
    "token", "origins", "body", "events", "rate", "burst", "requests", "connections", "streams", "wait",
    "window", "keys",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """How much a request may bring, and how many of them may come, at once and in a second.

    >>> Limits(rate=10, burst=20).body
    1048576

    `body` is in bytes, `events` how many of them a request may bring. Each client's address may ask `rate`
    times a second on the whole, and `burst` times at once. `requests` are worked on at the same time and
    `connections` are open, of all clients; `streams` are those among them that read a topic or follow a view.
    `wait` is how long a long poll may last, `window` how many events a WebSocket may have unacknowledged.
    `keys` is how long an idempotency key is remembered.
    """

    body: int = 2**20
    events: int = 1_000
    rate: int = 500
    burst: int = 1_000
    requests: int = 500
    connections: int = 1_000
    streams: int = 100
    wait: timedelta = timedelta(seconds=30)
    window: int = 1_000
    keys: timedelta = timedelta(hours=24)

    def __post_init__(self) -> None:
        for name in ("body", "events", "rate", "burst", "requests", "connections", "streams", "window"):
            if getattr(self, name) < 1:
                raise SettingsError(f"gateway.{name} is {getattr(self, name)}, expected 1 or more")
        if self.keys < timedelta(minutes=1):
            raise SettingsError(f"gateway.keys is {self.keys}, expected a minute or more")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits that the settings name, and the usual ones for the rest."""
        section, usual = Section("gateway", settings.gateway, KNOWN), cls()
        times = {name: section.duration(name, getattr(usual, name)) for name in ("wait", "keys")}
        numbers = {
            name: section.whole(name, getattr(usual, name))
            for name in cls.__dataclass_fields__
            if name not in times
        }
        return cls(**numbers, **times)  # type: ignore[arg-type]
