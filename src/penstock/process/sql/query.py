"""A flow's function that is written in SQL: a query over what the flow reads, as tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Literal

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.process.columns.names import TIME
from penstock.process.columns.naming import event_time, quoted, refuse_own
from penstock.process.spark.java import Java
from penstock.process.sql.bounds import has_state, names_in, refuse_other_relations, refuse_unbounded
from penstock.process.sql.clauses import refuse_clauses, refuse_stars
from penstock.process.sql.determinism import refuse_chance
from penstock.process.sql.finality import over, with_order
from penstock.process.sql.marks import EVENT_TIME
from penstock.process.sql.planning import blank, frame_of, parsed, plan_of, planned, refuse_unsupported
from penstock.process.sql.source import with_source
from penstock.process.sql.text import QueryText
from penstock.process.time.horizon import is_bounded
from penstock.process.time.order import since_epoch
from penstock.process.time.watermark import Watermark


@dataclass(frozen=True)
class EventTime:
    """The column of a table's event time, and how long is waited for events that are on their way."""

    column: str
    watermark: Watermark


@dataclass(frozen=True)
class Query:
    """A query over streams that are read and tables that are looked up, by their names.

    `changing` are those of the streams that are changes of a table. `output` is Spark's: "append" emits a
    result once, when it is final, "update" whenever it changes.
    """

    name: str
    text: str
    reads: tuple[str, ...]
    looks_up: tuple[str, ...] = ()
    times: Mapping[str, EventTime] = field(default_factory=dict)
    changing: frozenset[str] = frozenset()
    output: Literal["append", "update"] = "append"

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __signature__(self) -> Signature:
        names = (*self.reads, *self.looks_up)
        return Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in names])

    def __call__(self, **frames: DataFrame) -> DataFrame:
        """Return the results of the query over DataFrames; refuse a query that no flow can have."""
        spark = next(iter(frames.values())).sparkSession
        text = QueryText(self.name, self.text)
        tables = {name: self._timed(name, rows) for name, rows in frames.items()}
        try:
            query = parsed(spark, self.text)
            refuse_clauses(query, text, tables)
            self._check(spark, query, text, tables)
            plan = planned(spark, query, {name: plan_of(rows) for name, rows in tables.items()})
        except (AnalysisException, ParseException) as error:
            columns = {column for rows in tables.values() for column in rows.columns}
            raise text.explained(error, columns) from error
        plan = with_source(spark, plan)
        final = self.output == "append"
        return with_order(frame_of(spark, over(spark, plan) if final and is_bounded() else plan), final=final)

    def _check(
        self, spark: SparkSession, query: Java, text: QueryText, tables: Mapping[str, DataFrame]
    ) -> None:
        """Check the query over tables without rows, so that it is the same in every mode."""
        blanks = {
            name: blank(spark, name, rows.schema, streaming=name in self.reads)
            for name, rows in tables.items()
        }
        plan = planned(spark, query, blanks)
        refuse_other_relations(plan, text)
        self._refuse_unused(plan, text)
        refuse_chance(plan, text)
        refuse_unbounded(spark, plan, text, self.changing, final=self.output == "append")
        if has_state(plan):
            refuse_stars(query, text, self.reads)
        refuse_unsupported(spark, plan, self.output)

    def _refuse_unused(self, plan: Java, text: QueryText) -> None:
        unused = sorted({*self.reads, *self.looks_up} - names_in(plan))
        if unused:
            raise text.refusal(f"it has no use for {unused[0]!r}", hint="leave it out of reads and looks_up")

    def _timed(self, name: str, rows: DataFrame) -> DataFrame:
        """Return rows with the watermark on the column of their time itself, which a query names."""
        found = self.times.get(name)
        if found is None:
            return rows
        refuse_own(rows)
        time = event_time(rows, found.column)
        marked = (
            found.watermark.marked(rows, since_epoch(time))
            if rows.isStreaming
            else rows.withColumn(TIME, time)
        )
        own = {**(rows.schema[found.column].metadata or {}), **(marked.schema[TIME].metadata or {})}
        return marked.select(
            *(
                F.col(TIME).alias(each, metadata={**own, EVENT_TIME: True})
                if each == found.column
                else quoted(each)
                for each in rows.columns
            )
        )
