"""A logistic model: trained by Spark ML on the history, applied as plain expressions."""

from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.apps.fraud.events import Model, history, models
from penstock.apps.fraud.plan import QUICK
from penstock.log import Producer
from penstock.process import keyed, session
from penstock.process.wire.events import typed
from penstock.process.wire.known_schemas import known_schemas
from penstock.process.wire.source import kafka_rows
from penstock.settings import Settings

NAME = "logistic"


def features(transaction: Column, profile: Column) -> dict[str, Column]:
    """What the model looks at: how unusual the amount is, and how far from home."""
    there = transaction["lat"], transaction["lon"]
    far = keyed.kilometres(*there, profile["home_lat"], profile["home_lon"])
    return {
        "ratio": F.log(transaction["amount"].cast("double") / profile["usual"]),
        "far": F.log1p(far),
    }


def score(transaction: Column, profile: Column, model: Column) -> Column:
    """How likely it is fraud; null if the card has no profile or there is no model."""
    total = model["bias"]
    for name, value in features(transaction, profile).items():
        total = total + model["weights"][name] * value
    return F.lit(1.0) / (F.lit(1.0) + F.exp(-total))


def train(spark: SparkSession, settings: Settings) -> Model:
    """Replay the history and fit a model to it."""
    from pyspark.ml.classification import LogisticRegression  # here: flows have no need of it
    from pyspark.ml.feature import VectorAssembler

    rows = kafka_rows(spark, settings, [history.name], streaming=False)
    cases = typed(rows, history, known_schemas(history, None))
    case = F.struct("*")
    found = cases.select(
        *(value.alias(name) for name, value in features(case, case).items()),
        F.col("fraud").cast("double").alias("label"),
    )
    names = [name for name in found.columns if name != "label"]
    vectors = VectorAssembler(inputCols=names, outputCol="features").transform(found)
    fitted = LogisticRegression(regParam=0.001).fit(vectors)
    weights = dict(zip(names, map(float, fitted.coefficients), strict=True))
    return Model(NAME, float(fitted.intercept), weights, datetime.now(UTC))


def main() -> None:
    """Train a model and publish it; flows take it at their next checkpoint."""
    settings = Settings.load()
    spark = session(replace(settings, spark={**QUICK, **settings.spark}), name="fraud-training")
    model = train(spark, settings)
    spark.stop()
    with Producer(settings) as producer:
        producer.send(models, model)


if __name__ == "__main__":
    main()
