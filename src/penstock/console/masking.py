"""Masks: fields of events and rows that are never shown, by the settings `[console] mask`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from penstock.documents import JsonObject
from penstock.errors import SettingsError
from penstock.log.topic import DEAD_LETTERS

OWN = "_penstock"  # topics of the platform's own: troubles, letters of webhooks and state may quote any event
HIDDEN = "•••"
KEY = "@key"  # the key of a message
_RULE = re.compile(r"(?:(?P<topic>[A-Za-z0-9._-]{1,249}):)?(?P<field>@key|[A-Za-z0-9_.-]{1,200})")


@dataclass(frozen=True)
class Masks:
    """Names of fields that are hidden: everywhere, or in one topic or view.

    >>> masks = Masks.of("card, orders:customer.email, users:@key")
    >>> masks.hidden("orders", {"card": "4929", "customer": {"email": "a@b.c", "name": "Ann"}})
    {'card': '•••', 'customer': {'email': '•••', 'name': 'Ann'}}
    >>> masks.hides_key("users"), masks.hides_key("orders")
    (True, False)

    A field is named by its last names in their order; case does not count. Dead letters are masked as their
    topic is, and what has no fields there is hidden as a whole; so is all of the platform's own topics.
    """

    rules: tuple[tuple[str, str], ...] = ()  # topic, or an empty text for all; field

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the masks that a setting names."""
        return cls(tuple(_rule(each.strip()) for each in text.split(",") if each.strip()))

    def fields(self, subject: str) -> frozenset[tuple[str, ...]]:
        """Return the hidden fields of a topic or a view, each as the names that lead to it."""
        source = subject.removesuffix(DEAD_LETTERS)
        names = (field for topic, field in self.rules if topic in ("", source, subject) and field != KEY)
        return frozenset(tuple(each.lower().split(".")) for each in names)

    def hides_column(self, subject: str, name: str) -> bool:
        """Whether a column of a view is hidden, or holds a field that is."""
        known = name.lower()
        return any(field == (known,) or known in field[:-1] for field in self.fields(subject))

    def covers(self, subject: str) -> bool:
        """Whether anything of a topic or a view is hidden: an error may quote it."""
        return bool(self.fields(subject)) or self.hides_key(subject)

    def hides_key(self, subject: str) -> bool:
        if self._hides_all(subject):
            return True
        source = subject.removesuffix(DEAD_LETTERS)
        return any(field == KEY and topic in ("", source, subject) for topic, field in self.rules)

    def hidden(self, subject: str, value: Any) -> Any:
        """Return a value with its hidden fields covered; a text or bytes might hold one, and are hidden."""
        fields = self.fields(subject)
        if value is not None and self._hides_all(subject):
            return HIDDEN
        if not fields or value is None:
            return value
        return _covered(value, fields, ()) if isinstance(value, Mapping | list) else HIDDEN

    def _hides_all(self, subject: str) -> bool:
        return bool(self.rules) and subject.startswith(OWN)


def _rule(text: str) -> tuple[str, str]:
    found = _RULE.fullmatch(text)
    if found is None:
        raise SettingsError(
            f"console.mask has {text!r}", hint="write field, topic:field.of.it or topic:@key, with commas"
        )
    return found["topic"] or "", found["field"]


def _covered(value: Any, fields: frozenset[tuple[str, ...]], path: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_covered(each, fields, path) for each in value]
    if not isinstance(value, Mapping):
        return value
    found = {}
    for name, each in value.items():
        below = (*path, str(name).lower())
        is_hidden = any(below[-len(field) :] == field for field in fields)
        found[name] = HIDDEN if is_hidden and each is not None else _covered(each, fields, below)
    return found


def audited(lines: Sequence[JsonObject], masks: Masks) -> list[JsonObject]:
    """Return lines of the audit log as they may be shown: why an action failed may quote an event."""
    return [each | {"outcome": _without_reason(str(each.get("outcome", "")), masks)} for each in lines]


def _without_reason(outcome: str, masks: Masks) -> str:
    said, _, reason = outcome.partition("failed: ")
    return f"{said}failed: {HIDDEN}" if masks.rules and reason else outcome
