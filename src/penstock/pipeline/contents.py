"""What topics hold, compared with what they should hold, message by message."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.sinks.compared import Compared

_SHOWN = 5
_CONTENT = ("topic", "key", "value")
_COUNTS = ("due", "found", "missing", "repeated", "unexpected", "waiting")
_HALF = (1 << 32) - 1


def compare_contents(
    due: DataFrame,
    found: DataFrame,
    possible: Callable[[], DataFrame],
    *,
    once: bool,
    ran: Callable[[DataFrame], None] = lambda _: None,
) -> Compared:
    """Compare what must be in topics with what is; what may be there, too, is asked for only if it matters.

    Digests come first: as long as nothing differs, no message is moved or sorted. What may be there takes as
    long as all the rest, and says something only where more was found than is due. With `once`, a message
    that was found twice is more. `ran` gets the DataFrame that was run over all that is due.
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


def _digests(due: DataFrame, found: DataFrame) -> DataFrame:
    """The number of messages of each side and sums over their hashes, which no order changes.

    The sums are of halves of 32 bits, so that they are exact for two billion messages.
    """
    nulls = [F.col(name).isNull() for name in _CONTENT[1:]]  # a hash passes over what is null
    hashes = [F.xxhash64(F.lit(seed), *nulls, *_CONTENT) for seed in (0, 1)]
    halves = [part for each in hashes for part in (each.bitwiseAND(_HALF), F.shiftrightunsigned(each, 32))]
    sums = [F.sum(part) for part in halves]
    return _both(due, found).groupBy("side").agg(F.count("*"), *sums)


def _both(due: DataFrame, found: DataFrame) -> DataFrame:
    return due.select(*_CONTENT, _side("due")).unionByName(found.select(*_CONTENT, _side("found")))


def _compared(due: DataFrame, found: DataFrame, possible: DataFrame | None) -> Compared:
    sides = _both(due, found)
    if possible is not None:
        sides = sides.unionByName(possible.select(*_CONTENT, _side("possible")))
    judged = _judged(sides, "due" if possible is None else "possible").persist()
    try:
        sums = judged.agg(*(F.sum(name) for name in _COUNTS)).first() or ()
        *counts, waiting = (int(each or 0) for each in sums)
        return Compared.of(counts, _examples(judged))._replace(waiting=waiting)
    finally:
        judged.unpersist()


def _judged(sides: DataFrame, allowed: str) -> DataFrame:
    """Count each content: what must be there, what may be, and what is."""
    counted = sides.groupBy(*_CONTENT).agg(
        *(F.count_if(F.col("side") == name).alias(name) for name in ("due", "possible", "found"))
    )
    due, found, most = F.col("due"), F.col("found"), F.greatest("due", allowed)
    more = F.greatest(found - most, F.lit(0))
    return counted.select(
        *_CONTENT,
        "due",
        "found",
        F.greatest(due - found, F.lit(0)).alias("missing"),
        F.when(most > 0, more).otherwise(0).alias("repeated"),
        F.when(most == 0, found).otherwise(0).alias("unexpected"),
        F.greatest(most - F.greatest(due, found), F.lit(0)).alias("waiting"),
    )


def _examples(judged: DataFrame) -> tuple[str, ...]:
    wrong = judged.where("missing > 0 or repeated > 0 or unexpected > 0")
    kind = F.expr(
        "case when missing > 0 then 'missing' when repeated > 0 then 'repeated' else 'unexpected' end"
    )
    text = F.concat_ws(" ", kind, "topic", F.col("key").cast("string"), F.col("value").cast("string"))
    return tuple(row[0] for row in wrong.select(F.substring(text, 1, 200)).limit(_SHOWN).collect())


def _side(name: str) -> Column:
    return F.lit(name).alias("side")
