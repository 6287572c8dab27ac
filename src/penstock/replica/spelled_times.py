"""Dates and times as Debezium writes them, spelled as PostgreSQL reads them."""

from datetime import date

_DAY_ONE = date(1970, 1, 1).toordinal()
_ERA = 146_097  # days of 400 years, which are always as many
_LAST = date.max.toordinal()
_DAY = 86_400_000_000  # microseconds
_ENDLESS_DAYS = {2147483647: b"infinity", -2147483648: b"-infinity"}
_ENDLESS = {9223372036825200000: b"infinity", -9223372036832400000: b"-infinity"}
_ENDLESS_MILLIS = {micros // 1000: word for micros, word in _ENDLESS.items()}


def spelled_date(days: int) -> bytes:
    """Return a date by its days since 1970.

    >>> spelled_date(1), spelled_date(-719528), spelled_date(6585322)
    (b'1970-01-02', b'0001-01-01 BC', b'20000-01-01')
    """
    if days in _ENDLESS_DAYS:
        return _ENDLESS_DAYS[days]
    day, era = _day(days)
    return f"{day}{era}".encode()


def spelled_time(micros: int) -> bytes:
    """Return a time of day.

    >>> spelled_time(45296_500000), spelled_time(86_400_000_000)
    (b'12:34:56.500000', b'24:00:00')
    """
    return _clock(micros).encode()


def spelled_timestamp(micros: int) -> bytes:
    """Return a time without a zone by its microseconds since 1970.

    >>> spelled_timestamp(-500_000), spelled_timestamp(9223372036825200000)
    (b'1969-12-31 23:59:59.500000', b'infinity')
    """
    return _ENDLESS[micros] if micros in _ENDLESS else _moment(micros)


def spelled_timestamp_of_millis(millis: int) -> bytes:
    """Return a time without a zone by its milliseconds since 1970."""
    return _ENDLESS_MILLIS[millis] if millis in _ENDLESS_MILLIS else _moment(millis * 1000)


def spelled_zoned(text: bytes) -> bytes:
    """Return a time with a zone; PostgreSQL reads ISO's spelling of all years from 1 to 9999.

    >>> spelled_zoned(b"2026-01-02T03:04:05Z"), spelled_zoned(b"-0043-03-15T12:00:00Z")
    (b'2026-01-02T03:04:05Z', b'0044-03-15 12:00:00+00 BC')
    >>> spelled_zoned(b"+12345-01-01T00:00:00Z"), spelled_zoned(b"0000-01-01T00:00:00Z")
    (b'12345-01-01 00:00:00+00', b'0001-01-01 00:00:00+00 BC')
    """
    if text[:1] not in b"+-" and text[:4] != b"0000":
        return text
    if text.endswith(b"infinity"):
        return text
    day, _, clock = text.decode().rstrip("Z").partition("T")
    year, month, number = day.lstrip("+-").split("-")
    signed = -int(year) if day[0] == "-" else int(year)
    return f"{_year(signed)}-{month}-{number} {clock}+00{_era(signed)}".encode()


def _moment(micros: int) -> bytes:
    days, clock = divmod(micros, _DAY)
    day, era = _day(days)
    return f"{day} {_clock(clock)}{era}".encode()


def _day(days: int) -> tuple[str, str]:
    """Return a day and its era, which stands behind the time of day."""
    ordinal = days + _DAY_ONE
    if 1 <= ordinal <= _LAST:
        return date.fromordinal(ordinal).isoformat(), ""
    eras, rest = divmod(ordinal - 1, _ERA)
    near = date.fromordinal(rest + 1)
    year = near.year + 400 * eras
    return f"{_year(year)}-{near.month:02d}-{near.day:02d}", _era(year)


def _year(year: int) -> str:
    return f"{1 - year if year <= 0 else year:04d}"


def _era(year: int) -> str:
    return " BC" if year <= 0 else ""


def _clock(micros: int) -> str:
    seconds, part = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    fraction = f".{part:06d}" if part else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"
