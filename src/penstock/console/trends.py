"""Trends: how fast topics grow and how lag moves, over the last looks at a system."""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.documents import JsonObject
from penstock.ops.model import System

KEPT = 120  # looks: two minutes
_RECENT = 10.0  # seconds over which a rate is taken


@dataclass(frozen=True)
class _Look:
    at: float
    ends: dict[str, int]
    lags: dict[str, int]


@dataclass
class Trends:
    """The last looks; a topic that was made again begins anew."""

    _looks: deque[_Look] = field(default_factory=lambda: deque(maxlen=KEPT))

    def add(self, system: System) -> None:
        """Take a look in."""
        ends = {each.name: sum(kept.end for kept in each.partitions.values()) for each in system.topics}
        self._looks.append(_Look(system.at, ends, {each.group: each.events for each in system.groups}))

    def rate(self, topic: str) -> float:
        """Return the events a second that came to a topic over the last seconds."""
        known = [each for each in self._looks if topic in each.ends]
        recent = [each for each in known if each.at >= known[-1].at - _RECENT]
        return _rate(recent[0], recent[-1], topic) if len(recent) > 1 else 0.0

    def history(self) -> JsonObject:
        """Return rates and lags of all looks, the oldest first, for sparklines."""
        looks = list(self._looks)
        pairs = list(pairwise(looks))
        names = looks[-1].ends if looks else {}
        groups = looks[-1].lags if looks else {}
        return {
            "at": [each.at for each in looks],
            "rates": {
                name: [round(_rate(old, new, name), 1) for old, new in pairs]
                for name in names
                if any(_rate(old, new, name) for old, new in pairs)
            },
            "lags": {name: [each.lags.get(name, 0) for each in looks] for name in groups},
        }


def _rate(old: _Look, new: _Look, topic: str) -> float:
    grown = new.ends.get(topic, 0) - old.ends.get(topic, new.ends.get(topic, 0))
    return max(0.0, grown / max(0.1, new.at - old.at))
