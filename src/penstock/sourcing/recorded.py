"""An event as the store keeps it and the topics carry it: the fact, and who, when and why."""

from dataclasses import dataclass, field
from datetime import datetime

from penstock.events import Event


@dataclass(frozen=True)
class Recorded(Event):
    """One record of a stream; `data` is the event itself, as JSON.

    `correlation` is shared by all that came of one request, `causation` names the command or event that
    caused this one. The fields of the data that `personal` names are encrypted with the key of `subject`.
    """

    category: str
    stream: str
    version: int
    type: str
    schema_version: int
    at: datetime
    data: str
    actor: str | None = None
    correlation: str | None = None
    causation: str | None = None
    subject: str | None = None
    personal: list[str] = field(default_factory=list)
