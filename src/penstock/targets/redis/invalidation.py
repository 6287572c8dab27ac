"""Cache invalidation as a target: keys of a cache are deleted when their rows change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn, Self

from pyspark.sql import Column
from pyspark.sql.types import StructType

from penstock.errors import TargetError
from penstock.settings import Settings
from penstock.targets.redis.keys import check_prefix
from penstock.targets.redis.layout import Layout, check_columns, columns_of
from penstock.targets.redis.target import RedisTarget

_PUT = """
  local key = prefix .. ':' .. row[1]
  call('UNLINK', key)
  if options.channel then call('PUBLISH', options.channel, key) end
"""


@dataclass(frozen=True)
class RedisInvalidation(RedisTarget):
    """Deletes `prefix:key` for each row that comes, whatever is there, and publishes the key on a `channel`.

    >>> RedisInvalidation("page", key="product", channel="stale-pages").prefix
    'page'

    The keys are those of a cache that others fill. It holds nothing itself: there is nothing to verify or
    rebuild.
    """

    kind: ClassVar[str] = "any"

    prefix: str
    key: str | tuple[str, ...] = "id"
    channel: str | None = None
    connection: str | None = None
    at_once: int = field(default=50_000, kw_only=True)

    def __post_init__(self) -> None:
        check_prefix(self.prefix)
        self._check_at_once()
        if not columns_of(self.key, self.prefix):
            raise TargetError(
                f"{self.prefix}: invalidation needs a key", hint='key="id" or key=("shop", "id")'
            )

    def layout(self, schema: StructType) -> "InvalidationLayout":
        keys = columns_of(self.key, self.prefix)
        check_columns(self.prefix, schema, keys, ())
        return InvalidationLayout(self.prefix, schema, keys, self.channel)

    def beside(self, name: str) -> NoReturn:
        raise TargetError(f"{self.prefix}: an invalidation holds nothing, so it can't be rebuilt")

    def swap(self, rebuilt: Self, settings: Settings) -> NoReturn:
        self.beside("")


@dataclass(frozen=True)
class InvalidationLayout(Layout):
    """A row as a key to be deleted."""

    keys: tuple[str, ...]
    channel: str | None
    put, holds_rows = _PUT, False

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys

    @property
    def width(self) -> int:
        return 2

    def values(self) -> Mapping[str, Column]:
        return {}

    @property
    def options(self) -> Mapping[str, object]:
        return {} if self.channel is None else {"channel": self.channel}
