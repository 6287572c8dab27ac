"""Duplicates in plain Python: events are (key, time, name) in the order of the log."""

from dataclasses import dataclass, field


@dataclass
class First:
    """Lets an event through unless one of its key was let through whose time is less than `within` away."""

    within: int
    passed: dict[object, list[int]] = field(default_factory=dict)

    def step(self, events, now):
        """Return the events that pass at a watermark, and those that come too late to be judged."""
        through, late = [], []
        for key, time, name in events:
            known = self.passed.setdefault(key, [])
            if time + self.within <= now:
                late.append(name)
            elif all(abs(time - other) >= self.within for other in known):
                known.append(time)
                through.append(name)
        return through, late
