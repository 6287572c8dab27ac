"""Reads a table's topic from where the copy is."""

from penstock.errors import ReplicaError
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.replica.ledger import Ledger, Place
from penstock.settings import Settings

# A fetch that finds nothing waits at the broker: nobody asks it again and again while a table rests.
_KAFKA = {"fetch.wait.max.ms": 200, "queued.max.messages.kbytes": 32 * 1024}


class TopicReader:
    """A cursor on a topic, and the position that the copy's database has of it."""

    def __init__(self, path: str, topic: str, id: str, settings: Settings, ledger: Ledger) -> None:
        self.path, self._ledger = path, ledger
        self._cursor = Cursor(topic, settings, group="penstock.replica", kafka=_KAFKA, archived=True)
        try:
            self.place = self._stored(topic, id)
            self._cursor.go_to(self.place.offsets)
        except BaseException:
            self.close()
            raise

    def _stored(self, topic: str, id: str) -> Place:
        known = self._ledger.places().get(topic)
        if known is None:
            known = Place(topic, id, self._cursor.beginnings())
            with self._ledger.writing():
                self._ledger.begin(known)
        refuse_other(known, id)
        return known

    def read(self, size: int) -> list[Received]:
        """Return the next records that are there."""
        return self._cursor.read(size, wait=0)

    def move(self, seen: int) -> Place:
        """Move the stored position behind what was read, in the transaction that has written it."""
        to = dict(self._cursor.position)
        self._ledger.move(self.place, to, seen)
        return Place(self.place.topic, self.place.id, to)

    @property
    def has_moved(self) -> bool:
        return self._cursor.position != self.place.offsets

    def close(self) -> None:
        self._cursor.close()


def refuse_other(place: Place, id: str) -> None:
    """Refuse a topic that was deleted and made again: an offset in it is of another record."""
    if place.id != id:
        raise ReplicaError(
            f"topic {place.topic!r} was deleted and made again: its position in the copy is of the old one",
            hint="`penstock replica run … --begin-anew` empties the copy and reads all again",
        )
