"""One flow that posts to a webhook, for the tests that kill it."""

from pyspark.sql import DataFrame
from tests.integration.shop import Sale

from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.targets import Webhook
from penstock.targets.webhook import Circuit, Retries

sales = Topic("hooks.sales", Sale, key="customer", partitions=2)
hooks = Pipeline("hooks")
partner_hook = Webhook(
    connection="partner",
    key="customer",
    timeout="2 seconds",
    retries=Retries(attempts=10, backoff="10 ms", longest="100 ms"),
    circuit=Circuit(rest="1 second", wait="5 seconds"),
)


@hooks.flow(reads={"sales": sales}, writes=partner_hook)
def partner(sales: DataFrame) -> DataFrame:
    return sales
