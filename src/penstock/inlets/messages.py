"""Messages as values: which topic gets them as events, and how they are read."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar

from penstock.errors import InletError
from penstock.events import Event, fields_of
from penstock.events.kinds import Choice, Field, Fixed, Kind, Maybe, Scalar
from penstock.inlets.line_template import LineTemplate
from penstock.log import Topic

E = TypeVar("E", bound=Event)
_TIMES = (Scalar(datetime), Maybe(Scalar(datetime)))


@dataclass(frozen=True)
class Messages(Generic[E]):
    """Messages as events of a topic.

        Messages(readings, line="{sensor} {celsius}", received_at="at")

    A message is a JSON object with the fields of the topic's class, or, where `line` is given, text of
    that form. An event without an `id` gets a new one. `received_at` names the field that gets the time of
    receipt where the message has none; without it, messages have to bring their time.
    """

    topic: Topic[E]
    line: str | None = None
    received_at: str | None = None

    def __post_init__(self) -> None:
        if self.topic.is_captured:
            raise InletError(
                f"topic {self.topic.name!r} is {self.topic.format}, which only a capture writes",
                hint="let the inlet write to a topic of its own",
            )
        if self.received_at is not None and self._field(self.received_at).kind not in _TIMES:
            raise InletError(
                f"{self._named(self.received_at)} is no datetime, to be given the time of receipt"
            )
        if self.template is not None:
            self._check_line(self.template)

    @cached_property
    def template(self) -> LineTemplate | None:
        return None if self.line is None else LineTemplate(self.line)

    @property
    def filled_in(self) -> tuple[str, ...]:
        """The fields that a message may leave out, because the inlet fills them in."""
        return ("id",) if self.received_at is None else ("id", self.received_at)

    def _check_line(self, line: LineTemplate) -> None:
        for name in line.fields:
            if not _is_plain(self._field(name).kind):
                raise InletError(f"{self._named(name)} can't stand in a line", hint="send JSON instead")
        given = {*line.fields, *self.filled_in}
        for field in fields_of(self.topic.event):
            if field.required and field.name not in given:
                raise InletError(
                    f"the line {line.text!r} has no {field.name!r}, which {self.topic.event.__name__} needs",
                    hint=f"add {{{field.name}}}, give it a default, or, for a time, name it in received_at",
                )

    def _field(self, name: str) -> Field:
        found = next((each for each in fields_of(self.topic.event) if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in fields_of(self.topic.event))
            raise InletError(f"{self._named(name)} does not exist", hint=f"there are {names}")
        return found

    def _named(self, field: str) -> str:
        return f"{self.topic.event.__name__}.{field}"


def _is_plain(kind: Kind) -> bool:
    return isinstance(kind.inner if isinstance(kind, Maybe) else kind, Scalar | Fixed | Choice)
