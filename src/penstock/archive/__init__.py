"""Archives (tiered storage): a topic's log moved to Parquet files as it ages, read as if it had stayed."""

from penstock.archive.adding import add
from penstock.archive.archiver import Archiver, Moved
from penstock.archive.checking import Checked, Finding, check
from penstock.archive.runner import ArchiveRunner
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations

__all__ = [
    "Archive",
    "ArchiveRunner",
    "Archiver",
    "Checked",
    "Declarations",
    "Finding",
    "Moved",
    "add",
    "check",
]
