"""The event types of an aggregate, past and present: from a record to events of today, and back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from penstock.errors import ConfigurationError, DecodeError
from penstock.schemas import Upcast
from penstock.schemas.shape import shape_of
from penstock.schemas.upcasting import Step, upcasts_from
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.personal import check_personal
from penstock.sourcing.recorded import Recorded

Values = dict[str, Any]
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Part:
    """What one event of a type that was split becomes: an event of `cls`, after these steps."""

    cls: type[DomainEvent]
    steps: tuple[Step, ...] = ()


def part(cls: type[DomainEvent], *steps: Step) -> Part:
    """Say what becomes of an event whose type was split: `part(Withdrawn, rename("sum", to="amount"))`."""
    return Part(cls, steps)


@dataclass(frozen=True)
class EventTypes:
    """What may be in a category's streams.

    `classes` are the events of today. `split` has the types of old that became several, `removed` those that
    mean nothing any more; both stay in the store as they were written.
    """

    classes: tuple[type[DomainEvent], ...]
    split: Mapping[str, Sequence[Part]]
    removed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [name for cls in self.classes for name in (cls.event_type, *cls.formerly)]
        names += [*self.split, *self.removed]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"the event type {twice!r} is declared twice", hint="give one a type=")
        strangers = {each.cls for parts in self.split.values() for each in parts} - {*self.classes}
        if strangers:
            raise ConfigurationError(
                f"a type is split into {min(cls.__name__ for cls in strangers)}, which is not in events="
            )
        readers: dict[str, Callable[[Recorded], tuple[DomainEvent, ...]]] = {}
        for cls in self.classes:
            check_personal(cls)
            readers |= dict.fromkeys((cls.event_type, *cls.formerly), _reader(cls))
        for name, parts in self.split.items():
            readers[name] = _splitter(parts)
        readers |= dict.fromkeys(self.removed, lambda _: ())
        object.__setattr__(self, "_readers", readers)
        object.__setattr__(self, "_known", frozenset(self.classes))

    def __reduce__(self) -> tuple[object, ...]:
        """Decoders do not travel to Spark's workers: they are made again there."""
        return EventTypes, (self.classes, dict(self.split), self.removed)

    @property
    def are_personal(self) -> bool:
        """Whether something personal is in them."""
        return any(cls.personal for cls in self.classes)

    @property
    def have_other_subjects(self) -> bool:
        """Whether they are about somebody else than their stream."""
        return any(cls.subject is not None for cls in self.classes)

    def data_of(self, event: DomainEvent) -> str:
        """Return an event as JSON, or refuse one that is not of these types."""
        if event.__class__ not in self._known:  # type: ignore[attr-defined]
            raise ConfigurationError(
                f"{type(event).__name__} is not an event of this aggregate",
                hint=f"add it to events=, beside {', '.join(cls.__name__ for cls in self.classes)}",
            )
        return _encode(event).decode()

    def events_of(self, record: Recorded) -> tuple[DomainEvent, ...]:
        """Return what a record means today: one event, several where its type was split, none if removed."""
        read = self._readers.get(record.type)  # type: ignore[attr-defined]
        where = f"version {record.version} of {record.category} {record.stream!r}"
        if read is None:
            raise DecodeError(
                f"{where} is a {record.type!r}, which nobody declares",
                hint="add its class to events=, its name to formerly= of another, or to removed=",
            )
        try:
            found: tuple[DomainEvent, ...] = read(record)
        except (msgspec.MsgspecError, DecodeError, KeyError, TypeError) as error:
            raise DecodeError(f"{where}, a {record.type!r}, can't be read: {error}") from error
        return found


def _reader(cls: type[DomainEvent]) -> Callable[[Recorded], tuple[DomainEvent, ...]]:
    shape, current = shape_of(cls) if fields(cls) else None, cls.schema_version
    decode: Callable[[str], Any] = msgspec.json.Decoder(shape.lenient if shape else dict).decode

    def read(record: Recorded) -> tuple[DomainEvent, ...]:
        if record.schema_version > current:
            raise DecodeError(f"its schema version is {record.schema_version}, the class's {current}")
        if shape is None:
            return (cls(),)
        if record.schema_version == current:
            return (shape.revive(decode(record.data)),)
        return (_made(cls, _upcast(record, upcasts_from(record.schema_version, cls.upcasts))),)

    return read


def _splitter(parts: Sequence[Part]) -> Callable[[Recorded], tuple[DomainEvent, ...]]:
    upcasts = [(each.cls, (Upcast(1, each.steps),)) for each in parts]
    return lambda record: tuple(_made(cls, _upcast(record, steps)) for cls, steps in upcasts)


def _upcast(record: Recorded, upcasts: Sequence[Upcast]) -> Values:
    values: Values = msgspec.json.decode(record.data)
    for each in upcasts:
        values = each.apply(values)
    return values


def _made(cls: type[DomainEvent], values: Values) -> DomainEvent:
    if not fields(cls):
        return cls()
    shape = shape_of(cls)
    made: DomainEvent = shape.revive(msgspec.convert(values, shape.lenient, strict=False))
    return made
