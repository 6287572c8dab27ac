"""Which of several results of a key is the last one, where a table keeps only that."""

import pytest
from pyspark.sql import functions as F
from tests.integration.test_watermark_plans import BY, Payment

from penstock.log import Topic
from penstock.pipeline.logical import keeps_order, logical_plan
from penstock.process import joins, keyed, windows
from penstock.process.windows import agg
from penstock.process.wire.messages import ORDER, with_order
from penstock.testing.feed import _Source

PLANS = {
    "read": (lambda rows: rows.where("amount > 1"), True, True),
    "recent": (lambda rows: rows.transform(keyed.recent(**BY, within="1 hour", at_most=3)), False, True),
    "merged": (lambda rows: joins.merged(**BY, one=rows, two=rows), True, True),
    "sliding": (lambda rows: rows.transform(windows.sliding("1 hour", **BY).agg(n=agg.count())), True, True),
    "joined": (
        lambda rows: rows.join(rows.sparkSession.range(5), F.col("amount") == F.col("id2")),
        False,
        True,
    ),
    "native": (
        lambda rows: rows.transform(windows.tumbling("1 hour", **BY).agg(F.count("*").alias("n"))),
        False,
        True,
    ),
    "counted": (lambda rows: rows.groupBy("card").count(), False, False),
}


@pytest.mark.parametrize("plan", PLANS)
def test_results_are_put_in_order_where_spark_has_spread_them(spark, plan):
    make, kept, ordered = PLANS[plan]
    rows = _Source(spark, Topic("order", Payment)).frame.withColumnRenamed("id", "id1")
    results = make(rows.withColumn("id2", F.col("amount")) if plan == "joined" else rows)
    assert keeps_order(logical_plan(results)) == kept
    assert (ORDER in with_order(results).columns) == ordered
