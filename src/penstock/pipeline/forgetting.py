"""A flow that is gone for good: what it has left behind is removed, except for its results."""

from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.log import Broker, Groups
from penstock.log.topic import check_name
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import check_flow_name
from penstock.pipeline.state import CLOCKS
from penstock.settings import Secret, Settings
from penstock.sinks.lane import ledger_topic
from penstock.sinks.postgres.ledger import forget_sink


def forget(spark: SparkSession, settings: Settings, pipeline: str, flow: str) -> list[str]:
    """Remove a flow's checkpoint, state, ledger, clock and consumer group; return what was removed.

    Flows behind it wait for what it has not read yet: from now on they do not. It must not run.
    """
    label = f"{check_name(pipeline)}.{check_flow_name(flow)}"
    broker, groups = Broker(settings), Groups(settings)
    topics = sorted(broker.topics([ledger_topic(label), f"{CLOCKS}{label}"]))
    folder = Checkpoint(spark, f"{settings.flows}/{pipeline}/{flow}")
    removed = [f"topic {name}" for name in topics]
    for name in topics:
        broker.delete(name)
    if groups.delete(f"penstock.{label}"):
        removed.append(f"group penstock.{label}")
    if folder.delete():
        removed.append(f"checkpoint {folder.path}")
    removed += [
        f"row of the ledger in {name}" for name, dsn in _databases(settings) if forget_sink(dsn, label)
    ]
    if not removed:
        raise FlowError(f"flow {label!r} has left nothing behind", hint="was it called so?")
    return removed


def _databases(settings: Settings) -> list[tuple[str, Secret]]:
    """The databases that tables may be in, by the name that the settings give them."""
    named = [(name, settings.dsn(name)) for name, each in settings.connections.items() if "dsn" in each]
    return named if settings.postgres is None else [("postgres", settings.dsn()), *named]
