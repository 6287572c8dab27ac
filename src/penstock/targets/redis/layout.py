"""A layout: what becomes of a row in Redis."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from penstock.errors import TargetError
from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.columns.naming import quoted
from penstock.targets.lanes import ORDER
from penstock.targets.redis.keys import joined
from penstock.targets.redis.texts import NESTED, check_type, text_of

MARKS = (SOURCE, DELETED, ORDER)
KEY, GONE = "key", "gone"


@dataclass(frozen=True)
class Layout(ABC):
    """The columns that rows are sent as, and the Lua that writes one of them; Spark carries it to executors.

    The first column, `key`, decides on the lane, together with others in `spread_by`; the second, `gone`, is
    set where the row is deleted. `required` are columns that are never null, with the names of what they are
    made of; those in `valued` may be where a row is deleted. `put` is the body of a Lua function of `prefix`,
    `row` and `options`, and `finish` is run behind the last row. With `holds_rows`, what is written must not
    be evicted.
    """

    prefix: str
    schema: StructType

    put: ClassVar[str]
    finish: ClassVar[str] = ""
    holds_rows: ClassVar[bool] = True
    spread_by: ClassVar[tuple[str, ...]] = (KEY,)

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns are sent."""

    @abstractmethod
    def values(self) -> Mapping[str, Column]:
        """Return the columns behind the first two."""

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """The columns that the first one is made of."""

    @property
    def required(self) -> Mapping[str, str]:
        return {KEY: ", ".join(self.key)} if self.key else {}

    @property
    def valued(self) -> Mapping[str, str]:
        return {}

    @property
    def options(self) -> Mapping[str, object]:
        return {}

    def encoded(self, rows: DataFrame) -> DataFrame:
        """Return rows as they are sent, all of bytes, and their order."""
        keys = joined([self.text(name) for name in self.key]) if self.key else F.lit(None).cast("binary")
        gone = F.lit(None).cast("binary")
        if DELETED in self.schema.names:
            gone = F.when(F.col(DELETED), F.lit(b"1"))
        order = [ORDER] if ORDER in rows.columns else []
        columns = {KEY: keys, GONE: gone, **self.values()}
        return rows.select(*order, *(column.alias(name) for name, column in columns.items()))

    def text(self, name: str) -> Column:
        return text_of(quoted(name), self.schema[name].dataType)


def check_columns(what: str, schema: StructType, keys: tuple[str, ...], values: tuple[str, ...]) -> None:
    """Refuse results that lack columns, or have some that Redis can't hold."""
    for name in (*keys, *values):
        if name not in schema.names:
            listed = ", ".join(each for each in schema.names if each not in MARKS)
            raise TargetError(f"{what}: the results have no column {name!r}", hint=f"they have {listed}")
        check_type(name, schema[name].dataType)
    for name in keys:
        if isinstance(schema[name].dataType, NESTED):
            kind = schema[name].dataType.simpleString()
            raise TargetError(
                f"{what}: the key {name!r} is {kind}", hint="name a column that is no structure"
            )
    if DELETED in schema.names and not isinstance(schema[DELETED].dataType, BooleanType):
        seen = schema[DELETED].dataType.simpleString()
        raise TargetError(f"{what}: {DELETED} is {seen}, expected boolean")


def columns_of(value: str | tuple[str, ...] | None, what: str) -> tuple[str, ...]:
    """Return the columns of a key, which names each once."""
    names = (value,) if isinstance(value, str) else value or ()
    if len(set(names)) < len(names):
        raise TargetError(f"{what}: the key {names!r} names a column twice")
    return names
