"""Sorted sets of Redis as a target: leaderboards."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, get_args

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, LongType, StructType

from penstock.errors import TargetError
from penstock.process.columns.naming import quoted
from penstock.targets.compared import Compared
from penstock.targets.comparison import compare_contents, in_one_column, kept_rows
from penstock.targets.redis.contents import ReadSets
from penstock.targets.redis.keys import check_prefix
from penstock.targets.redis.layout import Layout, check_columns, columns_of
from penstock.targets.redis.target import RedisTarget
from penstock.targets.redis.texts import NUMBERS, text_of
from penstock.targets.target import Inspection

Best = Literal["highest", "lowest"]
_EXACT = 1 << 53  # whole numbers up to here are doubles without loss
_PUT = """
  local key = row[1] and (prefix .. ':' .. row[1]) or prefix
  if row[2] then
    call('ZREM', key, row[3])
  else
    call('ZADD', key, row[4], row[3])
    touched[key] = true
  end
"""
_FINISH = """
if options.keep then
  for key in pairs(touched) do
    if options.lowest then
      call('ZREMRANGEBYRANK', key, options.keep, -1)
    else
      call('ZREMRANGEBYRANK', key, 0, -options.keep - 1)
    end
  end
end
"""


@dataclass(frozen=True)
class RedisSortedSet(RedisTarget):
    """Members with their scores in a sorted set, or in one for each group that `by` makes, at `name:group`.

    >>> RedisSortedSet("best", member="player", score="points", by="country", keep=100).columns
    ('country', 'player', 'points')

    The last score of a member stays; a deletion removes it. `keep` trims a set to the best so many, by the
    highest scores or, with best="lowest", by the lowest; what was trimmed does not come back when another
    member's score gets worse.
    """

    kind: ClassVar[str] = "zset"

    name: str
    member: str = field(kw_only=True)
    score: str = field(kw_only=True)
    by: str | tuple[str, ...] | None = field(default=None, kw_only=True)
    keep: int | None = field(default=None, kw_only=True)
    best: Best = field(default="highest", kw_only=True)
    connection: str | None = field(default=None, kw_only=True)
    at_once: int = field(default=50_000, kw_only=True)

    def __post_init__(self) -> None:
        check_prefix(self.name)
        self._check_at_once()
        if self.keep is not None and self.keep < 1:
            raise TargetError(f"{self.name}: keep is {self.keep}, expected at least 1")
        if self.best not in get_args(Best):
            raise TargetError(f"{self.name}: best is {self.best!r}, expected 'highest' or 'lowest'")
        if len(set(self.columns)) < len(self.columns):
            raise TargetError(f"{self.name}: {', '.join(self.columns)} name a column twice")

    @property
    def prefix(self) -> str:  # type: ignore[override]
        return self.name

    @property
    def groups(self) -> tuple[str, ...]:
        return columns_of(self.by, self.name)

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.groups, self.member)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.upsert_key, self.score)

    def layout(self, schema: StructType) -> "SetLayout":
        check_columns(self.name, schema, self.upsert_key, (self.score,))
        if not isinstance(schema[self.score].dataType, NUMBERS):
            seen = schema[self.score].dataType.simpleString()
            raise TargetError(f"{self.name}: the score {self.score!r} is {seen}", hint="cast it to a double")
        lowest = self.best == "lowest"
        return SetLayout(self.name, schema, self.groups, self.member, self.score, self.keep, lowest)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        read = ReadSets(self.address(inspection.settings), self.name, self.groups)
        return read.contents(spark, schema, self.columns)

    def beside(self, name: str) -> Self:
        return replace(self, name=self.prefix_beside(name))

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare scores as the doubles that they are in Redis, those of the members that are kept."""
        kept = self._kept(due)
        found = self._scored(self.contents(due.sparkSession, kept.schema, inspection))
        return compare_contents(
            in_one_column(kept),
            in_one_column(found),
            lambda: in_one_column(self._kept(inspection.possible())),
            once=inspection.once,
            ran=inspection.ran,
        )

    def _scored(self, rows: DataFrame) -> DataFrame:
        """Rows with scores as doubles, in which zero has no sign."""
        return rows.withColumn(self.score, quoted(self.score).cast("double") + F.lit(0.0))

    def _kept(self, rows: DataFrame) -> DataFrame:
        kept = self._scored(kept_rows(rows, self.upsert_key, self.columns))
        if self.keep is None:
            return kept
        member = text_of(quoted(self.member), kept.schema[self.member].dataType)
        by = [quoted(self.score), member]
        order = by if self.best == "lowest" else [each.desc() for each in by]
        best = Window.partitionBy(*map(quoted, self.groups)).orderBy(*order)
        return (
            kept.withColumn("_rank", F.row_number().over(best)).where(f"_rank <= {self.keep}").drop("_rank")
        )


@dataclass(frozen=True)
class SetLayout(Layout):
    """A row as a member of a set."""

    groups: tuple[str, ...]
    member: str
    score: str
    keep: int | None
    lowest: bool
    put, finish = _PUT, _FINISH
    spread_by = ("key", "member")

    @property
    def key(self) -> tuple[str, ...]:
        return self.groups

    @property
    def width(self) -> int:
        return 4

    def values(self) -> Mapping[str, Column]:
        return {"member": self.text(self.member), "score": self._score()}

    @property
    def required(self) -> Mapping[str, str]:
        return {**super().required, "member": self.member}

    @property
    def valued(self) -> Mapping[str, str]:
        return {"score": self.score}

    @property
    def options(self) -> Mapping[str, object]:
        keep = {} if self.keep is None else {"keep": self.keep}
        return {"lowest": self.lowest, **keep}

    def _score(self) -> Column:
        """The score as a double, which Redis has; null where it is none, or where digits would be lost."""
        column, type = quoted(self.score), self.schema[self.score].dataType
        text = column.cast("double").cast("string").cast("binary")
        if isinstance(type, LongType):
            return F.when(column.between(-_EXACT, _EXACT), text)
        return F.when(~F.isnan(column), text) if isinstance(type, FloatType | DoubleType) else text
