"""A message that the broker has handed out: unlike an error, or what is yet to be sent, it has its place."""

from typing import TYPE_CHECKING, Any, TypeGuard

from confluent_kafka import Message

if TYPE_CHECKING:

    class Received(Message):
        """A message as it stands in the log."""

        def topic(self) -> str: ...
        def partition(self) -> int: ...
        def offset(self) -> int: ...
        def headers(self) -> list[tuple[str, Any]] | None: ...  # bytes or None

    class Delivered(Received):
        """A message that a share group has handed out, and counts how often."""

        def delivery_count(self) -> int: ...

else:
    Received = Delivered = Message


def is_received(message: Message) -> TypeGuard[Received]:
    """Say whether it is a message, and not an error that a client hands out like one."""
    return message.error() is None
