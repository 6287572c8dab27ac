"""Places in a binary log as numbers that grow: that of the file, and where in it."""

_SHIFT = 40
_FURTHEST = 1 << 32  # a file that is so large has been closed behind its last transaction
_MASK = (1 << _SHIFT) - 1


class RowPlace(int):
    """The place of an event, with the number of a row in it."""

    row = 0

    @classmethod
    def of(cls, place: int, row: int) -> "RowPlace":
        made = cls(place)
        made.row = row
        return made


def place(file: str, at: int) -> int:
    """Return a place as a number.

    >>> place("shop-bin.000002", 4) - place("shop-bin.000002", 0)
    4
    >>> place("shop-bin.000010", 4) > place("shop-bin.000009", 2**33)
    True
    """
    return int(file.rpartition(".")[2]) << _SHIFT | at


def offset(place: int) -> int:
    """Return where in its file a place is."""
    return place & _MASK


def start_of(file: str, at: int) -> tuple[str, int]:
    """Return where to begin for a place: nothing follows one that is further than servers can be asked for.

    >>> start_of("shop-bin.000009", 2**32 + 5)
    ('shop-bin.000010', 4)
    """
    if at < _FURTHEST:
        return file, at
    name, _, number = file.rpartition(".")
    return f"{name}.{int(number) + 1:06d}", 4


def number(place: int) -> int:
    """Return the number of a place's file."""
    return place >> _SHIFT
