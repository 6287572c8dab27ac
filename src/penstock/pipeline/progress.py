"""The progress store: what every batch of every flow took in, how long it took, and its watermark."""

import json
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

from penstock.documents import JsonObject
from penstock.log.ledger import Offsets
from penstock.pipeline.bottleneck import Bottleneck, bottleneck

_TABLE = """
create table if not exists progress (
    pipeline text not null, flow text not null, run text not null, batch integer not null,
    at text not null, rows integer not null, seconds real not null, watermark text, details text not null,
    primary key (pipeline, flow, run, batch)
)"""
_KEPT = 10_000  # batches of a flow


@dataclass(frozen=True)
class Progress:
    """One batch of a flow; `details` is Spark's own report of it, and how long the sink took."""

    pipeline: str
    flow: str
    run: str
    batch: int
    at: str
    rows: int
    seconds: float
    watermark: str | None
    details: JsonObject

    @classmethod
    def of(cls, pipeline: str, flow: str, report: JsonObject) -> "Progress":
        """Read Spark's report of a batch."""
        return cls(
            pipeline,
            flow,
            report["runId"],
            report["batchId"],
            report["timestamp"],
            report["numInputRows"],
            report.get("batchDuration", 0) / 1000,
            report.get("eventTime", {}).get("watermark"),
            report,
        )

    @property
    def bottleneck(self) -> Bottleneck | None:
        """What limits the flow; None if nothing waits, or if Spark writes its results by itself."""
        return bottleneck(self.details)

    def __str__(self) -> str:
        said = f"batch {self.batch}: {self.rows:,} rows in {self.seconds:.2f} s"
        return said if self.bottleneck is None else f"{said}, {self.bottleneck}"

    @property
    def end(self) -> Offsets:
        """Where reading stands after the batch."""
        found: dict[str, dict[int, int]] = {}
        for source in self.details["sources"]:
            offsets = source.get("endOffset")
            for topic, partitions in (offsets if isinstance(offsets, dict) else {}).items():
                if isinstance(partitions, dict):  # those of files are no offsets of a log
                    found[topic] = {int(number): offset for number, offset in partitions.items()}
        return found


class ProgressStore:
    """Keeps the last batches of each flow in a SQLite file, which any tool can read while flows run."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, timeout=30)
        self._database.row_factory = sqlite3.Row
        self._database.execute("pragma journal_mode=wal")
        self._database.execute(_TABLE)

    def add(self, progress: Progress) -> None:
        """Keep a batch; the oldest ones beyond the limit go."""
        row = (*list(vars(progress).values())[:-1], json.dumps(progress.details))
        with self._lock, self._database:
            self._database.execute("insert or replace into progress values (?,?,?,?,?,?,?,?,?)", row)
            if progress.batch % 1000 == 0:
                self._prune(progress)

    def _prune(self, progress: Progress) -> None:
        self._database.execute(
            "delete from progress where pipeline = ? and flow = ? and rowid not in "
            "(select rowid from progress where pipeline = ? and flow = ? order by at desc limit ?)",
            (progress.pipeline, progress.flow, progress.pipeline, progress.flow, _KEPT),
        )

    def recent(self, pipeline: str, flow: str, limit: int = 100) -> list[Progress]:
        """Return the last batches of a flow, the newest first."""
        with self._lock:
            rows = self._database.execute(
                "select * from progress where pipeline = ? and flow = ? order by at desc, batch desc limit ?",
                (pipeline, flow, limit),
            ).fetchall()
        return [Progress(**{**dict(row), "details": json.loads(row["details"])}) for row in rows]

    def close(self) -> None:
        self._database.close()
