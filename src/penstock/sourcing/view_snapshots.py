"""Snapshots of a view's state with its position: a rebuild is the snapshot and the events behind it."""

import errno
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import ConfigurationError
from penstock.events import new_id
from penstock.log import Broker, Topic
from penstock.process import read
from penstock.settings import Settings
from penstock.sourcing.fingerprint import fingerprint
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.view import View

Positions = dict[int, int]  # by partition, the offset that comes next
_MANIFEST, _STATE, _KEPT = "snapshot.json", "state", 2
_ABANDONED = 86_400.0  # seconds


@dataclass(frozen=True)
class ViewSnapshots:
    """The snapshots of one view over one topic, in a folder that Spark's workers share.

        snapshots = ViewSnapshots(balances, topic_of("bank", "account"), Path("snapshots/balances"))
        snapshots.take(spark, settings)
        snapshots.current(spark, settings)  # the newest snapshot, and what came after it

    A snapshot is good for the view's code and the topic that it was made of; another one is not used. The
    two newest are kept. A kill leaves the snapshot whole or not there.
    """

    view: View
    topic: Topic[Recorded]
    folder: Path

    def take(self, spark: SparkSession, settings: Settings) -> Positions:
        """Keep the view's state as it is now, and return the position of it."""
        ends = Broker(settings).committed_end(self.topic.name)
        draft = self.folder / f"draft-{new_id()}"
        state = self._state(spark, settings, ends)
        state.write.parquet(str(draft / _STATE))
        manifest = {"tag": self._tag, "topic": self._topic_id(settings), "positions": ends}
        _write_whole(draft / _MANIFEST, json.dumps(manifest))
        self._name(draft)
        self._remove_old()
        return ends

    def _name(self, draft: Path) -> None:
        """Give a draft the next number; where somebody else had the same in mind, the one after."""
        for _ in range(100):
            number = max((int(each.name) for each in self._all()), default=0) + 1
            try:
                draft.rename(self.folder / str(number))
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        raise ConfigurationError(f"too many take snapshots in {self.folder.name!r} at once")

    def current(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """Return the view as it is now: the newest snapshot, merged with the events behind it."""
        ends = Broker(settings).committed_end(self.topic.name)
        return self.view.finished(self._state(spark, settings, ends))

    def _state(self, spark: SparkSession, settings: Settings, ends: Positions) -> DataFrame:
        found = self._newest(settings)
        if found is None:
            return self.view.state(self.view.rows(self._records(spark, settings, None, ends)))
        folder, positions = found
        start = {each: positions.get(each, 0) for each in ends}
        tail = self.view.state(self.view.rows(self._records(spark, settings, start, ends)))
        kept = spark.read.parquet(str(folder / _STATE))
        return self.view.merged(kept.unionByName(tail))

    def _records(
        self, spark: SparkSession, settings: Settings, start: Positions | None, ends: Positions
    ) -> DataFrame:
        name = self.topic.name
        begin = None if start is None else {name: start}
        return read(spark, self.topic, settings, start=begin, end={name: ends})

    def _newest(self, settings: Settings) -> tuple[Path, Positions] | None:
        for folder in reversed(self._all()):
            manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text())
            if manifest["tag"] == self._tag and manifest["topic"] == self._topic_id(settings):
                return folder, {int(number): at for number, at in manifest["positions"].items()}
        return None

    def _all(self) -> list[Path]:
        """Return the folders of snapshots, the newest last."""
        found = [each for each in self.folder.glob("*") if each.name.isdigit()]
        return sorted(found, key=lambda each: int(each.name))

    def _remove_old(self) -> None:
        """Remove old snapshots, and drafts that nobody is at any more."""
        drafts = [each for each in self.folder.glob("draft-*") if _age(each) > _ABANDONED]
        for each in [*self._all()[:-_KEPT], *drafts]:
            shutil.rmtree(each, ignore_errors=True)

    @property
    def _tag(self) -> str:
        view = self.view
        return fingerprint(view.rows, view.keys, dict(view.columns), view.time, view.order)

    def _topic_id(self, settings: Settings) -> str:
        return Broker(settings).topic_ids([self.topic.name])[self.topic.name]


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _write_whole(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
