"""Every error Penstock raises, sorted by what the reader can do about it.

PenstockError
├── TryAgainError              it may work later: the other side was not there in time
│   ├── ServiceError           a local service did not start or did not answer
│   ├── LogError               the broker refused or did not answer
│   ├── DeliveryError          events were handed over but not acknowledged
│   ├── LeaseError             a queue's event was decided on after its lease was over
│   ├── SinkError              a sink did not take a batch
│   ├── SourceError            a captured database ended the stream, or did not answer
│   ├── StorageError           an archive's folder or bucket did not answer
│   ├── StoreError             the database of an event store did not answer
│   ├── ConflictError          a stream has other events than were expected
│   ├── StaleViewError         a view has not come as far as was waited for
│   ├── EngineError            Spark's Java process has ended: start the run again
│   └── BufferFullError        the producer's buffer is full and the policy says raise
├── ConfigurationError         fix the settings, the machine or the declaration
│   ├── SettingsError          penstock.toml or a PENSTOCK_* variable
│   ├── AuthenticationError    the broker does not let the client in, or is not trusted itself
│   ├── AuthorizationError     a permission that the broker's ACLs don't give
│   ├── SetupError             Java, jars or a program is missing or wrong
│   ├── EventTypeError         an event class that can't be described
│   ├── TopicError             a topic that can't be as declared
│   ├── InvalidSchemaError     a text that is not a schema
│   │   └── CostlySchemaError  one that takes too long, or too much memory, to be judged
│   ├── IncompatibleSchemaError  a schema that may not follow the earlier ones
│   ├── RulesError             a subject's rules, such as encryption, that can't be followed
│   ├── UnknownSubjectError    a subject, version or setting that the registry does not have
│   ├── GroupError             a group that can't be changed as asked
│   ├── FlowError              a flow that can't be as described, or not in its mode
│   ├── TargetError            a table that can't take a flow's results
│   ├── DataLossError          events were deleted before a flow read them
│   ├── CaptureError           a capture that can't be as described
│   │   ├── ChangesLostError   its slot is lost, or does not fit its position
│   │   └── CaptureHeldError   another process runs it
│   ├── ReplicaError           a replica that can't be as described, or can't go on
│   │   └── ReplicaHeldError   another process runs it
│   ├── ArchiveError           a topic's archive that can't be as described, or is damaged
│   ├── InletError             an inlet that can't be as described
│   ├── ErasedError            a subject whose key was deleted: nothing personal is written of it
│   ├── LedgerError            a sink's ledger that doesn't fit the flow's checkpoint
│   └── FencedError            another writer has taken over the sink
├── RefusedError               a command that the state does not allow, with its reason
├── RepeatedCommandError       a command that was done before, with its events
├── DataError                  fix the data
│   ├── EventError             a value that does not fit its event class
│   ├── DecodeError            bytes that are not the event they should be
│   └── UnknownSchemaError     an id that the registry does not know
└── InternalError              give up, and report it: Penstock broke a guarantee of its own
"""

from typing import ClassVar


class PenstockError(Exception):
    """What happened, the value seen and what to do next; `id` is stable across releases."""

    id: ClassVar[str] = "penstock"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class TryAgainError(PenstockError):
    """It may work later: the other side was not there in time."""

    id = "try-again"
    exit_code = 75


class ServiceError(TryAgainError):
    """A local service did not start or did not answer."""

    id = "try-again.service"


class LogError(TryAgainError):
    """The broker refused or did not answer."""

    id = "try-again.log"


class DeliveryError(TryAgainError):
    """Events that were sent but never acknowledged; `failures` says which and why."""

    id = "try-again.delivery"

    def __init__(self, message: str, *, failures: tuple[object, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.failures = failures


class LeaseError(TryAgainError):
    """A queue's event was decided on after its lease was over."""

    id = "try-again.lease"


class SinkError(TryAgainError):
    """A sink did not take a batch."""

    id = "try-again.sink"


class SourceError(TryAgainError):
    """A captured database ended the stream, or did not answer."""

    id = "try-again.source"


class StorageError(TryAgainError):
    """An archive's folder or bucket did not answer."""

    id = "try-again.storage"


class StoreError(TryAgainError):
    """The database of an event store did not answer."""

    id = "try-again.store"


class ConflictError(TryAgainError):
    """A stream that has not the `expected` version; `actual` is None where nobody could look."""

    id = "try-again.conflict"

    def __init__(self, category: str, stream: str, expected: int, actual: int | None) -> None:
        seen = "another one" if actual is None else str(actual)
        super().__init__(
            f"{category} {stream!r} has version {seen}, expected {expected}",
            hint="load it, decide again and append to what is there",
        )
        self.category, self.stream, self.expected, self.actual = category, stream, expected, actual


class StaleViewError(TryAgainError):
    """A view has not come as far as was waited for."""

    id = "try-again.stale-view"


class EngineError(TryAgainError):
    """Spark's Java process has ended: start the run again."""

    id = "try-again.engine"
    exit_code = 69


class BufferFullError(TryAgainError):
    """The producer's buffer is full and the policy says raise."""

    id = "try-again.buffer-full"


class ConfigurationError(PenstockError):
    """Something in the settings, the machine or a declaration has to be mended."""

    id = "configuration"
    exit_code = 78


class SettingsError(ConfigurationError):
    """Something in `penstock.toml`, or in a `PENSTOCK_*` variable, is wrong."""

    id = "configuration.settings"


class AuthenticationError(ConfigurationError):
    """The broker does not let the client in, or is not trusted itself."""

    id = "configuration.authentication"


class AuthorizationError(ConfigurationError):
    """A permission that the broker's ACLs don't give."""

    id = "configuration.authorization"


class SetupError(ConfigurationError):
    """Java, jars or a program is missing or wrong."""

    id = "configuration.setup"


class EventTypeError(ConfigurationError):
    """An event class that can't be described."""

    id = "configuration.event-type"


class TopicError(ConfigurationError):
    """A topic that can't be as declared."""

    id = "configuration.topic"


class InvalidSchemaError(ConfigurationError):
    """A text that is not a schema of its kind; `where` is the place in it, as a path."""

    id = "configuration.invalid-schema"

    def __init__(self, message: str, *, where: str = "", hint: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.where = where


class CostlySchemaError(InvalidSchemaError):
    """A schema that takes too long, or too much memory, to be judged."""

    id = "configuration.invalid-schema.costly"


class IncompatibleSchemaError(ConfigurationError):
    """A registration that was refused; `problems` name the fields and the rules they break."""

    id = "configuration.incompatible-schema"

    def __init__(self, message: str, *, problems: tuple[object, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class RulesError(ConfigurationError):
    """A subject's rules, such as encryption, that can't be followed."""

    id = "configuration.rules"


class UnknownSubjectError(ConfigurationError):
    """Something the registry does not have; `code` is the number Confluent's registry gives it."""

    id = "configuration.unknown-subject"

    def __init__(self, message: str, *, code: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class GroupError(ConfigurationError):
    """A group that can't be changed as asked."""

    id = "configuration.group"


class FlowError(ConfigurationError):
    """A flow that can't be as it is described, or not in its mode."""

    id = "configuration.flow"


class TargetError(ConfigurationError):
    """A table that can't take a flow's results."""

    id = "configuration.target"


class DataLossError(ConfigurationError):
    """Events were deleted before a flow read them."""

    id = "configuration.data-loss"
    exit_code = 66


class LedgerError(ConfigurationError):
    """A sink's ledger that doesn't fit the flow's checkpoint."""

    id = "configuration.ledger"


class ErasedError(ConfigurationError):
    """A subject's key was deleted: nothing personal is written of it."""

    id = "configuration.erased"

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"the subject {subject!r} was erased, and nothing personal is written of it any more",
            hint="use another name for a new one",
        )
        self.subject = subject


class CaptureError(ConfigurationError):
    """A capture that can't be as described."""

    id = "configuration.capture"


class CaptureHeldError(CaptureError):
    """Another process runs the capture."""

    id = "configuration.capture.held"


class ChangesLostError(CaptureError):
    """A capture's slot is lost, or does not fit its position."""

    id = "configuration.capture.changes-lost"


class ReplicaError(ConfigurationError):
    """A replica that can't be as described, or can't go on."""

    id = "configuration.replica"


class ReplicaHeldError(ReplicaError):
    """Another process runs the replica."""

    id = "configuration.replica.held"


class ArchiveError(ConfigurationError):
    """A topic's archive that can't be as described, or is damaged."""

    id = "configuration.archive"


class InletError(ConfigurationError):
    """An inlet that can't be as described."""

    id = "configuration.inlet"


class FencedError(ConfigurationError):
    """Another writer has taken over the sink."""

    id = "configuration.fenced"


class RefusedError(PenstockError):
    """A command that was refused; `refusal` says why, as a value."""

    id = "refused"
    exit_code = 2

    def __init__(self, command: str, refusal: object) -> None:
        super().__init__(f"{command} was refused: {refusal}")
        self.refusal = refusal


class RepeatedCommandError(PenstockError):
    """A command that was done before; `records` are what it led to."""

    id = "repeated-command"

    def __init__(self, command: str, records: tuple[object, ...]) -> None:
        super().__init__(f"command {command!r} was done before")
        self.command, self.records = command, records


class DataError(PenstockError):
    """The data have to be mended."""

    id = "data"
    exit_code = 65


class EventError(DataError):
    """A value that does not fit its field."""

    id = "data.event"

    def __init__(self, message: str, *, field: str, seen: object, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.seen = seen


class DecodeError(DataError):
    """Bytes that are not the event they should be."""

    id = "data.decode"


class UnknownSchemaError(DataError):
    """An id that the registry does not know."""

    id = "data.unknown-schema"


class InternalError(PenstockError):
    """Penstock broke a guarantee of its own: give up, and report it."""

    id = "internal"
    exit_code = 70
