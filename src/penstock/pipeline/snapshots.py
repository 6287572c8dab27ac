"""Snapshots of a projection's state with its position in a topic: the rest is the events behind it."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from penstock.events import new_id
from penstock.pipeline.folder import Folder
from penstock.pipeline.projection import Projection
from penstock.points import reach

Positions = Mapping[int, int]  # by partition, the offset that comes next
_MANIFEST, _STATE, _KEPT = "snapshot.json", "state", 2
_ABANDONED = 86_400.0  # seconds


@dataclass(frozen=True)
class Snapshot:
    """A state: of which code, of which topic by its id, up to where, and in which folder."""

    tag: str
    topic: str
    positions: Positions
    state: str

    def fits(self, tag: str, topic: str, ends: Positions) -> bool:
        """Whether a projection can go on from it to some ends."""
        reached = all(at <= ends.get(number, -1) for number, at in self.positions.items())
        return (self.tag, self.topic) == (tag, topic) and reached


class SnapshotStore:
    """Keeps the two newest snapshots in a folder.

    The manifest is written last: a kill leaves a snapshot whole or not there.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._folder = spark, Folder(spark, path)

    def put(
        self,
        state: DataFrame,
        tag: str,
        topic: str,
        positions: Positions,
        before_commit: Callable[[], None] = lambda: None,
    ) -> Snapshot:
        """Keep a state; `before_commit` is called when it is computed, and is no snapshot yet."""
        name = new_id()
        made = Snapshot(tag, topic, positions, f"{self._folder.path}/{name}/{_STATE}")
        state.write.parquet(made.state)
        before_commit()
        reach("snapshot.written", self._folder.path)
        manifest = {"tag": tag, "topic": topic, "positions": dict(positions)}
        self._folder.write(f"{name}/{_MANIFEST}", json.dumps(manifest))
        self._remove_old()
        return made

    def newest(self, tag: str, topic: str, ends: Positions) -> Snapshot | None:
        """Return the snapshot that is furthest on of those that fit; None if there is none."""
        fit = [each for each in self._all().values() if each.fits(tag, topic, ends)]
        return max(fit, key=_reached, default=None)

    def state_behind(
        self,
        snapshot: Snapshot | None,
        projection: Projection,
        records: Callable[[Positions | None], DataFrame],
    ) -> DataFrame:
        """Return a snapshot's state, merged with what the records from its positions on come to."""
        if snapshot is None:
            return projection.state(records(None))
        fresh = projection.state(records(snapshot.positions))
        return projection.merged(self._spark.read.parquet(snapshot.state).unionByName(fresh))

    def _all(self) -> dict[str, Snapshot]:
        """The snapshots by the names of their folders."""
        found = {name: self._folder.read(f"{name}/{_MANIFEST}") for name in self._folder.ages(time.time())}
        return {name: self._parsed(name, text) for name, text in found.items() if text is not None}

    def _parsed(self, name: str, manifest: str) -> Snapshot:
        found = json.loads(manifest)
        positions = {int(number): at for number, at in found["positions"].items()}
        return Snapshot(found["tag"], found["topic"], positions, f"{self._folder.path}/{name}/{_STATE}")

    def _remove_old(self) -> None:
        """Remove all but the newest, and what nobody has completed for a day."""
        whole, ages = self._all(), self._folder.ages(time.time())
        newest = sorted(whole)[-_KEPT:]  # their names are in the order of time
        abandoned = {name for name, age in ages.items() if name not in whole and age > _ABANDONED}
        for name in {*whole} - {*newest} | abandoned:
            self._folder.remove(name)


def _reached(snapshot: Snapshot) -> int:
    return sum(snapshot.positions.values())
