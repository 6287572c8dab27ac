"""All matches of a pattern that end with the last of some events, found by trying everything."""


def matches(ways, events, strict=False):
    """Of steps (fits, unless, repeats) and events in order: every match, as the numbers of its events."""
    return [found for way in ways for found in _ending(way, len(way) - 1, events, len(events) - 1, strict)]


def _ending(way, step, events, place, strict):
    """Every match of the steps up to one whose last event is at a place."""
    fits, _, repeats = way[step]
    if place < 0 or not fits(events[place]):
        return
    if step == 0:
        yield (place,)
    for earlier in range(place):
        if strict and earlier != place - 1:
            continue
        if repeats:
            yield from ((*found, place) for found in _ending(way, step, events, earlier, strict))
        if step > 0 and _allowed(way[step], events[earlier + 1 : place]):
            yield from ((*found, place) for found in _ending(way, step - 1, events, earlier, strict))


def _allowed(step, between):
    return step[1] is None or not any(step[1](event) for event in between)


def not_followed(ways, events, within, lasting, forbidden, strict=False):
    """Of events (time, …) of a key in order: the ends of matches that nothing forbidden follows."""
    found = {}
    for place, (time, *_) in enumerate(events):
        near = [number for number in range(place + 1) if events[number][0] > time - within]
        possible = [
            [near[number] for number in match]
            for match in matches(ways, [events[number] for number in near], strict)
        ]
        followed = any(forbidden(each) and each[0] < time + lasting for each in events[place + 1 :])
        if possible and not followed:
            found[place] = possible
    return found
