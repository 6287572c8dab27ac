"""Messages as plain values: every field by its name, None where a field that can be left out was."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from penstock.schemas.protobuf.symbols import prefix
from penstock.schemas.protobuf.text import WRAPPED, is_wrapping

Read = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = "google.protobuf.Timestamp"
_VALUES = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def reader(descriptor: Descriptor, wanted: Collection[str] | None = None) -> Read:
    """Return a function that reads messages of a type; only the `wanted` fields, if they are named."""
    return _Readers().record(descriptor, wanted)


class _Readers:
    """The readers of message types; each is made once, as types may hold themselves."""

    def __init__(self) -> None:
        self._made: dict[str, Read] = {}

    def record(self, descriptor: Descriptor, wanted: Collection[str] | None = None) -> Read:
        fields = {each.name: each for each in descriptor.fields if wanted is None or each.name in wanted}
        steps = {name: self._field(field) for name, field in fields.items()}
        plain = [name for name, step in steps.items() if step is _same and not fields[name].has_presence]
        others = [(name, fields[name].has_presence, steps[name]) for name in fields if name not in plain]

        def read(message: Any) -> dict[str, Any]:
            values = {name: getattr(message, name) for name in plain}
            for name, optional, step in others:
                there = not optional or message.HasField(name)
                values[name] = step(getattr(message, name)) if there else None
            return values

        return read

    def _field(self, field: FieldDescriptor) -> Read:
        if not field.is_repeated:
            return self._value(field)
        if field.message_type and field.message_type.GetOptions().map_entry:
            value = self._value(field.message_type.fields_by_name["value"])
            return lambda found: {str(key): value(found[key]) for key in found}
        item = self._value(field)
        return list if item is _same else lambda found: [item(each) for each in found]

    def _value(self, field: FieldDescriptor) -> Read:
        if field.enum_type:
            return _symbol_reader(field.enum_type)
        return self._message(field.message_type) if field.message_type else _same

    def _message(self, descriptor: Descriptor) -> Read:
        name = descriptor.full_name
        if name == _TIMESTAMP:
            return _instant
        if name in _VALUES:
            return lambda message: message.value
        if name not in self._made:
            self._made[name] = lambda message: self._made[name](message)  # while it is being made
            self._made[name] = self._unwrapped(descriptor)
        return self._made[name]

    def _unwrapped(self, descriptor: Descriptor) -> Read:
        read = self.record(descriptor)
        if is_wrapping(descriptor.name, [field.name for field in descriptor.fields]):
            return lambda message: read(message)[WRAPPED]
        return read


def _same(value: Any) -> Any:
    return value


def _instant(message: Any) -> datetime:
    """What is finer than microseconds is cut off."""
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def _symbol_reader(enum: EnumDescriptor) -> Read:
    """Symbols without the enum's prefix; a number without a symbol stays a number."""
    start = prefix(enum.name)
    names = {value.number: value.name.removeprefix(start) for value in enum.values}
    return lambda number: names.get(number, number)
