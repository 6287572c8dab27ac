"""How the doctor spells figures for people."""

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def spelled(seconds: float) -> str:
    """Spell a duration in its largest unit.

    >>> spelled(0.25), spelled(90), spelled(7200)
    ('0.2 seconds', '1.5 minutes', '2 hours')
    """
    name, length = next(((name, unit) for name, unit in _UNITS if seconds >= unit), _UNITS[-1])
    count = f"{seconds / length:.1f}".removesuffix(".0")
    return f"{count} {name}" if count == "1" else f"{count} {name}s"


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
