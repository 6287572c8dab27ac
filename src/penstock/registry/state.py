"""What the registry knows: the records of its topic, applied in order. Every instance comes to the same."""

from collections.abc import Sequence

from penstock.errors import InvalidSchemaError
from penstock.registry.records import DeleteRecord, ModeRecord, Record, Reference, SchemaRecord
from penstock.schemas.compatibility import Mode

DEFAULT_MODE = Mode.BACKWARD
_MOST_REFERENCES, _DEEPEST_REFERENCES, _LONGEST_REFERENCES = 1_000, 100, 16 * 2**20


class State:
    """Subjects, versions, ids and modes. Pure: it takes records in, and answers questions."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, SchemaRecord]] = {}
        self._by_id: dict[int, SchemaRecord] = {}
        self._ids: dict[tuple[object, ...], int] = {}
        self._deleted: dict[tuple[str, int], bool] = {}
        self._modes: dict[str | None, Mode] = {}

    def apply(self, record: Record) -> None:
        """Take a record in; of two schemas for one version or id, the first in the topic's order counts."""
        match record:
            case SchemaRecord():
                if self._fits(record):
                    self._versions.setdefault(record.subject, {})[record.version] = record
                    self._by_id.setdefault(record.id, record)
                    self._ids[record.content] = record.id
            case ModeRecord(subject, Mode() as mode):
                self._modes[subject] = mode
            case ModeRecord(subject):
                self._modes.pop(subject, None)
            case DeleteRecord(subject, version, permanent):
                self._deleted[subject, version] = permanent or self._deleted.get((subject, version), False)

    def _fits(self, record: SchemaRecord) -> bool:
        return record.version == self.next_version(record.subject) and record.id == self.id_of(record)

    def next_version(self, subject: str) -> int:
        """The version that the subject's next schema has; versions are never used twice."""
        return max(self._versions.get(subject, {}), default=0) + 1

    def id_of(self, record: SchemaRecord) -> int:
        """The id of a schema: the one it has under any subject, or the next."""
        return self._ids.get(record.content) or max(self._by_id, default=0) + 1

    def by_id(self, id: int) -> SchemaRecord | None:
        return self._by_id.get(id)

    def uses_of(self, id: int) -> list[SchemaRecord]:
        """The subjects and versions under which an id is offered."""
        return [record for subject in self.subjects() for record in self.versions(subject) if record.id == id]

    def subjects(self, *, deleted: bool = False) -> list[str]:
        return sorted(subject for subject in self._versions if self.versions(subject, deleted=deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaRecord]:
        """The versions of a subject, oldest first; with `deleted`, those too that were deleted softly."""
        return [
            record
            for version, record in sorted(self._versions.get(subject, {}).items())
            if (gone := self._deleted.get((subject, version))) is None or (deleted and not gone)
        ]

    def every_version(self, subject: str) -> list[SchemaRecord]:
        """The versions of a subject, deleted ones included: messages of them may still be there."""
        return [record for _, record in sorted(self._versions.get(subject, {}).items())]

    def is_deleted(self, subject: str, version: int) -> bool:
        return (subject, version) in self._deleted

    def own_mode(self, subject: str | None) -> Mode | None:
        """The mode that was set for a subject, or for all (None)."""
        return self._modes.get(subject)

    def mode(self, subject: str | None) -> Mode:
        """The mode that counts for a subject."""
        return self._modes.get(subject) or self._modes.get(None) or DEFAULT_MODE

    def texts(self, references: Sequence[Reference]) -> dict[str, str]:
        """The texts of referred schemas by name, with those they refer to in turn."""
        return _References(self).texts(references, 0)


class _References:
    """Follows references, each schema once, within bounds."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._found: dict[tuple[str, int], dict[str, str]] = {}
        self._length = 0

    def texts(self, references: Sequence[Reference], depth: int) -> dict[str, str]:
        if depth > _DEEPEST_REFERENCES:
            raise _too_many(f"its references are nested deeper than {_DEEPEST_REFERENCES}")
        found: dict[str, str] = {}
        for reference in references:
            record = self._record(reference)
            found |= self._behind(record, depth) | {reference.name: record.text}
        return found

    def _behind(self, record: SchemaRecord, depth: int) -> dict[str, str]:
        key = (record.subject, record.version)
        if key not in self._found:
            self._found[key] = self.texts(record.references, depth + 1)
            self._length += len(record.text)
        if len(self._found) > _MOST_REFERENCES or self._length > _LONGEST_REFERENCES:
            raise _too_many(f"it refers to {len(self._found)} schemas of {self._length} characters")
        return self._found[key]

    def _record(self, reference: Reference) -> SchemaRecord:
        for record in self._state.versions(reference.subject, deleted=True):
            if record.version == reference.version:
                return record
        missing = f"version {reference.version} of {reference.subject!r} not found"
        raise InvalidSchemaError(f"it refers to {reference.name!r}: {missing}", hint="register it first")


def _too_many(what: str) -> InvalidSchemaError:
    most = f"{_MOST_REFERENCES} schemas of {_LONGEST_REFERENCES} characters"
    return InvalidSchemaError(what, hint=f"refer to {most} in all, at most {_DEEPEST_REFERENCES} levels deep")
