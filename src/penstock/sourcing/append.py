"""What is appended to streams."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from penstock.errors import ConfigurationError
from penstock.events import new_ids
from penstock.sourcing.arguments import check_stream
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.event_types import EventTypes
from penstock.sourcing.personal import encrypted
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

_CATEGORY = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_category(name: str) -> None:
    """Refuse what could not be a part of a topic's name."""
    if not _CATEGORY.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a category", hint="use up to 40 small letters, digits and _, a letter first"
        )


@dataclass(frozen=True)
class Append:
    """Events for one stream, which has `expected` events now."""

    category: str
    stream: str
    expected: int
    events: tuple[DomainEvent, ...]
    types: EventTypes

    def __post_init__(self) -> None:
        check_category(self.category)
        check_stream(self.stream)
        if self.expected < 0:
            raise ConfigurationError(f"expected={self.expected}", hint="0 is a stream without events")

    def records(self, at: datetime, context: "Context", keys: SubjectKeys) -> Iterator[Recorded]:
        """Yield its records, numbered on from the expected version, with what is personal encrypted."""
        shared = vars(self._checked(at, context))
        ids = new_ids(len(self.events))
        for version, (id, event) in enumerate(zip(ids, self.events, strict=True), self.expected + 1):
            record = object.__new__(Recorded)  # the checks of the first one hold for what is shared
            held = record.__dict__
            held.update(shared)
            held["id"], held["version"] = id, version
            held["type"], held["schema_version"] = event.event_type, event.schema_version
            held["data"] = self.types.data_of(event)
            yield encrypted(record, event, keys) if event.personal else record

    def _checked(self, at: datetime, context: "Context") -> Recorded:
        """Return what its records share, as a record."""
        return Recorded(
            category=self.category,
            stream=self.stream,
            version=self.expected,
            type="",
            schema_version=0,
            at=at,
            data="",
            actor=context.actor,
            correlation=context.correlation,
            causation=context.causation,
        )


@dataclass(frozen=True)
class Context:
    """Who does it, in the course of what (`correlation`), and because of what (`causation`)."""

    actor: str | None = None
    correlation: str | None = None
    causation: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (not isinstance(value, str) or "\x00" in value or len(value) > 1000):
                raise ConfigurationError(
                    f"{name}={value!r:.100}", hint="use a text of up to 1,000 letters, or None"
                )
