"""The schema registry: subjects, versions and ids, kept in the log. Any number of instances agree."""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

from penstock.durations import duration
from penstock.errors import (
    IncompatibleSchemaError,
    LogError,
    RulesError,
    UnknownSchemaError,
    UnknownSubjectError,
)
from penstock.events import new_id
from penstock.registry.judge import Judge, LocalJudge, Source
from penstock.registry.limits import Limits
from penstock.registry.records import DeleteRecord, ModeRecord, Record, Reference, SchemaRecord
from penstock.registry.rules import kept, run_at_write, satisfies
from penstock.registry.state import State
from penstock.registry.topic import SchemaTopic
from penstock.registry.workers import Workers
from penstock.schemas import NumberedSchema, WrittenSchema
from penstock.schemas.compatibility import Mode, Problem, SchemaKind
from penstock.schemas.directory import TextAfter
from penstock.settings import Settings

T = TypeVar("T")
_TRIES = 50
_IN_VAIN, _REST = 3, 10.0  # so many waits in vain are allowed in so many times the patience
_MOST_MISSING = 100_000
SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND = 40401, 40402, 40403
NOT_DELETED_YET, NO_OWN_MODE, STILL_REFERRED_TO = 40405, 40408, 42206


class Registry:
    """Registers schemas and finds them again, by reading and writing the registry's topic.

        with Registry(settings) as registry:
            Producer(settings, schemas=registry)

    There is no leader: an instance writes what it decided, and the topic's order says which of two writers
    was first; the other one looks again and tries with the next number. `patience` is how long an unknown
    id is waited for.
    """

    def __init__(self, settings: Settings, *, patience: str | timedelta = "10 seconds") -> None:
        self._patience = duration(patience).total_seconds()
        self._state = State()
        self._lock = threading.Lock()  # held for a question or a record, never while the topic is waited for
        self._registering = threading.Lock()
        self._missing: set[int] = set()
        self._in_vain: deque[float] = deque(maxlen=_IN_VAIN)  # when waits ended so
        self._judge: Judge = LocalJudge()
        self._topic = SchemaTopic(settings, self._apply)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def has_failed(self) -> bool:
        """Whether it does not follow its topic any more: open another one in its place."""
        return self._topic.has_failed

    def close(self) -> None:
        self._judge.close()
        self._topic.close()

    def _apply(self, record: Record) -> None:
        with self._lock:
            self._state.apply(record)

    def _ask(self, question: Callable[[State], T]) -> T:
        with self._lock:
            return question(self._state)

    def isolate(self, limits: Limits) -> None:
        """Judge schemas in processes with limits from now on, as a server does for strangers."""
        before, self._judge = self._judge, Workers(limits)
        before.close()

    # Registering

    def register(
        self,
        subject: str,
        kind: SchemaKind,
        text: str,
        references: Sequence[Reference] = (),
        *,
        metadata: str | None = None,
        rules: str | None = None,
    ) -> SchemaRecord:
        """Register a schema under a subject, or return it if it is there; refuse what is not compatible.

        `metadata` and `rules` are JSON texts that are kept with it. Where they are not given, those of the
        subject's newest version go on: a client that knows nothing of rules does not end them.
        """
        draft = SchemaRecord(subject, 0, 0, kind, text, "", tuple(references), new_id(), metadata, rules)
        return self._register(draft, lambda _: text)

    def _register(self, draft: SchemaRecord, text_after: Callable[[list[SchemaRecord]], str]) -> SchemaRecord:
        """Register a schema whose text is made of those before it; again if another one was first."""
        for _ in range(_TRIES):
            self._topic.catch_up()
            earlier, version = self._ask(
                lambda state: (state.every_version(draft.subject), state.next_version(draft.subject))
            )
            text = text_after(earlier)
            source = self._source(draft.kind, text, draft.references)
            given = replace(draft, text=text, canonical=self._judge.canonical(source))
            found = self._find(given) or self._write(self._completed(given), source, version)
            if found is not None:
                return found
        raise LogError(
            f"subject {draft.subject!r} is being changed by too many writers at once", hint="try again"
        )

    def _completed(self, given: SchemaRecord) -> SchemaRecord:
        """The schema with the newest version's metadata and rules where it brings none."""
        newest = next(reversed(self._ask(lambda state: state.versions(given.subject))), None)
        before = (newest.metadata, newest.rules) if newest else (None, None)
        return replace(given, metadata=kept(given.metadata, before[0]), rules=kept(given.rules, before[1]))

    def _write(self, draft: SchemaRecord, source: Source, version: int) -> SchemaRecord | None:
        """Write a schema as the version that it was made for; None if somebody else had that first."""
        self._refuse_if_incompatible(draft.subject, source)
        with self._registering:  # after the comparison, which may take long
            next_version, id = self._ask(
                lambda state: (state.next_version(draft.subject), state.id_of(draft))
            )
            if next_version != version:
                return None
            self._topic.append(replace(draft, version=version, id=id))
        written = self._ask(lambda state: state.every_version(draft.subject))
        return next((record for record in written if record.nonce == draft.nonce), None)

    def _find(self, given: SchemaRecord, *, deleted: bool = False) -> SchemaRecord | None:
        """The newest version of a schema, with any metadata and rules where none are given."""
        records = self._ask(lambda state: state.versions(given.subject, deleted=deleted))
        return next((record for record in reversed(records) if satisfies(record, given)), None)

    def _refuse_if_incompatible(self, subject: str, source: Source) -> None:
        """Compare a schema with those before it."""
        mode, earlier = self._ask(lambda state: (state.mode(subject), state.versions(subject)))
        problems = self._problems(source, earlier, mode)
        if problems:
            described = "; ".join(str(problem) for problem in problems)
            raise IncompatibleSchemaError(
                f"the schema may not follow the earlier ones of {subject!r} ({mode}): {described}",
                problems=tuple(problems),
            )

    def _problems(self, source: Source, earlier: list[SchemaRecord], mode: Mode) -> list[Problem]:
        if mode is Mode.NONE:
            return []
        first = 0 if mode.transitive else max(len(earlier) - 1, 0)
        counting = [self._source(each.kind, each.text, each.references) for each in earlier[first:]]
        found = self._judge.problems(source, counting, mode)
        return [replace(each, against=first + (each.against or 0)) for each in found]

    def check(
        self,
        subject: str,
        kind: SchemaKind,
        text: str,
        references: Sequence[Reference] = (),
        version: int | None = None,
    ) -> list[Problem]:
        """Say why a schema may not be registered; against one version if it is named, else by the mode."""
        self._topic.catch_up()
        source = self._source(kind, text, references)
        self._judge.canonical(source)  # also if there is nothing to compare it with
        mode, earlier = self._ask(lambda state: (state.mode(subject), state.versions(subject)))
        if version is not None:
            earlier = [self.version(subject, version)]
        return self._problems(source, earlier, mode)

    def _source(self, kind: SchemaKind, text: str, references: Sequence[Reference]) -> Source:
        """The schema with the texts of all it refers to."""
        found = self._ask(lambda state: state.texts(references)) if references else {}
        return Source(kind, text, tuple(found.items()))

    # Finding

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Return the subjects that have a schema."""
        self._topic.catch_up()
        return self._ask(lambda state: state.subjects(deleted=deleted))

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaRecord]:
        """Return a subject's schemas, oldest first."""
        self._topic.catch_up()
        found = self._ask(lambda state: state.versions(subject, deleted=deleted))
        if not found:
            raise UnknownSubjectError(f"subject {subject!r} not found", code=SUBJECT_NOT_FOUND)
        return found

    def version(self, subject: str, version: int | None = None, *, deleted: bool = False) -> SchemaRecord:
        """Return a version of a subject; the newest if none is named."""
        records = self.versions(subject, deleted=deleted)
        if version is None:
            return records[-1]
        found = next((record for record in records if record.version == version), None)
        if found is None:
            raise UnknownSubjectError(f"version {version} of {subject!r} not found", code=VERSION_NOT_FOUND)
        return found

    def lookup(
        self,
        subject: str,
        kind: SchemaKind,
        text: str,
        references: Sequence[Reference] = (),
        *,
        metadata: str | None = None,
        rules: str | None = None,
        deleted: bool = False,
    ) -> SchemaRecord:
        """Return the newest version under which a schema is registered, with this metadata and these rules.

        Where they are not given, any will do.
        """
        self.versions(subject, deleted=deleted)
        canonical = self._judge.canonical(self._source(kind, text, references))
        given = SchemaRecord(subject, 0, 0, kind, text, canonical, tuple(references), "", metadata, rules)
        found = self._find(given, deleted=deleted)
        if found is None:
            raise UnknownSubjectError(
                f"this schema is not registered under {subject!r}", code=SCHEMA_NOT_FOUND
            )
        return found

    def schema(self, id: int) -> SchemaRecord:
        """Return the schema of an id; deleted ones too, for messages of them may still be there."""
        found = self._ask(lambda state: state.by_id(id))
        if found is None:
            self._topic.catch_up()
            found = self._ask(lambda state: state.by_id(id))
        if found is None:
            raise UnknownSchemaError(f"no schema has the id {id}")
        return found

    def uses_of(self, id: int) -> list[SchemaRecord]:
        """Return the subjects and versions of an id."""
        self.schema(id)
        return self._ask(lambda state: state.uses_of(id))

    # What codecs ask

    def id_for(self, subject: str, kind: SchemaKind, text: str) -> int:
        """Return the id of a schema under a subject, registering it if it is new."""
        return self.numbered(subject, kind, lambda _: text).id

    def numbered(self, subject: str, kind: SchemaKind, text_after: TextAfter) -> NumberedSchema:
        """Return the schema that is made of a subject's earlier ones, registering it if it is new."""
        draft = SchemaRecord(subject, 0, 0, kind, "", "", nonce=new_id())
        record = self._register(draft, lambda earlier: text_after([*map(self.as_written, earlier)]))
        unmet = run_at_write(record.rules)
        if unmet:
            raise RulesError(
                f"subject {subject!r} has the rules {', '.join(unmet)}, which Penstock does not run",
                hint="write with Confluent's serializers, or register the schema with an empty ruleSet",
            )
        return NumberedSchema(record.id, record.text)

    def written(self, subject: str, id: int) -> WrittenSchema:
        """Return the schema that a message was written with, waiting for it if it is not there yet."""
        record = self._wait_for(id)
        versions = self._ask(lambda state: state.every_version(subject))
        version = next((each.version for each in versions if each.id == id), None)
        return replace(self.as_written(record), version=version)

    def as_written(self, record: SchemaRecord) -> WrittenSchema:
        """Return a record's schema with the texts of those it refers to."""
        references = self._source(record.kind, record.text, record.references).references
        return WrittenSchema(record.kind, record.text, record.version, references)

    def await_ids(self, ids: Collection[int]) -> None:
        """Wait until schemas are there, for all together no longer than for one; the others are missing."""
        deadline = time.monotonic() + self._patience
        missing = self._unknown(set(ids) - self._missing)
        while missing and time.monotonic() < deadline:
            time.sleep(0.2)
            missing = self._unknown(missing)
        self._note_missing(missing)

    def _unknown(self, ids: Collection[int]) -> set[int]:
        self._topic.catch_up()
        return self._ask(lambda state: {each for each in ids if state.by_id(each) is None})

    def _note_missing(self, ids: Collection[int]) -> None:
        kept = self._missing if len(self._missing) < _MOST_MISSING else set()
        self._missing = kept | set(ids)

    def _wait_for(self, id: int) -> SchemaRecord:
        """Wait for an id, once, and in vain for a few only in a while: anybody may make up ids."""
        began = time.monotonic()
        rested = len(self._in_vain) < _IN_VAIN or began - self._in_vain[0] > _REST * self._patience
        waits = id not in self._missing and rested
        while True:
            try:
                return self.schema(id)
            except UnknownSchemaError:
                now = time.monotonic()
                if not waits or now - began >= self._patience:
                    self._note_missing({id})
                    if waits:
                        self._in_vain.append(now)
                    raise
                time.sleep(0.2)

    # Modes and deleting

    def mode(self, subject: str | None = None) -> Mode:
        """Return the mode that counts for a subject, or for those that have none of their own."""
        self._topic.catch_up()
        return self._ask(lambda state: state.mode(subject))

    def own_mode(self, subject: str) -> Mode:
        """Return the mode that was set for a subject."""
        self._topic.catch_up()
        mode = self._ask(lambda state: state.own_mode(subject))
        if mode is None:
            raise UnknownSubjectError(
                f"subject {subject!r} has no compatibility mode of its own", code=NO_OWN_MODE
            )
        return mode

    def set_mode(self, mode: Mode | None, subject: str | None = None) -> None:
        """Set the mode of a subject, or of all; None takes a setting back."""
        self._topic.append(ModeRecord(subject, mode))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> list[int]:
        """Stop offering a version, or all of a subject; their schemas can still be read by id."""
        wanted = self.versions(subject, deleted=permanent)
        if version is not None:
            wanted = [self.version(subject, version, deleted=permanent)]
        deleted = self._ask(lambda state: [state.is_deleted(subject, each.version) for each in wanted])
        if permanent and not all(deleted):
            raise UnknownSubjectError(
                f"{subject!r} was not deleted yet",
                code=NOT_DELETED_YET,
                hint="delete it first, then permanently",
            )
        self._refuse_if_referred_to(wanted)
        for record in wanted:
            self._topic.append(DeleteRecord(subject, record.version, permanent))
        return [record.version for record in wanted]

    def _refuse_if_referred_to(self, wanted: list[SchemaRecord]) -> None:
        places = {(record.subject, record.version) for record in wanted}
        others = self._ask(lambda state: [each for name in state.subjects() for each in state.versions(name)])
        for record in others:
            if any((each.subject, each.version) in places for each in record.references):
                raise UnknownSubjectError(
                    f"{record.subject!r} version {record.version} refers to it", code=STILL_REFERRED_TO
                )
