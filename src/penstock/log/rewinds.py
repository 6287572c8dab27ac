"""What counts of the messages that were collected, and where reading has to go back to."""

from collections.abc import Iterable

from confluent_kafka import TopicPartition

from penstock.log.message import Received


class Rewinds:
    """Follows the partitions of a member of a group while messages are collected.

    A partition that is revoked takes its collected messages with it: the next owner reads them. What was
    collected and not finished is read again from its first message on.
    """

    def __init__(self) -> None:
        self.back: dict[int, int] = {}  # partition → the offset to go back to before more is read
        self._revoked: set[int] = set()  # since the last collection
        self._sought: set[int] = set()  # by the user, since the last collection

    def revoke(self, partitions: Iterable[int]) -> None:
        """Forget partitions that are another member's now."""
        for partition in partitions:
            self._revoked.add(partition)
            self.back.pop(partition, None)

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """A partition that went and came back during one collection is read from its place, once more."""
        for place in places:
            if place.partition in self._revoked:
                self.back[place.partition] = place.offset

    def seek(self, partition: int) -> None:
        """The user has chosen a place: what was collected there is not read again."""
        self._sought.add(partition)
        self.back.pop(partition, None)

    def begin(self) -> None:
        """A collection begins."""
        self._revoked.clear()
        self._sought.clear()

    def current(self, messages: list[Received]) -> list[Received]:
        """Return the messages that are still this member's, and in their turn."""
        if not self._revoked and not self.back:
            return messages
        gone = self._revoked | self.back.keys()
        return [message for message in messages if message.partition() not in gone]

    def read_again(self, messages: Iterable[Received]) -> None:
        """Go back to the first of these messages in each partition."""
        for message in messages:
            partition, offset = message.partition(), message.offset()
            if partition not in self._sought and partition not in self._revoked:
                self.back[partition] = min(offset, self.back.get(partition, offset))
