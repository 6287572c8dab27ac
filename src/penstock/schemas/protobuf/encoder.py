"""Events as the bodies of messages; what does it can be sent to a process that has no compiler."""

from typing import Any

import msgspec

from penstock.events import Event
from penstock.schemas.protobuf.files import Files
from penstock.schemas.protobuf.writing import NATIVE, writer

_FIRST_MESSAGE = b"\0"


class Encoder:
    """Writes events of a class with one schema, in which the class is the first message."""

    def __init__(self, cls: type[Event], files: Files) -> None:
        self._class, self._files = cls, files
        self._message, self._fields = files.message(), writer(cls)

    def __reduce__(self) -> tuple[object, ...]:
        return Encoder, (self._class, self._files)

    def __call__(self, event: Event) -> bytes:
        values: dict[str, Any] = msgspec.to_builtins(event, builtin_types=NATIVE)
        return self.body(values)

    def body(self, values: dict[str, Any]) -> bytes:
        """Return the body of an event's values, enums and UUIDs as texts."""
        message = self._message(**self._fields(values))
        return _FIRST_MESSAGE + bytes(message.SerializeToString(deterministic=True))
