"""How figures are spelled for people: times and sizes in a few characters."""

_SPANS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES = ((2**30, "GB"), (2**20, "MB"), (2**10, "kB"))


def span(seconds: float | None) -> str:
    """Spell a length of time.

    >>> span(0.05), span(1.25), span(47.0), span(300.0), span(9000.0), span(200_000.0)
    ('50 ms', '1.2 s', '47 s', '5 min', '2.5 h', '2.3 d')
    """
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    unit, name = next(((size, name) for size, name in _SPANS if seconds >= 2 * size), (1.0, "s"))
    value = seconds / unit
    return f"{value:.0f} {name}" if value >= 10 or value == round(value) else f"{value:.1f} {name}"


def size(count: float | None) -> str:
    """Spell a number of bytes.

    >>> size(512), size(2048), size(5_000_000)
    ('512 B', '2 kB', '5 MB')
    """
    if count is None:
        return "–"
    unit, name = next(((unit, name) for unit, name in _SIZES if count >= unit), (1, "B"))
    return f"{count / unit:.0f} {name}"


def number(count: float) -> str:
    """Spell a number.

    >>> number(1234), number(0.25), number(0.0), number(12.5)
    ('1,234', '0.2', '0', '12')
    """
    return f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:,.1f}"
