"""Snapshots of a view's state with its position: what it is now is the snapshot and the events behind it."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from penstock.log import Broker, Topic
from penstock.pipeline.snapshots import Positions, SnapshotStore
from penstock.process import read
from penstock.settings import Settings
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.view import View


@dataclass(frozen=True)
class ViewSnapshots:
    """The snapshots of one view over one topic, in a folder that Spark's workers share.

        snapshots = ViewSnapshots(balances, topic_of("bank", "account"), Path("snapshots/balances"))
        snapshots.take(spark, settings)
        snapshots.current(spark, settings)  # the newest snapshot, and what came after it

    A snapshot is good for the view's code and the topic that it was made of; another one is not used. The
    two newest are kept. A flow that is a view has snapshots of its own, with which its rebuilds begin.
    """

    view: View
    topic: Topic[Recorded]
    folder: Path

    def take(self, spark: SparkSession, settings: Settings) -> Positions:
        """Keep the view's state as it is now, and return the position of it."""
        ends, id = self._present(settings)
        self._store(spark).put(self._state(spark, settings, ends, id), self.view.tag, id, ends)
        return ends

    def current(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """Return the view as it is now: the newest snapshot, merged with the events behind it."""
        return self.view.finished(self._state(spark, settings, *self._present(settings)))

    def _state(self, spark: SparkSession, settings: Settings, ends: Positions, id: str) -> DataFrame:
        def records(since: Positions | None) -> DataFrame:
            start = None if since is None else {self.topic.name: {**dict.fromkeys(ends, 0), **since}}
            until = {self.topic.name: ends}
            return read(spark, self.topic, settings, start=start, end=until, ordered=False)

        store = self._store(spark)
        return store.state_behind(store.newest(self.view.tag, id, ends), self.view, records)

    def _present(self, settings: Settings) -> tuple[Positions, str]:
        """Where the topic ends, and which one it is."""
        broker, name = Broker(settings), self.topic.name
        return broker.committed_end(name), broker.topic_ids([name])[name]

    def _store(self, spark: SparkSession) -> SnapshotStore:
        return SnapshotStore(spark, str(self.folder))
