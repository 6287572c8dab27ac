"""What the registry writes into its topic.

Every decision is a record, and none depends on a record that compaction may remove: a schema's record has a
key of its own and stays for ever, while settings and deletions are states of which the last one counts.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from penstock.documents import Json, JsonObject
from penstock.schemas.compatibility import Mode, SchemaKind


@dataclass(frozen=True)
class Reference:
    """A schema that another one imports: by which name, and where it is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class SchemaRecord:
    """A schema under a subject; the writer's nonce distinguishes two writers of one version.

    `metadata` and `rules` are the JSON texts of what clients know as `metadata` and `ruleSet`: kept as they
    were given, and part of what a schema's id stands for.
    """

    subject: str
    version: int
    id: int
    kind: SchemaKind
    text: str
    canonical: str
    references: tuple[Reference, ...] = ()
    nonce: str = ""
    metadata: str | None = None
    rules: str | None = None

    @property
    def content(self) -> tuple[object, ...]:
        """What makes two schemas the same."""
        return (self.kind, self.canonical, self.references, self.metadata, self.rules)

    def key(self) -> JsonObject:
        return {"type": "schema", "subject": self.subject, "version": self.version, "nonce": self.nonce}


@dataclass(frozen=True)
class ModeRecord:
    """The compatibility mode of a subject, or of all (None); `mode` None takes the setting back."""

    subject: str | None
    mode: Mode | None

    def key(self) -> JsonObject:
        return {"type": "mode", "subject": self.subject}


@dataclass(frozen=True)
class DeleteRecord:
    """A version that is no longer offered; its schema can still be read by its id."""

    subject: str
    version: int
    permanent: bool

    def key(self) -> JsonObject:
        return {"type": "delete", "subject": self.subject, "version": self.version}


Record = SchemaRecord | ModeRecord | DeleteRecord
_OPTIONAL = ("metadata", "rules")


def to_message(record: Record) -> tuple[bytes, bytes]:
    """Return the key and the value under which a record is written."""
    values = asdict(record)
    for name in _OPTIONAL if isinstance(record, SchemaRecord) else ():
        if values[name] is None:
            del values[name]  # as instances wrote it that did not know of these
    return _dump(record.key()), _dump(values)


def from_message(key: bytes | None, value: bytes | None) -> Record | None:
    """Return the record of a message; None for what is not ours."""
    try:
        kind, values = json.loads(key or b"")["type"], json.loads(value or b"")
        return _READERS[kind](values)
    except (ValueError, KeyError, TypeError):
        return None


def _dump(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _schema(values: JsonObject) -> SchemaRecord:
    references = tuple(Reference(**each) for each in values.pop("references"))
    return SchemaRecord(**{**values, "kind": SchemaKind(values["kind"])}, references=references)


def _mode(values: JsonObject) -> ModeRecord:
    return ModeRecord(values["subject"], Mode(values["mode"]) if values["mode"] else None)


_READERS: dict[str, Callable[[JsonObject], Record]] = {
    "schema": _schema,
    "mode": _mode,
    "delete": lambda values: DeleteRecord(**values),
}
