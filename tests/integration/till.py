"""A till: a pipeline of one flow, for tests in which its process is hurt."""

from pyspark.sql import DataFrame
from tests.integration.shop import Sale

from penstock.log import Topic
from penstock.pipeline import Pipeline

sales = Topic("till.sales", Sale, key="customer", partitions=2)
till = Pipeline("till")


@till.flow(reads={"sales": sales}, writes=Topic("till.copies", Sale, key="customer"))
def copy(sales: DataFrame) -> DataFrame:
    """Every sale."""
    return sales
