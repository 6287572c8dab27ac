"""Hashes of Redis as a target: each row is one, with a field for each column."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.durations import duration
from penstock.errors import TargetError
from penstock.targets.compared import Compared
from penstock.targets.redis.contents import ReadHashes
from penstock.targets.redis.keys import check_prefix
from penstock.targets.redis.layout import MARKS, Layout, check_columns, columns_of
from penstock.targets.redis.target import RedisTarget
from penstock.targets.target import Inspection

_MILLISECOND = timedelta(milliseconds=1)
_PUT = """
  local key, fields, count = prefix .. ':' .. row[1], {}, 0
  call('DEL', key)
  if row[2] then return end
  for place, name in ipairs(options.names) do
    local value = row[place + 2]
    if value then
      fields[count + 1], fields[count + 2], count = name, value, count + 2
    end
  end
  for first = 1, count, 4000 do  -- more would not fit into one call
    call('HSET', key, unpack(fields, first, math.min(first + 3999, count)))
  end
  if options.expire then call('PEXPIRE', key, options.expire) end
"""


@dataclass(frozen=True)
class RedisHashes(RedisTarget):
    """Rows as hashes at `prefix:key`, each in the place of the former one of its key.

    >>> RedisHashes("user", key=("shop", "id"), expire="1 hour").upsert_key
    ('shop', 'id')

    A column that is null is a field that is not there. `columns` are those of the results that a hash gets;
    all of them by default. With `expire`, a hash is gone that long after it was written last. The server is
    that of the settings' `connection`, "redis" by default. A lane's share of a batch is written by one
    script, and by more if it has more than `at_once` rows.
    """

    kind: ClassVar[str] = "hash"

    prefix: str
    key: str | tuple[str, ...] = "id"
    connection: str | None = None
    expire: str | timedelta | None = None
    columns: tuple[str, ...] | None = None
    at_once: int = field(default=50_000, kw_only=True)

    def __post_init__(self) -> None:
        check_prefix(self.prefix)
        self._check_at_once()
        if not self.upsert_key:
            raise TargetError(f"{self.prefix}: hashes need a key", hint='key="id" or key=("shop", "id")')
        left_out = set(self.upsert_key) - set(self.columns or self.upsert_key)
        if left_out:
            raise TargetError(
                f"{self.prefix}: the key {min(left_out)!r} is not among columns={self.columns!r}"
            )
        if self.expire is not None:
            duration(self.expire)

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return columns_of(self.key, self.prefix)

    def layout(self, schema: StructType) -> "HashLayout":
        names = self.columns or tuple(name for name in schema.names if name not in MARKS)
        check_columns(self.prefix, schema, self.upsert_key, names)
        expire = duration(self.expire) // _MILLISECOND if self.expire is not None else None
        return HashLayout(self.prefix, schema, self.upsert_key, names, expire)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        read = ReadHashes(self.address(inspection.settings), self.prefix, tuple(schema.names))
        return read.contents(spark, schema)

    def beside(self, name: str) -> Self:
        return replace(self, prefix=self.prefix_beside(name))

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare row by row; one that may have expired is not missing."""
        compared = super().compare(due, inspection)
        if self.expire is None or not compared.missing:
            return compared
        shown = tuple(each for each in compared.examples if not each.startswith("missing"))
        return compared._replace(missing=0, examples=shown)


@dataclass(frozen=True)
class HashLayout(Layout):
    """A row as a hash."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    expire: int | None
    put = _PUT

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys

    @property
    def width(self) -> int:
        return 2 + len(self.names)

    def values(self) -> Mapping[str, Column]:
        return {f"v{place}": self.text(name) for place, name in enumerate(self.names)}

    @property
    def options(self) -> Mapping[str, object]:
        expire = {} if self.expire is None else {"expire": self.expire}
        return {"names": self.names, **expire}
