"""Places in PostgreSQL's write-ahead log, as numbers and as PostgreSQL spells them."""


def parse(text: str) -> int:
    """Return a place as a number.

    >>> parse("16/B374D848")
    97500059720
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def spell(lsn: int) -> str:
    """Return a place as PostgreSQL spells it.

    >>> spell(97500059720)
    '16/B374D848'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
