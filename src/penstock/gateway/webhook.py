"""A signed webhook: where a partner's requests become events of a topic."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from penstock.documents import Json
from penstock.durations import duration
from penstock.errors import SettingsError, TopicError
from penstock.events import fields_of
from penstock.log import Topic
from penstock.log.topic import check_name
from penstock.settings import Secret, Settings, reveal
from penstock.targets.webhook.signature import ID, SIGNATURE, TIMESTAMP


@dataclass(frozen=True)
class SignedWebhook:
    """Requests to /webhooks/NAME that are signed as Standard Webhooks has it, each an event, once.

        payments = SignedWebhook("payments", paid, connection="partner", fields={"order": "data.order"})

    The secret is that of the settings' `connection`. A request is let in that is signed with it over its id,
    its time and its body, not longer ago than `window`; its id is the idempotency key. `fields` say where in
    the body each field of the event is; by default, it has them under their own names. `event` is a function
    that makes JSON of the event of the body's, a list of several, or None for what is of no interest.
    `headers` are those of id, time and signature.
    """

    name: str
    topic: Topic[Any]
    connection: str
    fields: Mapping[str, str] | None = field(default=None, hash=False)
    event: Callable[[Json], Json] | None = field(default=None, hash=False)
    window: str | timedelta = "5 minutes"
    headers: tuple[str, str, str] = (ID, TIMESTAMP, SIGNATURE)

    def __post_init__(self) -> None:
        check_name(self.name, "webhook")
        duration(self.window)
        if self.topic.is_captured:
            raise TopicError(f"webhook {self.name!r} writes {self.topic.name!r}, which only a capture writes")
        if self.fields is not None and self.event is not None:
            raise TopicError(f"webhook {self.name!r} has fields= and event=", hint="give one of them")
        unknown = set(self.fields or ()) - self._names
        if unknown:
            raise TopicError(
                f"webhook {self.name!r} has a field {min(unknown)!r}, {self.topic.event.__name__} has not",
                hint=f"it has {', '.join(sorted(self._names))}",
            )

    def secret(self, settings: Settings) -> Secret:
        """Return the secret that both sides have."""
        found = settings.connection(self.connection).get("secret")
        if found is None or not reveal(found):
            raise SettingsError(
                f"connection {self.connection!r} of webhook {self.name!r} has no secret",
                hint=f'[connections.{self.connection}] secret = {{ env = "…" }}',
            )
        return Secret(reveal(found))

    def values(self, body: Json) -> list[Json]:
        """Return the JSON of each event that a body holds."""
        if self.event is not None:
            made = self.event(body)
            return [] if made is None else made if isinstance(made, list) else [made]
        return [self._value(each) for each in (body if isinstance(body, list) else [body])]

    def _value(self, body: Json) -> Json:
        if not isinstance(body, dict):
            return body
        if self.fields is None:
            return {name: value for name, value in body.items() if name in self._names}
        found = {name: _at(body, path) for name, path in self.fields.items()}
        return {name: value for name, value in found.items() if value is not _ABSENT}

    @property
    def _names(self) -> set[str]:
        return {each.name for each in fields_of(self.topic.event)}


_ABSENT = object()


def _at(value: Any, path: str) -> Any:
    """The value at a path such as `data.lines.0.price`, or a mark that nothing is there."""
    for step in path.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value
