"""The directory of schemas: the number each has in messages. The registry is one; tests have others."""

from dataclasses import dataclass
from typing import Protocol

from penstock.schemas.compatibility import SchemaKind


@dataclass(frozen=True)
class WrittenSchema:
    """The schema a message was written with; `version` is its number under the subject that was asked for."""

    kind: SchemaKind
    text: str
    version: int | None


class SchemaDirectory(Protocol):
    """Gives schemas numbers, and finds them again."""

    def id_for(self, subject: str, kind: SchemaKind, text: str) -> int:
        """Return the number of a schema under a subject, registering it if it is new."""
        ...

    def written(self, subject: str, id: int) -> WrittenSchema:
        """Return the schema of a number; UnknownSchemaError if it does not turn up in time."""
        ...
