"""A table kept in shape: small files made one, and files removed that no reader needs any more."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.durations import duration
from penstock.errors import SinkError
from penstock.targets.lake.delta import ConflictError, asking
from penstock.targets.lake.table import DeclaredTable

if TYPE_CHECKING:
    from deltalake import DeltaTable

_log = logging.getLogger("penstock")
_IN_FLIGHT = 1  # hours, within which a file that is in no commit may be in one yet


def maintain(table: DeclaredTable, delta: "DeltaTable") -> None:
    """Compact and clean up; the batch is written, whatever becomes of this."""
    try:
        with asking("compact it", table.root):
            delta.update_incremental()
            done = delta.optimize.compact()
            _log.info("%s: %d files made of %d", table.path, done["numFilesAdded"], done["numFilesRemoved"])
            vacuum(table, delta)
    except ConflictError:
        _log.info("%s: not compacted, another commit came first", table.path)
    except SinkError as error:
        _log.warning("%s: not compacted: %s", table.path, error)


def vacuum(table: DeclaredTable, delta: "DeltaTable") -> None:
    """Remove files that were replaced longer ago than the retention, and those that never were committed."""
    hours = max(1, int(duration(table.retention).total_seconds() // 3600))
    delta.vacuum(hours, dry_run=False, enforce_retention_duration=False)
    remove_orphans(table.root, delta)


def remove_orphans(root: Path, delta: "DeltaTable") -> None:
    """Remove files that a merge or a compaction had written when it was killed."""
    for name in orphans(delta):
        with suppress(FileNotFoundError):
            (root / name).unlink()


def orphans(delta: "DeltaTable") -> list[str]:
    """Return Parquet files that no commit knows of: a full vacuum would remove them, a lite one not."""
    full = delta.vacuum(_IN_FLIGHT, dry_run=True, enforce_retention_duration=False, full=True)
    replaced = set(delta.vacuum(_IN_FLIGHT, dry_run=True, enforce_retention_duration=False))
    return [name for name in full if name.endswith(".parquet") and name not in replaced]
