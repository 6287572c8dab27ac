"""Trades beside quotes, and the volume-weighted average price of each minute, as it is known now."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.trades.events import changes, priced, quotes, reports, too_late
from penstock.apps.trades.versions import RETURNS, STATE, differences
from penstock.pipeline import Pipeline
from penstock.process import joins, keyed, windows
from penstock.process.windows import Late, agg
from penstock.targets import PostgresTable

TABLE = "trades_vwap"
DELAY = "10 seconds"
trades = Pipeline("trades")


@trades.flow(reads={"reports": reports, "quotes": quotes}, writes=priced, output="append")
def beside_quotes(reports: DataFrame, quotes: DataFrame) -> DataFrame:
    """Each trade with the quote that was valid when it was made, whichever of the two came first."""
    at_its_time = joins.as_of(
        quotes, on="symbol", time="at", since="at", history="10 minutes", watermark=DELAY, name="quote"
    )
    made = reports.where("version = 1").transform(at_its_time)
    return made.select("id", "trade", "symbol", "price", "quote.bid", "quote.ask", "at", "_source")


@trades.flow(reads={"reports": reports}, writes=changes, output="append")
def changed(reports: DataFrame) -> DataFrame:
    """What each version of a trade changes: the whole of it at first, then the difference."""
    money = F.expr("cast(price * quantity as decimal(18, 2))")
    valued = reports.withColumn("money", money).withColumnRenamed("quantity", "shares")
    return valued.transform(
        keyed.stateful(
            differences,
            by="trade",
            state=STATE,
            returns=RETURNS,
            time="at",
            watermark=DELAY,
            ttl="1 day",
        )
    )


@trades.flow(
    reads={"changes": changes},
    writes=PostgresTable(
        TABLE,
        key=("symbol", "start"),
        write="upsert",
        columns=("symbol", "start", "kind", "rows", "traded", "volume", "vwap"),
    ),
    side_outputs=(too_late,),
)
def average_price(changes: DataFrame) -> DataFrame:
    """Money by shares of each minute; for two hours, corrections of its trades correct it."""
    minutes = windows.tumbling(
        "1 minute",
        time="at",
        by="symbol",
        watermark=DELAY,
        late=Late.refire(within="2 hours").then(too_late),
    )
    summed = changes.transform(minutes.agg(traded=agg.sum("money"), volume=agg.sum("shares")))
    return summed.withColumn("vwap", F.expr("cast(traded / nullif(volume, 0) as decimal(18, 6))"))
