"""Times, dates and intervals as PostgreSQL spells them, written as Debezium writes them."""

import re
from calendar import monthrange
from datetime import date, datetime

_DAY_ONE = date(1970, 1, 1).toordinal()
_START = datetime(1970, 1, 1)
_INFINITY = {b"infinity": 1, b"-infinity": -1}
# What Debezium makes of a time without end: the last that Java's milliseconds and days can hold for it.
_FOREVER = {1: 9223372036825200000, -1: -9223372036832400000}
_INTERVAL = re.compile(r"(-?\d+) (year|mon|day)s?|(-)?(\d+):(\d\d):(\d\d)(?:\.(\d+))?")
_YEAR = 365.25  # days, as Debezium counts them where an interval is a number


def days(value: bytes) -> bytes:
    """A date as days since 1970."""
    if value in _INFINITY:
        return b"%d" % (2147483647 if value == b"infinity" else -2147483648)
    return b"%d" % _days(value.decode())


def time_micros(value: bytes) -> int:
    """A time of day in microseconds; 24:00 is one of PostgreSQL's."""
    hours, minutes, seconds = value.decode().split(":")
    whole, _, part = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(f"{part:0<6}")


def span_micros(value: bytes) -> int:
    """A time of MySQL in microseconds: up to 838 hours, and it may be negative."""
    return -time_micros(value[1:]) if value[:1] == b"-" else time_micros(value)


def is_zero(value: bytes) -> bool:
    """Whether a date of MySQL is none: a zero for its month or day, or a day that its month does not have."""
    month, day = value[5:7], value[8:10]
    if month == b"00" or day == b"00":
        return True
    return day > b"28" and int(day) > monthrange(int(value[:4]) or 4, int(month))[1]


def timestamp_micros(value: bytes) -> int:
    """A time without a zone in microseconds since 1970."""
    if value in _INFINITY:
        return _FOREVER[_INFINITY[value]]
    spelled = value.decode()
    try:
        since = datetime.fromisoformat(spelled) - _START
    except ValueError:  # before the year 1 or after 9999
        return _far_micros(spelled)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def zoned(value: bytes, digits: int = 6) -> bytes:
    """A time with a zone, in UTC, with as many digits behind the second as its column has."""
    if value[4:5] == b"-" and value[-3:] == b"+00":  # as nearly all are: a year of four digits
        behind = b".%b" % value[20:-3].ljust(digits, b"0") if digits else b""
        return b'"%bT%b%bZ"' % (value[:10], value[11:19], behind)
    if value in _INFINITY:
        return b'"%b"' % value
    spelled = value.decode()
    before = spelled.endswith(" BC")
    day, _, rest = spelled.removesuffix(" BC").partition(" ")
    if before or len(day) > 10:
        year, month, number = day.split("-")
        day = f"{_iso_year(int(year), before)}-{month}-{number}"
    clock, _, part = rest[:-3].partition(".")
    fraction = f".{part:0<{digits}}" if digits else ""
    return f'"{day}T{clock}{fraction}Z"'.encode()


def _iso_year(year: int, before: bool) -> str:
    year = 1 - year if before else year
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"+{year}" if year > 0 else f"-{-year:04d}"


def zoned_time(value: bytes) -> bytes:
    """A time of day with a zone, in UTC."""
    spelled = value.decode()
    at = max(spelled.rfind("+"), spelled.rfind("-"))
    sign, parts = (-1 if spelled[at] == "-" else 1), [*spelled[at + 1 :].split(":"), "0", "0"]
    offset = sign * ((int(parts[0]) * 60 + int(parts[1])) * 60 + int(parts[2]))
    micros = (time_micros(spelled[:at].encode()) - offset * 1_000_000) % 86_400_000_000
    seconds, part = divmod(micros, 1_000_000)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    return f'"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}Z"'.encode()


def interval_text(value: bytes) -> bytes:
    """An interval by ISO 8601, each part with its own sign."""
    if value in _INFINITY:
        return b'"%b"' % value
    months, number_of_days, micros = interval(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    sign, left = ("-" if micros < 0 else ""), abs(micros)
    seconds, part = divmod(left, 1_000_000)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    hours, minutes = seconds // 3600, seconds // 60 % 60
    clock = f"{_signed(sign, hours)}H{_signed(sign, minutes)}M"
    return f'"P{years}Y{months}M{number_of_days}DT{clock}{sign}{seconds % 60}{fraction}S"'.encode()


def _signed(sign: str, value: int) -> str:
    return f"{sign}{value}" if value else "0"


def interval_number(value: bytes) -> bytes:
    """An interval in microseconds, with months of an average length."""
    if value in _INFINITY:
        return b"%d" % (2**63 - 1 if value == b"infinity" else -(2**63))
    months, number_of_days, micros = interval(value)
    return b"%d" % (micros + int((months * _YEAR / 12 + number_of_days) * 86_400_000_000))


def interval(value: bytes) -> tuple[int, int, int]:
    """Return an interval's months, days and microseconds, which PostgreSQL keeps apart."""
    months = number_of_days = micros = 0
    for count, unit, minus, hours, minutes, seconds, part in _INTERVAL.findall(value.decode()):
        if unit == "day":
            number_of_days = int(count)
        elif unit:
            months += int(count) * (12 if unit == "year" else 1)
        else:
            whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            micros = (whole * 1_000_000 + int(f"{part:0<6}")) * (-1 if minus else 1)
    return months, number_of_days, micros


def _days(spelled: str) -> int:
    try:
        return date.fromisoformat(spelled).toordinal() - _DAY_ONE
    except ValueError:
        return _far_days(spelled)


def _far_days(spelled: str) -> int:
    """Days since 1970 of a date that Python has none for: 400 years are always as many days."""
    before = spelled.endswith(" BC")
    year, month, number = (int(part) for part in spelled.removesuffix(" BC").split("-"))
    year = 1 - year if before else year
    eras, near = divmod(year - 1, 400)
    return date(near + 1, month, number).toordinal() - _DAY_ONE + eras * 146_097


def _far_micros(spelled: str) -> int:
    era = " BC" if spelled.endswith(" BC") else ""
    day, _, clock = spelled.removesuffix(" BC").partition(" ")
    return _far_days(day + era) * 86_400_000_000 + time_micros(clock.encode())
