"""Where a capture writes: the topics of its tables, and its ledger, in one transaction."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cached_property

from penstock.capture.avro import AvroRecords
from penstock.capture.capture import LARGEST, Capture
from penstock.capture.debezium_records import DebeziumRecords, SourceBlocks
from penstock.capture.live_keys import live_keys
from penstock.capture.lost import again
from penstock.capture.outbox import OutboxRecords, outbox_message
from penstock.capture.pgoutput import Message as DatabaseMessage
from penstock.capture.position import EventTopic, Position, TableProgress
from penstock.capture.records import FlatRecords, Records
from penstock.capture.store import POSITION, Store
from penstock.capture.tables import TableShape
from penstock.capture.transactions import Transactions
from penstock.errors import CaptureError
from penstock.log import Broker
from penstock.log.topic import DEAD_LETTERS
from penstock.log.transactional_writer import Message, TransactionalWriter
from penstock.points import reach
from penstock.registry import Registry
from penstock.schemas.compatibility import Mode
from penstock.settings import Settings

Report = Callable[[Position], None]
_TRANSACTION = timedelta(minutes=10)
# Of an outbox: nobody writes its events again.
_EVENTS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": LARGEST}


class Output:
    """Writes records and positions; opening it shuts out an earlier writer of the same capture."""

    def __init__(self, settings: Settings, capture: Capture, source: SourceBlocks, report: Report) -> None:
        self.capture, self._settings, self._source = capture, settings, source
        self._report = report
        self._broker = Broker(settings)
        self._known: set[str] = set()
        self._compacted: dict[str, bool] = {}
        self._events: dict[str, EventTopic] = {}
        identity = capture.identity(settings.namespace)
        ledger, timeout = Store(settings).topic(capture.name), _TRANSACTION // timedelta(milliseconds=1)
        roomy = replace(settings, kafka={"message.max.bytes": LARGEST, **settings.kafka})
        self._writer = TransactionalWriter(roomy, identity.transactional_id(), ledger, timeout)

    def position(self) -> Position | None:
        """Return what the ledger says; the topics of events in it are those to compare with from now on."""
        found = self._writer.last_record(POSITION)
        position = Position.from_json(found) if found else None
        self._events = dict(position.events) if position else {}
        return position

    def write(self, messages: Iterable[Message], position: Position) -> None:
        """Write records and the position behind them: both are there, or neither."""
        name = self.capture.name
        position = replace(position, events=dict(self._events))
        self._writer.write(
            messages, (POSITION, position.to_json()), lambda: reach("capture.before-commit", name)
        )
        reach("capture.after-commit", name)
        self._report(position)

    def prepare(self, shape: TableShape) -> None:
        """Make a table's topic unless it is there."""
        topic = self.capture.topic(shape.path)
        self._ensure(topic, self.capture.topic_config(keyed=bool(shape.key)))
        if self.capture.format == "debezium-avro":
            for subject in (f"{topic}-key", f"{topic}-value"):
                self._take_any_shape(subject)

    def _take_any_shape(self, subject: str) -> None:
        """A column may be given any other type, and the log can't refuse it: it has happened."""
        if subject not in self._schemas.subjects():
            self._schemas.set_mode(Mode.NONE, subject)

    def records(self, shape: TableShape) -> Records:
        """Return what makes the records of a table of this shape."""
        capture, topic = self.capture, self.capture.topic(shape.path)
        if capture.outbox is not None and shape.path == capture.outbox.table:
            return OutboxRecords(capture.outbox, shape, topic, self._ensure_for_events)
        if capture.format == "flat-json":
            if not shape.key:
                raise CaptureError(
                    f"table {shape.path!r} has no primary key, and flat rows need one",
                    hint="add a key, or capture it as debezium-json",
                )
            return FlatRecords(topic, shape, capture.encoding)
        source = self._source.of_table(capture.prefix or capture.name, shape)
        made = DebeziumRecords(topic, shape, capture.encoding, source)
        if capture.format == "debezium-avro":
            return AvroRecords(made, shape, capture.encoding, self._schemas)
        return made

    def transactions(self) -> Transactions | None:
        """Return what writes of transactions, if that is wanted; its topic is made."""
        if not self.capture.transactions:
            return None
        self._ensure(self.capture.topic("transaction"))
        avro = self.capture.format == "debezium-avro"
        return Transactions(self.capture.topic("transaction"), self._schemas if avro else None)

    @cached_property
    def _schemas(self) -> Registry:
        return Registry(self._settings)

    def close(self) -> None:
        """Let go of the registry, if it was asked."""
        if "_schemas" in self.__dict__:
            self._schemas.close()

    def message(self, message: DatabaseMessage) -> list[Message]:
        """Return the event of a message that an application wrote, if its prefix is captured."""
        if message.prefix not in self.capture.messages:
            return []
        source = self.capture.topic("messages")
        return [outbox_message(source, message.content, self._ensure_for_events)]

    def refuse_records(self) -> None:
        """Without a position, records that are there are somebody's else, or their ledger was lost."""
        for path in self.capture.tables:
            committed = self._broker.committed_end(self.capture.topic(path))
            if any(end > 0 for end in committed.values()):
                raise CaptureError(
                    f"topic {self.capture.topic(path)!r} has records, and the capture has no position",
                    hint="was it removed before? delete the topic, or add it with another --prefix",
                )

    def forget_event_topics(self) -> None:
        """Take the topics of events as they are: a new beginning does not go on with what is in them."""
        self._events = {}

    def topic_ids(self) -> dict[str, str]:
        """Return the ids of the tables' topics."""
        names = {self.capture.topic(path): path for path in self.capture.tables}
        return {names[name]: id for name, id in self._broker.topic_ids(names).items()}

    def refuse_other_topics(self, position: Position) -> None:
        """Refuse topics that were made again, which lack what was written, or have other partitions."""
        for path, id in self.topic_ids().items():
            topic = self.capture.topic(path)
            if position.topics.get(path, id) != id:
                raise CaptureError(
                    f"topic {topic!r} was deleted and made again: what the capture wrote is gone",
                    hint=f"`penstock capture run {self.capture.name} --snapshot-again` writes all rows again",
                )
            found = self._broker.partitions([topic])[topic]
            if found != self.capture.partitions:
                raise CaptureError(
                    f"topic {topic!r} has {found} partitions, {self.capture.partitions} declared: keys would "
                    "have records in two of them",
                    hint="declare a capture of another name or --prefix with the partitions wanted",
                )
        for name, now in self._event_topics(self._events).items():
            self._refuse_other_events(name, now)

    def _event_topics(self, names: Iterable[str]) -> dict[str, EventTopic]:
        """Return those of the topics that are there, as they are now."""
        ids = self._broker.topic_ids(names)
        counts = self._broker.partitions(ids) if ids else {}
        return {name: EventTopic(id, counts[name]) for name, id in ids.items() if name in counts}

    def _refuse_other_events(self, topic: str, found: EventTopic) -> None:
        known = self._events.setdefault(topic, found)
        if found.id != known.id:
            raise CaptureError(
                f"topic {topic!r} was deleted and made again: the events that the capture wrote are gone",
                hint=again(self.capture),
            )
        if found.partitions != known.partitions:
            raise CaptureError(
                f"topic {topic!r} has {found.partitions} partitions, it had {known.partitions}: keys would "
                "have events in two of them",
                hint=f"write to a topic of another name; or delete it, and {again(self.capture)}",
            )

    def ends(self, path: str) -> dict[int, int]:
        """Return where a table's topic ends, with what was committed just now and is not marked so yet."""
        offsets = self._broker.offsets(self.capture.topic(path))
        return {partition: end for partition, (_, end) in offsets.items()}

    def live_keys(self, path: str, progress: TableProgress | None, *, swept: bool = False) -> Iterator[bytes]:
        """Yield the keys of which a topic has rows; if `swept`, those that a snapshot did not find."""
        start = progress.emptied if progress else {}
        older_than = progress.sweep if progress and swept else None
        return live_keys(self._settings, self.capture.topic(path), start, older_than)

    def _ensure_for_events(self, topic: str, key: bytes | None) -> str | None:
        """Make the topic of an application's event; say why, if it must not or can't be written there.

        Whoever may insert a row chooses the topic: not ours, and none of the captured tables.
        """
        if topic.startswith("_") or topic in {self.capture.topic(path) for path in self.capture.tables}:
            return f"{topic!r} is not for events of applications"
        self._ensure(topic)
        if topic not in self._compacted:
            self._compare(topic)
            policy = self._broker.topic(topic).config.get("cleanup.policy", "")
            self._compacted[topic] = "compact" in policy
        if key is None and self._compacted[topic]:
            return f"{topic!r} is compacted and takes no event without a key"
        return None

    def _compare(self, topic: str) -> None:
        """Compare a topic with what it was when events were first written to it; dead letters may go."""
        if not topic.endswith(DEAD_LETTERS):
            for name, found in self._event_topics([topic]).items():
                self._refuse_other_events(name, found)

    def _ensure(self, topic: str, config: dict[str, str] | None = None) -> None:
        if topic not in self._known:
            self._broker.ensure(topic, self.capture.partitions, _EVENTS if config is None else config)
            self._known.add(topic)
