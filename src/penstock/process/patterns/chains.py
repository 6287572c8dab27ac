"""Chains of events: how far a pattern has come for each of many keys, in arrays over the keys."""

from dataclasses import dataclass

import numpy as np

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
NONE = -1


class Chains:
    """Events that are linked; a chain is known by its last link, and there is room for so many links.

    `event` is an event's number, `before` the link that it follows, `first` the earliest time in the chain.
    """

    def __init__(self, room: int) -> None:
        self.event: Ints = np.empty(room, np.int64)
        self.before: Ints = np.empty(room, np.int64)
        self.first: Ints = np.empty(room, np.int64)
        self._count = 0

    def add(self, events: Ints, before: Ints, times: Ints) -> Ints:
        """Link events behind other links, or behind none, and return their links."""
        links: Ints = np.arange(self._count, self._count + len(events))
        self.event[links], self.before[links] = events, before
        self.first[links] = np.where(before == NONE, times, np.minimum(times, self.first[before]))
        self._count += len(events)
        return links

    def unrolled(self, links: Ints) -> tuple[Ints, Ints]:
        """Return the events of chains, the oldest first, and of which of the chains each is."""
        owner: Ints = np.arange(len(links))
        events, owners = [], []
        while len(links):
            events.append(self.event[links])
            owners.append(owner)
            links = self.before[links]
            owner, links = owner[links != NONE], links[links != NONE]
        found, of = (np.concatenate([np.empty(0, np.int64), *each[::-1]]) for each in (events, owners))
        order = np.argsort(of, kind="stable")
        return found[order], of[order]


@dataclass(frozen=True)
class Way:
    """Steps that follow one another within a time, in microseconds; strictly, or passing over other events.

    A step is the bits of an event of which one makes it fit, and those which must not come before it.
    """

    steps: tuple[tuple[int, int], ...]
    within: int
    strict: bool

    def advance(self, chains: Chains, parts: Ints, events: Ints, bits: Ints, times: Ints) -> Ints:
        """Take one more event of each key: `parts` are, for each step, the chains that end with it.

        Returns the parts after it; those of the last step are matches.
        """
        after = np.full_like(parts, NONE)
        for number, (fits, _) in enumerate(self.steps):
            before = parts[number - 1] if number else np.full(len(times), NONE)
            taken = bits & fits != 0
            if number:
                taken &= (before != NONE) & (chains.first[before] > times - self.within)
            if not self.strict and number + 1 < len(self.steps):
                forbidden = self.steps[number + 1][1]
                after[number] = np.where(bits & forbidden == 0, parts[number], NONE)
            after[number, taken] = chains.add(events[taken], before[taken], times[taken])
        return after
