"""Whether the log is whole: what is made of it from its beginning would lack what was deleted."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from penstock.errors import DataLossError
from penstock.log import Broker, Table
from penstock.log.archive.tiers import Tiers
from penstock.pipeline.flow import Flow
from penstock.settings import Settings

IN_KAFKA = {"startingOffsets": "earliest"}  # as far back as Kafka goes, though an archive goes further


def refuse_lost(
    flow: Flow, settings: Settings, until: datetime | None = None, *, partial: bool = False
) -> None:
    """Refuse a log that is not enough to make everything of: events were deleted, or compacted away."""
    if partial:
        return
    broker, tiers = Broker(settings), Tiers(settings)
    for topic in (*flow.reads.values(), *flow.looks_up.values()):
        policy = broker.topic(topic.name).config.get("cleanup.policy", "delete")
        snapshots = flow.projection is not None  # its records behind a snapshot are enough
        if "delete" in policy and not snapshots and not tiers.is_whole(topic.name):
            raise DataLossError(
                f"the oldest events of {topic.name!r} were deleted: what is made of the log would lack them",
                hint="an archive of the topic would have kept them; do without them: --partial",
            )
        if "compact" in policy:
            is_table = isinstance(topic, Table)
            _refuse_compacted(topic.name, broker.topic(topic.name).config, until, is_table=is_table)


def _refuse_compacted(
    name: str, config: Mapping[str, str], until: datetime | None, *, is_table: bool
) -> None:
    """A compacted topic has every change for as long as its lag; behind it, the last one of each key."""
    if not is_table:
        raise DataLossError(
            f"{name!r} is compacted, and read as a stream of events: those of before may be gone",
            hint="read it as a Table, or do without them: --partial",
        )
    lag = timedelta(milliseconds=int(config.get("min.compaction.lag.ms", "0")))
    if until is not None and until < datetime.now(UTC) - lag:
        raise DataLossError(
            f"{name!r} keeps every change for {lag} (min.compaction.lag.ms), and {until} is longer ago: "
            "values of then may be compacted away",
            hint="bring the changes back from an archive of the topic, or choose a later moment",
        )
