"""A line that a runner reports, with what a program wants to know of it."""

from typing import Literal, Self

Level = Literal["info", "warning", "error"]


class Reported(str):
    """The text of a line; `level` says how bad it is, `batch` which batch it is of.

    >>> line = Reported.of("batch 7: 12 rows", batch=7)
    >>> line, line.level, line.batch
    ('batch 7: 12 rows', 'info', 7)
    """

    level: Level = "info"
    batch: int | None = None

    @classmethod
    def of(cls, text: str, *, level: Level = "info", batch: int | None = None) -> Self:
        made = cls(text)
        made.level, made.batch = level, batch
        return made
