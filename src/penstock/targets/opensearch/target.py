"""An index of OpenSearch or Elasticsearch as a target."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import TargetError
from penstock.settings import Settings
from penstock.targets.lanes import LaneSink
from penstock.targets.opensearch.client import Client, Server
from penstock.targets.opensearch.contents import contents
from penstock.targets.opensearch.lane import OpenSearchLanes
from penstock.targets.opensearch.mapping import check_names
from penstock.targets.opensearch.swap import swap
from penstock.targets.search.description import Description
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Guarantee, Guarantees, Inspection, Target

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,150}")


@dataclass(frozen=True)
class OpenSearchIndex(Target):
    """An index on a server, of documents that a row replaces by its key.

    >>> OpenSearchIndex("articles", key="url", text=("title", "body")).upsert_key
    ('url',)

    `connection` names the server in the settings: its `url`, and `user` and `password` if it needs them. The
    columns `text` are searched by their words, as the server's `analyzer` splits them; the others are
    compared whole. `columns` are those of the results that the index gets; all of them by default.
    """

    name: str
    key: str | tuple[str, ...] = "id"
    text: str | tuple[str, ...] = ()
    connection: str = "opensearch"
    analyzer: str = "standard"
    columns: tuple[str, ...] | None = None

    guarantees: ClassVar[Guarantees] = {
        "stream": ("effectively-once", "at-least-once"),
        "replay": ("effectively-once",),
    }
    crash_points: ClassVar[tuple[str, ...]] = tuple(
        f"sink.opensearch.{name}" for name in ("claimed", "committed", "written")
    )
    swap_shuts_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise TargetError(
                f"{self.name!r} is not a name of an index",
                hint="use up to 150 small letters, digits, -, _ and dots, the first one no sign",
            )
        if not self.upsert_key:
            raise TargetError(f"{self.name}: an index needs a key", hint='key="id" keeps every row')
        wanted = {*self.upsert_key, *self.texts}
        left_out = wanted.difference(self.columns or wanted)
        if left_out:
            raise TargetError(f"{self.name}: {min(left_out)!r} is not among columns={self.columns!r}")

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that are searched by their words."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def may_repeat(self, guarantee: Guarantee) -> bool:
        """A row is known by its key, whatever the guarantee."""
        return False

    def sink(self, schema: StructType, options: SinkOptions) -> LaneSink:
        missing = set(self.columns or ()) - set(schema.names)
        if missing:
            raise TargetError(
                f"{self.name}: the results have no column {min(missing)!r}", hint="mend columns="
            )
        kept = StructType([each for each in schema if self.columns is None or each.name in self.columns])
        described = Description.of(self.name, kept, self.upsert_key, self.texts, self.analyzer)
        check_names(self.name, list(described.types()))
        server = Server.of(options.settings, self.connection)
        return LaneSink(OpenSearchLanes(server, self.name, described, options.id), options)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        return contents(spark, Server.of(inspection.settings, self.connection), self.name, schema)

    def beside(self, name: str) -> Self:
        """Return an index of another name, which is empty: a flow is rebuilt into it."""
        return replace(self, name=f"{self.name}-{name}")

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Make what `rebuilt` holds this index's contents, at once for readers, and remove what was here."""
        swap(Client(Server.of(settings, self.connection)), self.name, rebuilt.name)
