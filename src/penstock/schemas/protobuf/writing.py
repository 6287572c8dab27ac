"""The values of a class as the fields of its message: what Protobuf has no type for is text."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.events.kinds import Choice, Fixed, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of
from penstock.schemas.protobuf.symbols import symbols_of
from penstock.schemas.protobuf.text import WRAPPED

Step = Callable[[Any], Any]
NATIVE = (bytes, datetime, date, Decimal)  # what events hold besides texts, numbers, lists and maps
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def writer(cls: type) -> Step:
    """Return a function from the values of a class, enums as their values, to the fields of its message."""
    fields = [(field.name, _step(field.kind)) for field in fields_of(cls)]
    return lambda values: {name: step(values[name]) for name, step in fields}


def _step(kind: Kind) -> Step:
    match kind:
        case Maybe(inner):
            step = _single(inner)
            return lambda value: None if value is None else step(value)
        case Many(item):
            each_item = _single(item)
            return lambda values: [each_item(each) for each in values]
        case Mapped(value):
            each_value = _single(value)
            return lambda values: {key: each_value(each) for key, each in dict(values).items()}
    return _single(kind)


def _single(kind: Kind) -> Step:
    match kind:
        case Fixed():
            return lambda value: f"{value:f}"
        case Choice(enum):
            symbols = symbols_of(enum)
            return _same if symbols is None else symbols.__getitem__
        case Record(cls):
            return writer(cls)
        case Maybe() | Many() | Mapped():
            step = _step(kind)
            return lambda value: {WRAPPED: step(value)}
        case Scalar(python):
            return _SCALARS.get(python, _same)


def _same(value: Any) -> Any:
    return value


def _instant(value: datetime) -> dict[str, int]:
    seconds, micros = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
    return {"seconds": seconds, "nanos": micros * 1000}


_SCALARS: dict[type, Step] = {datetime: _instant, date: date.isoformat}
