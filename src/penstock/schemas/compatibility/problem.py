"""A reason why one schema can't read what another wrote."""

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Who reads whose data: backward, the new schema reads the earlier one's; forward, the reverse."""

    BACKWARD = "backward"
    FORWARD = "forward"


@dataclass(frozen=True)
class Problem:
    """The field, the rule it breaks (a stable id), and in plain words what was seen and what to do.

    `against` is the position, oldest first, of the earlier schema it was found against.
    """

    path: str
    rule: str
    message: str
    direction: Direction | None = None
    against: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.message} [{self.rule}]{self._roles()}"

    def _roles(self) -> str:
        if self.direction is None:
            return ""
        new, earlier = "the new schema", "the earlier schema"
        reader, writer = (new, earlier) if self.direction is Direction.BACKWARD else (earlier, new)
        return f" (reader: {reader}, writer: {writer})"
