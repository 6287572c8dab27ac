"""Results computed before anything is done with them."""

from pyspark.sql import DataFrame

from penstock.process.spark.java import Java

_FOREVER = "10 days"


def compute_up_to_last_shuffle(rows: DataFrame) -> None:
    """Compute rows up to their last shuffle, and keep them there for when the same DataFrame is collected.

    Spark runs the tasks before a shuffle to their end before it begins with those behind it, and does not
    run them again for a plan that has their results. There is no public way to ask for that: with an adaptive
    plan, executing it runs what comes before its last stage; without, the exchange is asked.
    """
    plan = rows._jdf.queryExecution().executedPlan()
    if str(plan.nodeName()).startswith("AdaptiveSparkPlan"):
        plan.execute()
        return
    exchange = _last_exchange(plan)
    if exchange is None:
        raise AssertionError("the rows are not spread before they are written")
    scala: Java = rows.sparkSession._jvm.scala.concurrent  # type: ignore[union-attr]
    scala.Await.result(exchange.submitShuffleJob(), scala.duration.Duration.apply(_FOREVER))


def _last_exchange(plan: Java) -> Java | None:
    if str(plan.nodeName()) == "Exchange":
        return plan
    children = plan.children()
    found = (_last_exchange(children.apply(place)) for place in range(children.size()))
    return next((each for each in found if each is not None), None)
