"""The target of a flow compared with that of its shadow, at one position of the log."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.errors import FlowError, TargetError
from penstock.log.ledger import Offsets
from penstock.pipeline.difference import SHOWN, Difference, difference
from penstock.pipeline.flow_run import Reporter, warned
from penstock.pipeline.generation import Generation
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span
from penstock.pipeline.runner import chosen, registry_of
from penstock.pipeline.shadowing import refuse_no_shadow
from penstock.pipeline.versions import Standing, Versions, distance, nearest
from penstock.process.columns.names import DELETED, END, FINAL, SOURCE, START
from penstock.process.columns.naming import quoted
from penstock.process.wire.messages import MADE_BY
from penstock.registry import Registry
from penstock.settings import Settings
from penstock.targets import Inspection
from penstock.targets.comparison import kept_rows
from penstock.targets.kafka.target import KafkaTarget
from penstock.targets.target import Target

ORIGIN = "_origin"  # the event that a result was made of, as topic/partition/offset


@dataclass(frozen=True)
class Compared:
    """What a comparison is asked for: the columns of the key, those to leave out, the number of examples."""

    by: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    shown: int = SHOWN


def diff(
    pipeline: Pipeline,
    flow: str,
    settings: Settings,
    spark: SparkSession,
    *,
    by: Sequence[str] = (),
    ignore: Sequence[str] = (),
    shown: int = SHOWN,
    report: Reporter = warned,
) -> Difference:
    """Compare what a flow has written with what its shadow has; both may run.

    Results that name the event they were made of are compared as far as both have read. Others can only be
    compared while both stand at the same position: `Difference.exact` says whether they did. `by` names the
    columns of the key, unless the target's own key, the window or the event is to be it.
    """
    versions = Versions(pipeline, chosen(pipeline, [flow])[0], settings, spark, report)
    known = versions.generations.read()
    refuse_no_shadow(versions, known)
    return compared(versions, known, Compared(tuple(by), tuple(ignore), shown))


def compared(versions: Versions, known: Generation, wanted: Compared) -> Difference:
    """Compare the generation at work with its shadow."""
    registry = registry_of([versions.flow], versions.settings)
    try:
        return _Comparison(versions, known, wanted, registry).run()
    finally:
        if registry is not None:
            registry.close()


class _Comparison:
    def __init__(
        self, versions: Versions, known: Generation, wanted: Compared, registry: Registry | None
    ) -> None:
        self._versions, self._known, self._wanted = versions, known, wanted
        self._number = refuse_no_shadow(versions, known)
        self._planner = Planner(versions.spark, versions.settings, registry)
        plain = versions.flow.in_mode("stream")
        self._results = self._planner.results(plain, Span(as_table=True, in_kafka=True))
        self._rows = self._planner.as_written(plain, versions.label, self._results)

    def run(self) -> Difference:
        """Compare; an `id` that was made of all columns says nothing that these do not say."""
        before = self._standings()
        live, shadow = (self._contents(number) for number in (None, self._number))
        both = sorted({*live.columns} & {*shadow.columns} - {*self._wanted.ignore})
        key, at = self._key(both), nearest(before[0].position, before[1].position)
        alike = [name for name in both if name in key or name != "id" or "id" in self._results.columns]
        window = START if START in key else None
        sides = [self._bounded(each, at, before).select(*alike) for each in (live, shadow)]
        found = difference(
            self._versions.flow.name, sides[0], sides[1], key, window=window, shown=self._wanted.shown
        )
        return replace(found, at=at, apart=0 if self._by_origin else self._apart(before))

    @property
    def _by_origin(self) -> bool:
        return isinstance(self._versions.target, KafkaTarget) and SOURCE in self._results.columns

    def _standings(self) -> tuple[Standing, Standing]:
        versions, known = self._versions, self._known
        return versions.seen(known.current, known), versions.seen(self._number, known)

    def _apart(self, before: tuple[Standing, Standing]) -> int:
        """How many events lie between both, or were worked on while they were compared."""
        positions = [each.position for each in (*before, *self._standings())]
        return max(distance(positions[0], each) for each in positions)

    def _key(self, columns: Sequence[str]) -> tuple[str, ...]:
        target, by = self._versions.target, self._wanted.by
        if by:
            if missing := sorted({*by} - {*columns}):
                raise FlowError(
                    f"there is no column {missing[0]!r} in both versions of {self._versions.label!r}",
                    hint=f"they have {', '.join(columns)}",
                )
            return by
        return own_key(target, columns)

    def _bounded(self, rows: DataFrame, at: Offsets, standings: tuple[Standing, Standing]) -> DataFrame:
        """What both versions have had the chance to emit: of the same events, and of windows of both."""
        if self._by_origin:
            rows = rows.where(_is_before(at))
        watermark = min(each.watermark for each in standings)
        if watermark and self._are_windows and END in rows.columns:
            rows = rows.where(F.col(END) <= F.timestamp_millis(F.lit(watermark)))
        return rows

    @property
    def _are_windows(self) -> bool:
        schema = self._results.schema
        return END in schema.names and FINAL in schema[END].metadata

    def _contents(self, shadow: int | None) -> DataFrame:
        target = self._versions.target if shadow is None else self._versions.beside(shadow)
        found = target.contents(self._versions.spark, self._schema(target), self._inspection())
        if found is None:
            raise TargetError(
                f"{type(target).__name__} can't be compared: it does not say what it holds",
                hint="give it a method contents()",
            )
        return _with_origin(found) if isinstance(target, KafkaTarget) else found

    def _schema(self, target: Target) -> StructType:
        schema = kept_rows(self._rows, target.upsert_key, target.columns).schema
        held = target.held_columns(self._versions.settings)
        there = [each for each in schema if held is None or each.name in held]
        return StructType([StructField(each.name, each.dataType) for each in there])

    def _inspection(self) -> Inspection:
        return Inspection(
            self._versions.label, self._versions.settings, self._planner.known, lambda: self._rows
        )


def own_key(target: Target, columns: Sequence[str]) -> tuple[str, ...]:
    """Return what rows of a target are known by: its key, the window, the event, or else all they hold.

    >>> from penstock.targets import PostgresTable
    >>> own_key(PostgresTable("bills", key="card", write="upsert"), ["card", "sum"])
    ('card',)
    >>> own_key(PostgresTable("alerts"), ["card", "id"]), own_key(PostgresTable("alerts"), ["card"])
    (('id',), ())
    """
    if target.upsert_key:
        return target.upsert_key
    if isinstance(target, KafkaTarget):
        key = [name for name in (target.topic.key,) if name is not None and name in columns]
        if START in columns and END in columns:
            return (*key, START, END)
        return (ORIGIN,) if ORIGIN in columns else tuple(key)
    return ("id",) if "id" in columns else ()


def _with_origin(rows: DataFrame) -> DataFrame:
    """The messages of a topic without where they are in it, and with the events that they were made of."""
    made = F.filter(f"{SOURCE}.headers", lambda header: header["key"] == MADE_BY)
    text = F.try_element_at(made, F.lit(-1))["value"].cast("string")
    origin = F.nullif(F.regexp_extract(text, r"^\S+ (\S+/\d+/\d+)", 1), F.lit(""))
    held = [quoted(name) for name in rows.columns if name not in (SOURCE, DELETED)]
    return rows.select(*held, origin.alias(ORIGIN))


def _is_before(at: Offsets) -> Column:
    """Whether the event that a result was made of lies before a position."""
    part = [F.regexp_extract(ORIGIN, r"^(.*)/(\d+)/(\d+)$", number) for number in (1, 2, 3)]
    allowed = F.lit(False)
    for topic, partitions in at.items():
        for partition, offset in partitions.items():
            here = (part[0] == topic) & (part[1] == str(partition))
            allowed = allowed | (here & (part[2].cast("long") < offset))
    return F.col(ORIGIN).isNull() | allowed
