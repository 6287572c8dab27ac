"""Arguments that people give, checked before the database sees them."""

from datetime import datetime

from penstock.errors import ConfigurationError

_LONGEST = 250  # letters of a stream's name


def check_stream(name: str) -> str:
    """Return a stream's name, or say what it may be."""
    if not isinstance(name, str) or not name or len(name) > _LONGEST or "\x00" in name:
        raise ConfigurationError(
            f"{name!r:.100} is not a stream's name", hint=f"use a text of 1 to {_LONGEST} letters"
        )
    return name


def check_moment(time: datetime) -> datetime:
    """Return a time, if it has a zone: without one it would be another moment on another machine."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise ConfigurationError(
            f"{time!r} is no time with a zone", hint="write datetime(2026, 1, 1, tzinfo=UTC)"
        )
    return time
