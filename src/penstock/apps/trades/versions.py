"""Versions of trades: what each changes of what was known of its trade."""

import polars as pl

STATE = "version long, money decimal(18,2), shares long"
RETURNS = "trade string, version long, symbol string, money decimal(18,2), shares long, at timestamp"
_KNOWN = ("trade", "version", "money", "shares")


def differences(reports: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the last version of each trade, and how each new version differs from the one before.

    A version that is no newer than the one known is left out: it came twice, or too late to matter.
    """
    known = state.select(_KNOWN).drop_nulls("version")
    versions = pl.concat([known, reports.select(*_KNOWN, "symbol", "at")], how="diagonal")
    newest_before = pl.col("version").cum_max().shift(1).over("trade")
    newer = versions.filter((pl.col("version") > newest_before).fill_null(value=True))
    changed = newer.with_columns(_since_before(newer, "money"), _since_before(newer, "shares"))
    last = newer.select(_KNOWN).unique("trade", keep="last", maintain_order=True)
    return last, changed.drop_nulls("at").select("trade", "version", "symbol", "money", "shares", "at")


def _since_before(versions: pl.DataFrame, name: str) -> pl.Expr:
    before = pl.col(name).shift(1).over("trade").fill_null(0)
    return (pl.col(name) - before).cast(versions.schema[name]).alias(name)
