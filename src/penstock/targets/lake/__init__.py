"""Results into a Delta table, each batch in one transaction of the table's log, exactly once."""

from penstock.targets.lake.sink import LakeSink
from penstock.targets.lake.target import LakeTable

__all__ = ["LakeSink", "LakeTable"]
