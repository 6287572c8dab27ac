"""A seed: the state that a projection's stream begins with, in place of the records that it stands for."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.log.ledger import Offsets


@dataclass(frozen=True)
class Seed:
    """A state as files that a stream reads once, and where the stream of records begins."""

    path: str
    schema: StructType
    start: Offsets

    def states(self, spark: SparkSession) -> DataFrame:
        """Return the state as a stream; the files are known by their names, wherever the folder is moved."""
        return spark.readStream.schema(self.schema).option("fileNameOnly", "true").parquet(self.path)
