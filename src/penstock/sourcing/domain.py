"""The words of a domain: commands, which may be refused; events, which are facts; reasons to refuse."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from penstock.errors import EventTypeError
from penstock.events.checks import Checks, check_fields, checks_of
from penstock.schemas import Upcast
from penstock.schemas.upcasting import upcasts_from


@dataclass(frozen=True)
class _Checked:
    """A value whose fields are checked when it is made."""

    def __post_init__(self) -> None:
        check_fields(self, field_checks(type(self)))


@dataclass(frozen=True)
class Command(_Checked):
    """What somebody wants to happen; it may be refused."""


@dataclass(frozen=True)
class Refusal(_Checked):
    """Why a command was refused, as a value: `class InsufficientFunds(Refusal)` with what it was about."""

    def __str__(self) -> str:
        held = ", ".join(f"{name} {value}" for name, value in self.__dict__.items())
        return f"{type(self).__name__} ({held})" if held else type(self).__name__


@dataclass(frozen=True)
class DomainEvent(_Checked):
    """What happened in a stream: a fact. Who, when and why are kept beside it, by the store.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Deposited(DomainEvent, formerly=("MoneyPaidIn",)):
    ...     amount: int
    >>> Deposited.event_type, Deposited.schema_version
    ('Deposited', 1)

    `type` is the name that it is stored under, the class's own unless you say it, `formerly` the names it had
    before. `upcasts` bring events that were stored in an older shape to this one; they count its versions:
    with `upcast(1, …)` and `upcast(2, …)` the class is version 3. What was stored stays as it is.

    Fields in `personal` are encrypted wherever the event goes, with a key of the `subject`: the stream, or
    who is named by that field. They are `str | None`, and None once the subject is erased.
    """

    event_type: ClassVar[str] = "DomainEvent"
    schema_version: ClassVar[int] = 1
    formerly: ClassVar[tuple[str, ...]] = ()
    upcasts: ClassVar[tuple[Upcast, ...]] = ()
    personal: ClassVar[tuple[str, ...]] = ()
    subject: ClassVar[str | None] = None

    def __init_subclass__(
        cls,
        type: str | None = None,
        formerly: Sequence[str] = (),
        upcasts: Sequence[Upcast] = (),
        personal: Sequence[str] = (),
        subject: str | None = None,
        **more: Any,
    ) -> None:
        super().__init_subclass__(**more)
        cls.event_type = type or cls.__name__
        cls.formerly = tuple(formerly)
        if isinstance(personal, str) or isinstance(formerly, str):
            raise EventTypeError(
                f"{cls.__name__} has a text for personal= or formerly=", hint='write a tuple: ("name",)'
            )
        cls.personal = tuple(dict.fromkeys((*cls.personal, *personal)))  # and those of the classes above
        cls.subject = subject or cls.subject
        cls.upcasts = upcasts_from(1, upcasts)
        cls.schema_version = 1 + max((each.since for each in cls.upcasts), default=0)


def field_checks(cls: type) -> Checks:
    """Return the check of each field; a value that only has a name has none."""
    return _field_checks(cls)


@cache
def _field_checks(cls: type) -> Checks:
    return checks_of(cls) if dataclasses.fields(cls) else ()
