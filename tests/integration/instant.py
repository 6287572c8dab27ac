"""One flow in real time, for the tests of the harness."""

from pyspark.sql import DataFrame
from tests.integration.shop import Sale

from penstock.log import Topic
from penstock.pipeline import Pipeline

orders = Topic("instant.orders", Sale, key="customer", partitions=2)
copies = Topic("instant.copies", Sale, key="customer")
instant = Pipeline("instant")


@instant.flow(reads={"orders": orders}, writes=copies, mode="realtime", checkpoint_interval="5 seconds")
def copy(orders: DataFrame) -> DataFrame:
    return orders
