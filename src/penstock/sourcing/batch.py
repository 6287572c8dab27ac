"""A batch: appends that are stored together, and the records that they come to."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice

from penstock.sourcing.append import Append, Context
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys


class Batch:
    """Each record is made once, when it is asked for: the database stores some while others are made."""

    def __init__(self, appends: Sequence[Append], at: datetime, context: Context, keys: SubjectKeys) -> None:
        self.appends = [each for each in appends if each.events]
        self.at = at
        self._made: list[Recorded] = []
        self._rest = chain.from_iterable(each.records(at, context, keys) for each in self.appends)
        if any(each.types.are_personal for each in self.appends):
            self.make()  # they need keys, which are asked for before a connection is held

    def __len__(self) -> int:
        return sum(len(each.events) for each in self.appends)

    def make(self) -> None:
        """Make those that were not asked for yet."""
        self._made.extend(self._rest)

    @property
    def records(self) -> list[Recorded]:
        """All of them, in order."""
        self.make()
        return self._made

    def portions(self, size: int) -> Iterator[list[Recorded]]:
        """Yield them in portions."""
        for first in range(0, len(self), size):
            self._made.extend(islice(self._rest, max(0, first + size - len(self._made))))
            yield self._made[first : first + size]
