"""What the registry knows: the records of its topic, applied in order. Every instance comes to the same."""

from penstock.registry.records import DeleteRecord, ModeRecord, Record, SchemaRecord
from penstock.schemas.compatibility import Mode

DEFAULT_MODE = Mode.BACKWARD


class State:
    """Subjects, versions, ids and modes. Pure: it is told records, and answers questions."""

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
