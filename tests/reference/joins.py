"""Two logs joined within a time, by trying every pair."""


def within(left, right, before, after, how):
    """Of (key, time, number) on each side: the pairs of numbers, with None where there is no partner."""
    pairs = [
        (one[2], other[2])
        for one in left
        for other in right
        if one[0] is not None and one[0] == other[0] and one[1] - before <= other[1] <= one[1] + after
    ]
    paired = ({one for one, _ in pairs}, {other for _, other in pairs})
    if how in ("left", "full"):
        pairs += [(number, None) for *_, number in left if number not in paired[0]]
    if how in ("right", "full"):
        pairs += [(None, number) for *_, number in right if number not in paired[1]]
    return sorted(pairs, key=str)


def tables(left, right, how):
    """Of two tables (id -> (key, value)) the rows of their join, by trying every pair."""
    pairs = [
        (one, other)
        for one, (key, _) in left.items()
        for other, (other_key, _) in right.items()
        if key is not None and key == other_key
    ]
    paired = ({one for one, _ in pairs}, {other for _, other in pairs})
    if how in ("left", "full"):
        pairs += [(one, None) for one in left if one not in paired[0]]
    if how in ("right", "full"):
        pairs += [(None, other) for other in right if other not in paired[1]]
    return {(one, other): (left.get(one), right.get(other)) for one, other in pairs}


def as_of(events, versions):
    """Of events (key, time, number) and versions (key, time, value), in the log's order: each one's value."""
    found = {}
    for key, time, number in events:
        there = [
            (at, place, value) for place, (of, at, value) in enumerate(versions) if of == key and at <= time
        ]
        found[number] = max(there, key=lambda each: each[:2])[2] if there and key is not None else None
    return found
