"""How the doctor spells figures for people."""

_DELAYS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def spelled(seconds: float) -> str:
    """Spell a duration in its largest unit.

    >>> spelled(0.25), spelled(90), spelled(7200)
    ('0.2 seconds', '1.5 minutes', '2 hours')
    """
    name, length = next(((name, unit) for name, unit in _UNITS if seconds >= unit), _UNITS[-1])
    count = f"{seconds / length:.1f}".removesuffix(".0")
    return f"{count} {name}" if count == "1" else f"{count} {name}s"


def round_delay(seconds: float) -> str:
    """Return a delay that is at least so long, as one would write it down.

    >>> round_delay(0.1), round_delay(42), round_delay(100_000)
    ('1 second', '1 minute', '2 days')
    """
    found = next((each for each in _DELAYS if each >= seconds), None)
    return spelled(found if found is not None else -(-seconds // 86400) * 86400)


def size(count: float) -> str:
    """Spell bytes.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
