"""Documents as extended JSON, spelled as Debezium's connector does."""

import math
from typing import Any

from bson.datetime_ms import DatetimeMS
from bson.int64 import Int64
from bson.json_util import DatetimeRepresentation, JSONMode, JSONOptions, dumps

_OPTIONS = JSONOptions(
    json_mode=JSONMode.LEGACY,
    strict_number_long=True,
    datetime_representation=DatetimeRepresentation.LEGACY,
)
_EXACT = 2.0**53  # doubles below it are the whole numbers that they show


def text(value: Any) -> str:
    """Return a value of BSON as text; numbers that JSON has not are spelled out.

    >>> text({"_id": Int64(7), "price": float("nan"), "at": DatetimeMS(5)})
    '{"_id":{"$numberLong":"7"},"price":{"$numberDouble":"NaN"},"at":{"$date":5}}'
    """
    return dumps(_plain(value), json_options=_OPTIONS, ensure_ascii=False, separators=(",", ":"))


def key_text(id: Any) -> str:
    """Return an id as text; those that are equal to MongoDB, whatever their width, are equal here.

    >>> key_text(Int64(7)), key_text(7), key_text(7.0), key_text("7")
    ('7', '7', '7', '"7"')
    """
    return text(_widthless(id))


def _plain(value: Any) -> Any:
    """Bring to JSON what the package would write as no parser takes it: dates as text, NaN."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$numberDouble": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, DatetimeMS):
        return {"$date": int(value)}
    return value


def _widthless(value: Any) -> Any:
    """Return whole numbers without their width: 7 is one id, be it an int, a long or a double."""
    if isinstance(value, dict):
        return {name: _widthless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_widthless(each) for each in value]
    if isinstance(value, Int64) or (isinstance(value, float) and value.is_integer() and abs(value) < _EXACT):
        return int(value)
    return value
