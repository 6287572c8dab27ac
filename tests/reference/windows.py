"""Windows in plain Python, small and obviously right; times are numbers, rows are (time, value) pairs."""

from dataclasses import dataclass, field


@dataclass
class Fixed:
    """Windows of one size for one key: an event counts in each of its windows that is open when it comes."""

    size: int
    every: int
    within: int = 0
    rows: dict[int, list] = field(default_factory=dict)
    emitted: set[int] = field(default_factory=set)

    def step(self, new, now):
        """Take rows in at a watermark; return the results (start, end, kind, rows) and the rows too late."""
        touched, late, before = set(), [], set(self.rows)
        for row in new:
            open_ones = [start for start in self.starts(row[0]) if start + self.size + self.within > now]
            for start in open_ones:
                self.rows.setdefault(start, []).append(row)
                touched.add(start)
            if not open_ones:
                late.append(row)
        results = []
        for start in sorted(self.rows):
            results += self.result(start, touched, now, "on time" if start in before else "late")
        return results, late

    def starts(self, time):
        last = time // self.every * self.every
        return [start for start in range(last, last - self.size, -self.every) if start + self.size > time]

    def result(self, start, touched, now, first):
        """A result; the first is late if nothing had come before the window was over."""
        end, emitted = start + self.size, start in self.emitted
        if end > now or (emitted and start not in touched):
            return
        self.emitted.add(start)
        yield start, end, "corrected" if emitted else first, list(self.rows[start])


@dataclass(eq=False)
class Open:
    """A session that may still change."""

    start: int
    end: int
    rows: list
    emitted: bool = False
    changed: bool = True


@dataclass
class Sessions:
    """Session windows for one key."""

    gap: int
    within: int = 0
    open: list[Open] = field(default_factory=list)

    def step(self, new, now):
        results = [self.fire(each) for each in self.open if self.closed(each, now) and each.changed]
        self.open = [each for each in self.open if not self.closed(each, now)]
        old, late, found = list(self.open), [], [Open(row[0], row[0] + self.gap, [row]) for row in new]
        groups = self.groups(old + found)
        self.open = []
        for group in groups:
            if all(each in found for each in group) and max(e.end for e in group) + self.within <= now:
                late += [row for each in group for row in each.rows]
            else:
                united, gone = self.united(group)
                self.open.append(united)
                results += gone
                if united.end <= now and united.changed:
                    waited = any(each in old and not each.emitted for each in group)
                    results.append(self.fire(united, "on time" if waited else "late"))
        return results, late

    def closed(self, session, now):
        return session.end + self.within <= now

    def groups(self, sessions):
        """Those that touch, directly or through others."""
        groups = []
        for each in sorted(sessions, key=lambda each: each.start):
            if groups and each.start <= max(other.end for other in groups[-1]):
                groups[-1].append(each)
            else:
                groups.append([each])
        return groups

    def united(self, group):
        """One session of a group, and those of its results that are gone."""
        start, end = min(each.start for each in group), max(each.end for each in group)
        gone = [
            (each.start, each.end, "retracted", each.rows)
            for each in group
            if each.emitted and each.start != start
        ]
        emitted = any(each.emitted and each.start == start for each in group)
        changed = len(group) > 1 or group[0].changed
        return Open(start, end, [row for each in group for row in each.rows], emitted, changed), gone

    def fire(self, session, first="on time"):
        """A result; the first is late if nothing of it had waited for the watermark."""
        kind = "corrected" if session.emitted else first
        session.emitted, session.changed = True, False
        return session.start, session.end, kind, list(session.rows)


@dataclass
class Sliding:
    """A window for each event of one key: what is within the size before it, equal times included."""

    size: int
    within: int = 0
    rows: list = field(default_factory=list)
    emitted: set = field(default_factory=set)

    def step(self, new, now):
        late = [row for row in new if row[0] + self.within <= now]
        new = [row for row in new if row[0] + self.within > now]
        self.rows += new
        results = [result for row in self.rows for result in self.result(row, new, now)]
        return results, late

    def result(self, row, new, now):
        time, emitted = row[0], row in self.emitted
        changed = any(self.size > time - other[0] >= 0 for other in new)
        if time > now or (emitted and not (changed and time + self.within > now)):
            return
        self.emitted.add(row)
        window = [other for other in self.rows if self.size > time - other[0] >= 0]
        first = "late" if row in new else "on time"
        yield time - self.size, time, "corrected" if emitted else first, window
