"""Personal fields of events, encrypted as they are stored, and decrypted for who may read them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from penstock.errors import EventTypeError
from penstock.events import fields_of
from penstock.events.kinds import Maybe, Scalar
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

Cipher = Callable[[str, str, str], str | None]


def check_personal(cls: type[DomainEvent]) -> None:
    """Refuse personal fields that could not be erased: they are texts that may be missing."""
    if not cls.personal:
        return
    kinds = {field.name: field.kind for field in fields_of(cls)}
    for name in cls.personal:
        if kinds.get(name) != Maybe(Scalar(str)):
            raise EventTypeError(
                f"{cls.__name__}.{name} is personal, and " + ("no field" if name not in kinds else "no text"),
                hint="declare it as `str | None`: it is None once its subject is erased",
            )
    if cls.subject is not None and kinds.get(cls.subject) != Scalar(str):
        raise EventTypeError(
            f"{cls.__name__} has the subject {cls.subject!r}, which is not a field of str",
            hint="name the field that says whom the event is about",
        )


def encrypted(record: Recorded, event: DomainEvent, keys: SubjectKeys) -> Recorded:
    """Return a record with its event's personal fields encrypted, which says so itself."""
    subject = record.stream if event.subject is None else str(getattr(event, event.subject))
    named = replace(record, subject=subject, personal=list(event.personal))
    return replace(named, data=_changed(named, keys.encrypt))


def decrypted(record: Recorded, keys: SubjectKeys) -> Recorded:
    """Return a record with its data as it was, and None for what was erased."""
    return replace(record, data=_changed(record, keys.decrypt)) if record.personal else record


def _changed(record: Recorded, change: Cipher) -> str:
    values: dict[str, Any] = msgspec.json.decode(record.data)
    for name in record.personal:
        if values.get(name) is not None:
            place = f"{record.category}/{record.stream}/{record.version}/{name}"
            values[name] = change(str(record.subject), values[name], place)
    return msgspec.json.encode(values).decode()
