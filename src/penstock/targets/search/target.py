"""A full-text index on the disk as a target, and as what one searches."""

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Literal, Self, get_args

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.documents import JsonObject
from penstock.durations import duration
from penstock.errors import TargetError
from penstock.settings import Settings
from penstock.targets.lanes import LaneSink
from penstock.targets.search.package import needing_tantivy
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Guarantee, Inspection, Target

Tokenizer = Literal[
    "words", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
]  # fmt: skip
_SWAP_WAITS = timedelta(minutes=1)


@dataclass(frozen=True)
class SearchIndex(Target):
    """A full-text index at a path, of documents that a row replaces by its key.

    >>> SearchIndex("articles", key="url", text=("title", "body")).upsert_key
    ('url',)

    The columns `text` are searched by their words: those of `tokenizer` "words" are compared in small
    letters, those of a language by their stems. By all other columns rows can be filtered; all are stored as
    they are. `columns` are those of the results that the index gets; all of them by default.
    """

    path: str | Path
    key: str | tuple[str, ...] = "id"
    text: str | tuple[str, ...] = ()
    tokenizer: Tokenizer = "words"
    columns: tuple[str, ...] | None = None

    crash_points: ClassVar[tuple[str, ...]] = tuple(
        f"sink.search.{name}" for name in ("claimed", "committed", "written")
    )
    swap_shuts_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not str(self.path):
            raise TargetError("path is empty", hint="give the folder that the index is to be in")
        if self.tokenizer not in get_args(Tokenizer):
            raise TargetError(
                f"{self.path}: tokenizer is {self.tokenizer!r}",
                hint=f"known are {', '.join(get_args(Tokenizer))}",
            )
        if not self.upsert_key:
            raise TargetError(f"{self.path}: an index needs a key", hint='key="id" keeps every row')
        for names in (self.upsert_key, self.texts):
            if len(set(names)) < len(names):
                raise TargetError(f"{self.path}: {names!r} names a column twice")
        left_out = {*self.upsert_key, *self.texts}.difference(self.columns or (*self.upsert_key, *self.texts))
        if left_out:
            raise TargetError(f"{self.path}: {min(left_out)!r} is not among columns={self.columns!r}")

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that are searched by their words."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    @property
    def place(self) -> str:
        """The path from the root: Spark's workers have another working folder."""
        return str(Path(self.path).absolute())

    def search(self, query: str, limit: int = 10) -> list[JsonObject]:
        """Return the rows that match a query best, as they were committed last.

        A query has words, "phrases", column:value, column:[1 TO 9], AND, OR, NOT and parentheses.
        """
        with needing_tantivy():
            from penstock.targets.search.reader import reader_of
        return reader_of(self.place).search(query, limit)

    def may_repeat(self, guarantee: Guarantee) -> bool:
        """A row is known by its key, whatever the guarantee."""
        return False

    def sink(self, schema: StructType, options: SinkOptions) -> LaneSink:
        with needing_tantivy():
            from penstock.targets.search.description import Description
            from penstock.targets.search.lane import SearchLanes
        missing = set(self.columns or ()) - set(schema.names)
        if missing:
            raise TargetError(
                f"{self.path}: the results have no column {min(missing)!r}", hint="mend columns="
            )
        kept = StructType([each for each in schema if self.columns is None or each.name in self.columns])
        described = Description.of(self.place, kept, self.upsert_key, self.texts, self.tokenizer)
        lanes = SearchLanes(self.place, described, options.id, duration(options.timeout))
        return LaneSink(lanes, options)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        with needing_tantivy():
            from penstock.targets.search.contents import contents
        return contents(spark, self.place, schema)

    def beside(self, name: str) -> Self:
        """Return an index below this one's folder, which is empty: a flow is rebuilt into it."""
        return replace(self, path=Path(self.place) / "beside" / name)

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Make what `rebuilt` holds this index's contents, at once for readers, and remove what was here."""
        with needing_tantivy():
            from penstock.targets.search.folder import IndexFolder
            from penstock.targets.search.swap import swap
        swap(IndexFolder(Path(self.place)), IndexFolder(Path(rebuilt.place)), _SWAP_WAITS)
