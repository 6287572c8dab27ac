"""What a target holds, compared with what it should hold, row by row."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.columns.naming import quoted
from penstock.process.wire.messages import EXACT_JSON
from penstock.targets.compared import Compared
from penstock.targets.lanes import ORDER

_SHOWN = 5
_COUNTS = ("due", "found", "missing", "repeated", "unexpected", "waiting")
_HALF = (1 << 32) - 1
_PLACE = "_place"


def compare_contents(
    due: DataFrame,
    found: DataFrame,
    possible: Callable[[], DataFrame],
    *,
    once: bool,
    ran: Callable[[DataFrame], None] = lambda _: None,
) -> Compared:
    """Compare rows that must be there with those that are; what may be, too, is asked for if it matters.

    All three have the same columns, of texts and bytes. Digests come first: as long as nothing differs, no
    row is moved or sorted. What may be there takes as long as all the rest, and says something only where
    more was found than is due. With `once`, a row that was found twice is more. `ran` gets the DataFrame that
    was run over all that is due.
    """
    digests = _digests(due, found)
    sides = {row.side: tuple(row)[1:] for row in digests.collect()}
    ran(digests)
    if sides.get("due") == sides.get("found"):
        count = sides["due"][0] if sides else 0
        return Compared(count, count, 0, 0, 0)
    compared = _compared(due, found, None)
    if not (compared.unexpected or (once and compared.repeated)):
        return compared
    return _compared(due, found, possible())


def in_one_column(rows: DataFrame) -> DataFrame:
    """Rows as texts, which can be compared whatever their columns are."""
    held = F.struct(*map(quoted, sorted(rows.columns)))
    return rows.select(F.to_json(held, EXACT_JSON).alias("row"))


def kept_rows(rows: DataFrame, key: Sequence[str], columns: Sequence[str] | None) -> DataFrame:
    """The rows that a target keeps of those that were written: of each key, the last, unless it deletes."""
    if key:
        order = [ORDER] if ORDER in rows.columns else []
        placed = rows.withColumn(_PLACE, F.struct(*order, F.monotonically_increasing_id().alias(_PLACE)))
        latest = Window.partitionBy(*map(quoted, key)).orderBy(F.col(_PLACE).desc())
        rows = placed.withColumn(_PLACE, F.row_number().over(latest)).where(F.col(_PLACE) == 1)
    if key and DELETED in rows.columns:
        rows = rows.where(~F.coalesce(DELETED, F.lit(False)))
    names = columns or [name for name in rows.columns if name not in (_PLACE, ORDER, SOURCE, DELETED)]
    return rows.select(*map(quoted, names))


def _digests(due: DataFrame, found: DataFrame) -> DataFrame:
    """The number of rows of each side and sums over their hashes, which no order changes.

    The sums are of halves of 32 bits, so that they are exact for two billion rows.
    """
    nulls = [F.col(name).isNull() for name in due.columns]  # a hash passes over what is null
    hashes = [F.xxhash64(F.lit(seed), *nulls, *due.columns) for seed in (0, 1)]
    halves = [part for each in hashes for part in (each.bitwiseAND(_HALF), F.shiftrightunsigned(each, 32))]
    sums = [F.sum(part) for part in halves]
    return _both(due, found).groupBy("side").agg(F.count("*"), *sums)


def _both(due: DataFrame, found: DataFrame) -> DataFrame:
    return due.select("*", _side("due")).unionByName(found.select("*", _side("found")))


def _compared(due: DataFrame, found: DataFrame, possible: DataFrame | None) -> Compared:
    sides = _both(due, found)
    if possible is not None:
        sides = sides.unionByName(possible.select("*", _side("possible")))
    judged = _judged(sides, due.columns, "due" if possible is None else "possible").persist()
    try:
        sums = judged.agg(*(F.sum(name) for name in _COUNTS)).first() or ()
        *counts, waiting = (int(each or 0) for each in sums)
        return Compared.of(counts, _examples(judged, due.columns))._replace(waiting=waiting)
    finally:
        judged.unpersist()


def _judged(sides: DataFrame, content: Sequence[str], allowed: str) -> DataFrame:
    """Count each content: what must be there, what may be, and what is."""
    counted = sides.groupBy(*content).agg(
        *(F.count_if(F.col("side") == name).alias(name) for name in ("due", "possible", "found"))
    )
    due, found, most = F.col("due"), F.col("found"), F.greatest("due", allowed)
    more = F.greatest(found - most, F.lit(0))
    return counted.select(
        *content,
        "due",
        "found",
        F.greatest(due - found, F.lit(0)).alias("missing"),
        F.when(most > 0, more).otherwise(0).alias("repeated"),
        F.when(most == 0, found).otherwise(0).alias("unexpected"),
        F.greatest(most - F.greatest(due, found), F.lit(0)).alias("waiting"),
    )


def _examples(judged: DataFrame, content: Sequence[str]) -> tuple[str, ...]:
    wrong = judged.where("missing > 0 or repeated > 0 or unexpected > 0")
    kind = F.expr(
        "case when missing > 0 then 'missing' when repeated > 0 then 'repeated' else 'unexpected' end"
    )
    text = F.concat_ws(" ", kind, *(F.col(name).cast("string") for name in content))
    return tuple(row[0] for row in wrong.select(F.substring(text, 1, 200)).limit(_SHOWN).collect())


def _side(name: str) -> Column:
    return F.lit(name).alias("side")
