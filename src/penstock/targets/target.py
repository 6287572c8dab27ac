"""A target: where a flow's results go, and all that a pipeline has to know of the place."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from penstock.errors import TargetError
from penstock.log import Topic
from penstock.process.spark.logical import keeps_order, logical_plan
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.messages import with_id, with_order
from penstock.schemas import NumberedSchema
from penstock.settings import Settings
from penstock.targets.compared import Compared
from penstock.targets.comparison import compare_contents, in_one_column, kept_rows
from penstock.targets.sink import Sink, SinkOptions, nothing

Mode = Literal["stream", "realtime", "replay"]
Guarantee = Literal["exactly-once", "effectively-once", "at-least-once", "at-most-once"]
_NAMES = ("name", "path", "prefix")  # what a target of ours has one of
Guarantees = Mapping[Mode, tuple[Guarantee, ...]]


@dataclass(frozen=True)
class Results:
    """What a flow's function has made, and what is known of it.

    `flow` is the name that the flow goes by everywhere, `maker` what results are to say that they were made
    by. With `one_to_one`, an event has at most one result, so that its place in the log identifies it.
    `schemas` asks the registry for those of topics, with their numbers. With `of_tables`, the flow reads rows
    that change under one key. `headers` are those of an event that its results have in topics, too.
    """

    frame: DataFrame
    flow: str
    maker: str
    one_to_one: bool
    schemas: Callable[[Iterable[Topic[Any]]], Mapping[str, NumberedSchema]]
    of_tables: bool = False
    headers: tuple[str, ...] = ()

    def ordered(self) -> DataFrame:
        """The results with an `_order`, if they have one and do not stand in it already."""
        return self.frame if keeps_order(logical_plan(self.frame)) else with_order(self.frame)


@dataclass(frozen=True)
class Inspection:
    """What a target's contents are compared with, besides the rows that must be there.

    `known` returns the schemas of a topic that can be read. `possible` computes all rows that the flow may
    have written by now, if it runs. With `once`, a row that is there twice is one too many. `ran` gets the
    DataFrame that was run over all rows that must be there.
    """

    flow: str
    settings: Settings
    known: Callable[[Topic[Any]], KnownSchemas]
    possible: Callable[[], DataFrame]
    once: bool = True
    ran: Callable[[DataFrame], None] = nothing


class Target(ABC):
    """Where results go. A subclass says how they are written; what it keeps silent about is as here.

    `guarantees` are those that it can give in each mode, the default first; a mode that is left out is one
    that it can't be written in. `crash_points` are those that its sink passes, in order. `upsert_key` names
    the columns by which a row replaces an earlier one, `columns` those of the results that it takes, if not
    all.
    """

    guarantees: ClassVar[Guarantees] = {
        "stream": ("exactly-once", "at-least-once", "at-most-once"),
        "replay": ("exactly-once",),
    }
    crash_points: ClassVar[tuple[str, ...]] = ()
    keeps_former: ClassVar[bool] = False  # whether it has `exchange`
    swap_shuts_out: ClassVar[bool] = False  # the ledger is in the contents, and `swap` raises its epochs
    upsert_key: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    @property
    def title(self) -> str:
        """What it is called in a list: no address, which may hold a secret."""
        name = next((found for each in _NAMES if (found := getattr(self, each, None))), "")
        return f"{type(self).__name__} {name}".rstrip()

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        """The topics among what is written: flows may read them."""
        return ()

    @abstractmethod
    def sink(self, schema: StructType, options: SinkOptions) -> Sink:
        """Return what takes in rows of a schema."""

    def rows(self, results: Results) -> DataFrame:
        """Return results as the sink takes them: each with its `id`, and with their `_order` if need be."""
        return with_id(results.ordered(), results.flow, one_to_one=results.one_to_one)

    def limitation(self, mode: Mode, guarantee: Guarantee | None) -> str | None:
        """Return why it can't be written in a mode, or with a guarantee, where there is more to be said."""
        return None

    def may_repeat(self, guarantee: Guarantee) -> bool:
        """Whether a row may be there twice with a guarantee."""
        return guarantee not in ("exactly-once", "at-most-once")

    def contents(
        self,
        spark: SparkSession,
        schema: StructType,
        inspection: Inspection,
    ) -> DataFrame | None:
        """Return the columns of a schema of all rows that are there; None if they can't be read."""
        return None

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare the rows that must be there with those that are: of each upsert key, the last."""
        kept = kept_rows(due, self.upsert_key, self.columns)
        found = self.contents(due.sparkSession, kept.schema, inspection)
        if found is None:
            raise TargetError(
                f"{type(self).__name__} can't be verified: it does not say what it holds",
                hint="give it a method contents()",
            )

        def possible() -> DataFrame:
            return in_one_column(kept_rows(inspection.possible(), self.upsert_key, self.columns))

        return compare_contents(
            in_one_column(kept), in_one_column(found), possible, once=inspection.once, ran=inspection.ran
        )

    def beside(self, name: str) -> Self:
        """Return a target of the same kind beside this one, which is empty: a flow is rebuilt into it."""
        raise TargetError(
            f"{type(self).__name__} can't be rebuilt beside itself",
            hint="give it the methods beside() and swap(), or let the flow write a new target",
        )

    def swap(self, rebuilt: Self, settings: Settings) -> None:
        """Make what `rebuilt` holds this target's contents, at once for readers; what was here is removed.

        Killed half way and called again, it completes.
        """
        raise NotImplementedError

    def exchange(self, other: Self, kept: Self, settings: Settings) -> None:
        """Make what `other` holds this target's contents, as `swap` does, and keep what was here as `kept`.

        Only where `keeps_former`; killed half way and called again, it completes.
        """
        raise NotImplementedError

    def remove(self, settings: Settings) -> bool:
        """Remove a target that was made beside another and is not needed any more; False if it can't be."""
        return False

    def held_columns(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the columns that it has, whatever the flow of today gives; None if it can't be known."""
        return None

    def is_native(self, mode: Mode, guarantee: Guarantee) -> bool:
        """Whether Spark writes it by itself, without a sink of ours, in a mode with a guarantee."""
        return False

    def native_writer(self, rows: DataFrame, mode: Mode, settings: Settings) -> DataStreamWriter:
        """Return Spark's own writer for a stream of rows."""
        raise NotImplementedError
