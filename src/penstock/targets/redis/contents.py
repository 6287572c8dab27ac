"""What is below a prefix, as a DataFrame: one task reads it, so that nothing large comes to the driver."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.settings import Secret
from penstock.targets.redis.client import Client, asking, connect
from penstock.targets.redis.keys import split
from penstock.targets.redis.prefixes import keys_below
from penstock.targets.redis.reader import current_prefix
from penstock.targets.redis.texts import value_of

Texts = Sequence[bytes | None]
_KEY = "key"
_AT_ONCE = 1000


@dataclass(frozen=True)
class Read(ABC):
    """What the task does; Spark carries it to an executor."""

    address: Secret
    prefix: str

    def contents(self, spark: SparkSession, schema: StructType, names: Sequence[str] = ()) -> DataFrame:
        """Return columns of all rows, `names` being the order in which they are read.

        A scan may come upon a key twice.
        """
        order = list(names or schema.names)
        read = ", ".join([f"{_KEY} binary", *(f"v{place} binary" for place in range(len(order)))])
        found = spark.range(1).coalesce(1).mapInArrow(self, read).dropDuplicates([_KEY])
        return found.select(
            *(
                value_of(F.col(f"v{order.index(each.name)}"), each.dataType).alias(each.name)
                for each in schema
            )
        )

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._batches()

    @abstractmethod
    def rows(self, client: Client, prefix: str) -> Iterator[Texts]:
        """Yield the key and the values of each row."""

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with closing(connect(self.address)) as client, asking("read what a target holds"):
            rows = self.rows(client, current_prefix(client, self.prefix))
            while some := list(islice(rows, _AT_ONCE)):
                columns = [pa.array(values, pa.binary()) for values in zip(*some, strict=True)]
                names = [_KEY, *(f"v{place}" for place in range(len(columns) - 1))]
                yield pa.record_batch(columns, names=names)


@dataclass(frozen=True)
class ReadHashes(Read):
    """Reads fields of hashes."""

    fields: tuple[str, ...]

    def rows(self, client: Client, prefix: str) -> Iterator[Texts]:
        for keys in keys_below(client, prefix, "hash"):
            asked = client.pipeline(transaction=False)
            for key in keys:
                asked.hmget(key, self.fields)
            for key, values in zip(keys, asked.execute(), strict=True):
                if any(value is not None for value in values):  # or it is gone meanwhile
                    yield [key, *values]


@dataclass(frozen=True)
class ReadSets(Read):
    """Reads the groups, members and scores of sorted sets."""

    groups: tuple[str, ...]

    def rows(self, client: Client, prefix: str) -> Iterator[Texts]:
        for key in self._keys(client, prefix):
            group = split(key[len(prefix.encode()) + 1 :], len(self.groups)) if self.groups else []
            for member, score in client.zscan_iter(key, count=_AT_ONCE):
                yield [b"%d:%b%b" % (len(key), key, member), *group, member, repr(score).encode()]

    def _keys(self, client: Client, prefix: str) -> Iterator[bytes]:
        if not self.groups:
            yield prefix.encode()
            return
        for keys in keys_below(client, prefix, "zset"):
            yield from keys
