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
