"""The alerts that readings call for, found plainly: machine by machine, reading by reading."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from penstock.apps.sensors.events import Reading
from penstock.apps.sensors.pipeline import LIMIT, SILENCE
from penstock.durations import duration

Found = tuple[str, datetime]  # the kind of an alert, and its time
_NEAR = timedelta(minutes=1)


def alerts_of(machines: Iterable[list[Reading]], watermark: datetime) -> dict[str, Found]:
    """Return the alerts of machines, each under its id, that are due when the watermark has got so far."""
    found: dict[str, Found] = {}
    for readings in machines:
        found |= {f"{each.id}/hot": ("hot", each.at) for each in _hot(readings)}
        found |= {
            f"{each.id}/silent": ("silent", each.at + duration(SILENCE))
            for each in _silent(readings, watermark)
        }
    return found


def _hot(readings: list[Reading]) -> Iterator[Reading]:
    for place, reading in enumerate(readings):
        near = [each for each in readings[max(0, place - 3) : place + 1] if each.at >= reading.at - _NEAR]
        is_hot = [each.temperature > LIMIT for each in reversed(near)]
        if is_hot[:3] == [True] * 3 and not any(is_hot[3:]):
            yield reading


def _silent(readings: list[Reading], watermark: datetime) -> Iterator[Reading]:
    silence = duration(SILENCE)
    for reading, following in pairwise(readings):
        if following.at >= reading.at + silence:
            yield reading
    if readings and readings[-1].at + silence <= watermark:
        yield readings[-1]
