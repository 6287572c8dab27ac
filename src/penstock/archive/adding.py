"""Adding an archive: what a topic has to be like so that nothing of it can be lost."""

from dataclasses import replace

from penstock.errors import ArchiveError
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.storage import open_storage
from penstock.settings import Settings

_DESCRIPTION = "archive.json"
FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


def add(
    topic: str,
    to: str,
    settings: Settings,
    *,
    connection: str | None = None,
    keep: str | None = None,
    every: str | None = None,
    retention_forever: bool = False,
    update: bool = False,
) -> Archive:
    """Declare the archive of a topic; from then on an `ArchiveRunner` moves what is old.

    A topic that was made again gets a folder of its own beside that of the former one. `update` changes
    `keep` and `every` of an archive that is there. `retention_forever` lets Kafka delete nothing by itself.
    """
    broker, known = Broker(settings), Declarations(settings)
    broker.topic(topic)
    begins = {number: first for number, (first, _) in broker.offsets(topic).items()}
    wanted = Archive(topic, to, broker.topic_ids([topic])[topic], connection, begins=begins)
    found = _updated(known.find(topic), wanted, settings, update=update)
    archive = replace(found, keep=keep or found.keep, every=every or found.every)
    _refuse_table(broker, topic)
    _see_to_retention(broker, topic, retention_forever)
    declare(archive, settings)
    return archive


def declare(archive: Archive, settings: Settings) -> None:
    """Write an archive down, first beside its files: who finds them without Kafka learns what they are."""
    open_storage(archive.address, settings, archive.connection).put(_DESCRIPTION, archive.to_json())
    Declarations(settings).put(archive)


def _updated(known: Archive | None, wanted: Archive, settings: Settings, *, update: bool) -> Archive:
    """What is to be written down; files that are there stay where they are."""
    if known is None or known.topic_id != wanted.topic_id:
        return _taken_up(wanted, settings)
    if (known.to, known.connection) != (wanted.to, wanted.connection):
        raise ArchiveError(
            f"topic {known.topic!r} is archived in {known.to}, not in {wanted.to}",
            hint="name that one; to move an archive, remove it, move its files, and add it again",
        )
    if not update:
        raise ArchiveError(
            f"topic {known.topic!r} has an archive already", hint="add --update to change --keep and --every"
        )
    return known


def _taken_up(wanted: Archive, settings: Settings) -> Archive:
    """An archive that was removed, and is added again, goes on with the files that are there."""
    found = open_storage(wanted.address, settings, wanted.connection).read(_DESCRIPTION)
    if found is None:
        return wanted
    former = Archive.from_json(found)
    return replace(wanted, begins=former.begins, lost=former.lost)


def _refuse_table(broker: Broker, topic: str) -> None:
    policy = broker.topic_config(topic).get("cleanup.policy", "delete")
    if "compact" in policy:
        raise ArchiveError(
            f"topic {topic!r} is compacted: it is a table, of which Kafka keeps the latest row of each key",
            hint="archive a topic of events; the history of a table is in the topic that it is made from",
        )


def _see_to_retention(broker: Broker, topic: str, forever: bool) -> None:
    """Kafka must not delete what was not archived: the archive deletes what it holds, by itself."""
    if forever:
        broker.configure(topic, FOREVER)
    limits = retention(broker, topic)
    if limits:
        raise ArchiveError(
            f"Kafka may delete records of {topic!r} before they are archived: {limits}",
            hint="add --retention-forever: the archive then deletes from Kafka what it holds for sure and is "
            'older than --keep; a declared topic needs retention="forever"',
        )


def retention(broker: Broker, topic: str) -> str:
    """Return by what settings Kafka deletes records of a topic by itself; nothing if it does not."""
    found = broker.topic_config(topic)
    return ", ".join(f"{name}={found[name]}" for name in FOREVER if found.get(name, "-1") != "-1")
