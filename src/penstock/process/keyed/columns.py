"""Columns over `event` and `recent`: plain expressions of Spark's, which run in every mode."""

from collections.abc import Callable
from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.durations import MICROSECOND, duration
from penstock.process.columns.names import US
from penstock.process.keyed.recent import EVENT, REACH, RECENT

Condition = Callable[[Column], Column]
Within = str | timedelta | None
_EARTH_KM = 6371.0088


def events(*, within: Within = None, where: Condition | None = None) -> Column:
    """The recent events, the newest first: all, or those that are nearer or fit; `events()["id"]` has ids."""
    return _near(within, where)


def count(*, within: Within = None, where: Condition | None = None) -> Column:
    """How many recent events there are, the event itself included: all, or those that are nearer or fit.

    keyed.count(within="1 minute", where=lambda login: login.kind == "failed")
    """
    return F.size(_near(within, where))


def sum(
    column: str, *, within: Within = None, where: Condition | None = None, type: str = "double"
) -> Column:
    """The sum of a column's values, 0 if there are none; for money say `type="decimal(38,2)"`."""
    values = F.transform(_values(column, within, where), lambda value: value.cast(type))
    return F.aggregate(values, F.lit(0).cast(type), lambda total, value: (total + value).cast(type))


def avg(column: str, *, within: Within = None, where: Condition | None = None) -> Column:
    """The mean of a column's values, as a double; null if there are none."""
    return F.try_divide(sum(column, within=within, where=where), F.size(_values(column, within, where)))


def min(column: str, *, within: Within = None, where: Condition | None = None) -> Column:
    """The least of a column's values; null if there are none."""
    return F.array_min(_values(column, within, where))


def max(column: str, *, within: Within = None, where: Condition | None = None) -> Column:
    """The greatest of a column's values; null if there are none."""
    return F.array_max(_values(column, within, where))


def distinct(column: str, *, within: Within = None, where: Condition | None = None) -> Column:
    """How many different values a column has; null is none."""
    return F.size(F.array_distinct(_values(column, within, where)))


def previous(column: str) -> Column:
    """The value of a column in the event before this one; null if there is none."""
    return _before()[column]


def since(condition: Condition) -> Column:
    """The seconds since the last event before this one that fits; null if none is near enough.

    keyed.since(lambda login: login.kind == "failed")
    """
    earlier = F.filter(F.slice(RECENT, 2, F.greatest(F.size(RECENT), F.lit(1))), condition)
    return (F.col(EVENT)[US] - F.get(earlier, 0)[US]) / F.lit(1e6)


def speed_kmh(latitude: str, longitude: str) -> Column:
    """How fast one would have to travel from the event before this one; null if there is none.

    The way is the shortest over the ground. From one place to another in no time is infinitely fast.
    """
    here, there = F.col(EVENT), _before()
    way = kilometres(*(each[name].cast("double") for each in (here, there) for name in (latitude, longitude)))
    hours = (here[US] - there[US]) / F.lit(3.6e9)
    at_once = F.when(way == 0, F.lit(0.0)).when(way > 0, F.lit(float("inf")))
    return F.when(hours == 0, at_once).otherwise(F.try_divide(way, hours))


def _before() -> Column:
    return F.get(RECENT, 1)


def _near(within: Within, where: Condition | None) -> Column:
    found = F.col(RECENT)
    if within is not None:
        first = F.col(EVENT)[US] - _reaching(duration(within))
        found = F.filter(found, lambda other: other[US] > first)
    return found if where is None else F.filter(found, where)


def _reaching(within: timedelta) -> Column:
    """So many microseconds; what is older than the recent events can't be counted."""
    us = F.lit(within // MICROSECOND).cast("long")
    message = (
        f"a column looks {within} back, further than keyed.recent does; make the `within` of recent longer"
    )
    return F.when(F.col(EVENT)[REACH] >= us, us).otherwise(F.raise_error(F.lit(message)).cast("long"))


def _values(column: str, within: Within, where: Condition | None) -> Column:
    return F.array_compact(F.transform(_near(within, where), lambda other: other[column]))


def kilometres(lat: Column, lon: Column, other_lat: Column, other_lon: Column) -> Column:
    """How far it is between two places, over the ground."""
    north, east = (F.radians(one - other) / 2 for one, other in ((lat, other_lat), (lon, other_lon)))
    round_ = F.cos(F.radians(lat)) * F.cos(F.radians(other_lat)) * F.pow(F.sin(east), 2)
    chord = F.pow(F.sin(north), 2) + round_
    return 2 * _EARTH_KM * F.asin(F.sqrt(F.least(chord, F.lit(1.0))))
