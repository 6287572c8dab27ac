"""The symbols of an enum: Protobuf has names where an event class has texts."""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
UNSPECIFIED = "UNSPECIFIED"  # what the number 0 means by Protobuf's conventions: nothing was given


def prefix(enum_name: str) -> str:
    """What the symbols of an enum begin with, because they share a scope with those of others.

    >>> prefix("PaymentState")
    'PAYMENT_STATE_'
    """
    return _WORD_START.sub("_", enum_name).upper() + "_"


def symbol(value: str) -> str:
    """A value of an enum as a symbol, without the prefix.

    >>> symbol("in-progress")
    'IN_PROGRESS'
    """
    return _NOT_IN_NAMES.sub("_", value).upper()


def symbols_of(enum: type[Enum]) -> Mapping[str, str] | None:
    """The symbol of each value; None if two would share one: such an enum is written as text."""
    return _symbols_of(enum)


@cache
def _symbols_of(enum: type[Enum]) -> Mapping[str, str] | None:
    bare = {member.value: symbol(member.value) for member in enum}
    # protoc compares names without their underscores.
    distinct = {name.replace("_", "") for name in bare.values()}
    if len(distinct) < len(bare) or "" in distinct:
        return None
    return {value: prefix(enum.__name__) + name for value, name in bare.items()}
