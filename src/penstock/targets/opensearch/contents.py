"""What an index holds, as a DataFrame."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.targets.opensearch.client import Client, Server, path_of, refused
from penstock.targets.opensearch.indices import Generation, describe, find
from penstock.targets.opensearch.sources import Sources

_AT_ONCE = 5_000  # rows
_KEEP = "5m"  # how long the server keeps the moment between two requests


class _Hit(msgspec.Struct):
    source: msgspec.Raw = msgspec.field(name="_source")


class _Hits(msgspec.Struct):
    hits: list[_Hit]


class _Page(msgspec.Struct):
    hits: _Hits
    scroll: str = msgspec.field(name="_scroll_id")


def contents(spark: SparkSession, server: Server, name: str, schema: StructType) -> DataFrame:
    """Return some columns of an index; one task reads them, so that they are of one moment."""
    read = _Read(server, name, to_arrow_schema(schema, timezone="UTC"))
    return spark.range(1).coalesce(1).mapInArrow(read, schema)


@dataclass(frozen=True)
class _Read:
    """What the task does; Spark carries it to an executor."""

    server: Server = field(repr=False)
    name: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._rows()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        client = Client(self.server)
        generation = find(client, self.name)
        if generation is None:
            return  # nothing was written so far
        for batch in read_all(client, generation):
            yield batch.select(self.schema.names).cast(self.schema)


def read_all(client: Client, generation: Generation) -> Iterator[pa.RecordBatch]:
    """Yield all rows of one moment."""
    sources = Sources(describe(client, generation))
    client.need("POST", path_of(generation.index, "_refresh"))
    page = _page(
        client, f"{path_of(generation.index)}/_search?scroll={_KEEP}", {"size": _AT_ONCE, "sort": ["_doc"]}
    )
    try:
        while page.hits.hits:
            yield sources.rows(bytes(each.source) for each in page.hits.hits)
            page = _page(client, "_search/scroll", {"scroll": _KEEP, "scroll_id": page.scroll})
    finally:
        client.ask("DELETE", "_search/scroll", {"scroll_id": page.scroll})


def _page(client: Client, path: str, body: dict[str, object]) -> _Page:
    answer = client.ask("POST", path, body)
    if not answer.ok:
        raise refused("POST", path, answer)
    return msgspec.json.decode(answer.body, type=_Page)
