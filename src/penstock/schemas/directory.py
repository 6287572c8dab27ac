"""The directory of schemas: the number each has in messages. The registry is one; tests have others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.schemas.compatibility import SchemaKind


@dataclass(frozen=True)
class WrittenSchema:
    """The schema a message was written with; `version` is its number under the subject that was asked for.

    `references` are the names and texts of the schemas that it refers to.
    """

    kind: SchemaKind
    text: str
    version: int | None
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NumberedSchema:
    """The schema that a topic is written with, and the number that its messages name."""

    id: int
    text: str


TextAfter = Callable[[Sequence[WrittenSchema]], str]


class SchemaDirectory(Protocol):
    """Gives schemas numbers, and finds them again."""

    def id_for(self, subject: str, kind: SchemaKind, text: str) -> int:
        """Return the number of a schema under a subject, registering it if it is new."""
        ...

    def numbered(self, subject: str, kind: SchemaKind, text_after: TextAfter) -> NumberedSchema:
        """As `id_for`, for a text that is made of the subject's earlier schemas, oldest first.

        The text is made again if another schema was registered in the meantime.
        """
        ...

    def written(self, subject: str, id: int) -> WrittenSchema:
        """Return the schema of a number; UnknownSchemaError if it does not turn up in time."""
        ...
