"""Adding an archive: what a topic has to be like so that nothing of it can be lost."""

from dataclasses import replace

from penstock.errors import ArchiveError
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.storage import open_storage
from penstock.settings import Settings

FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


def add(
    topic: str,
    to: str,
    settings: Settings,
    *,
    connection: str | None = None,
    keep: str = "7 days",
    every: str = "10 minutes",
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
    wanted = Archive(topic, to, broker.topic_ids([topic])[topic], connection, keep, every, begins=begins)
    archive = _updated(known.find(topic), wanted, update=update)
    _refuse_table(broker, topic)
    _see_to_retention(broker, topic, retention_forever)
    # Who finds the files without Kafka learns from it what they are; and it shows whether they can be made.
    open_storage(archive.address, settings, connection).put("archive.json", archive.to_json())
    known.put(archive)
    return archive


def _updated(known: Archive | None, wanted: Archive, *, update: bool) -> Archive:
    """What is to be written down; files that are there stay where they are."""
    if known is None or known.topic_id != wanted.topic_id:
        return wanted
    if (known.to, known.connection) != (wanted.to, wanted.connection):
        raise ArchiveError(
            f"topic {known.topic!r} is archived in {known.to}, not in {wanted.to}",
            hint="name that one; to move an archive, remove it, move its files, and add it again",
        )
    if not update:
        raise ArchiveError(
            f"topic {known.topic!r} has an archive already", hint="add --update to change --keep and --every"
        )
    return replace(known, keep=wanted.keep, every=wanted.every)


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
