"""A flow that is gone for good: what it has left behind is removed, except for its results."""

from dataclasses import replace

from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker, Groups
from penstock.log.topic import check_name
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import check_flow_name
from penstock.pipeline.flow_status import forget_status
from penstock.pipeline.generation import Generations
from penstock.settings import Settings
from penstock.targets.postgres.ledger import forget_sink


def forget(
    spark: SparkSession,
    settings: Settings,
    pipeline: str,
    flow: str,
    *,
    connection: str | None = None,
    namespace: str | None = None,
) -> list[str]:
    """Remove a flow's checkpoint, state, ledger, clock and consumer group; return what was removed.

    A ledger in PostgreSQL is that of the settings' default database, or of the `connection` that is named:
    flows of others may have the same name elsewhere. Flows behind it wait for what it has not read yet: from
    now on they do not. It must not run. `namespace` is the settings' unless it is said.
    """
    if namespace is not None:
        settings = replace(settings, namespace=namespace)
    named = Identity.of(settings.namespace, check_name(pipeline), check_flow_name(flow))
    generations = Generations(spark, settings, named)
    known = generations.read()
    identity = generations.of(known.current)
    all_of_it = [generations.of(each or 0) for each in {0, known.current, known.building, known.former}]
    broker, groups = Broker(settings), Groups(settings)
    removed = []
    in_database = connection is not None or settings.postgres is not None
    sinks = sorted({each.sink for each in all_of_it})
    for sink in sinks if in_database else ():  # first: the database may not answer
        if forget_sink(settings.dsn(connection), sink):
            removed.append(f"row of {sink} in the ledger in {connection or 'postgres'}")
    left = [name for each in all_of_it for name in (Identity(each.sink).ledger, each.clock)]
    topics = sorted(broker.topics(left))
    folder = Checkpoint(spark, identity.home(settings.flows))
    for name in topics:
        broker.delete(name)
        removed.append(f"topic {name}")
    if groups.delete(identity.group):
        removed.append(f"group {identity.group}")
    if folder.delete():
        removed.append(f"checkpoint {folder.path}")
    for each in all_of_it if removed else ():
        forget_status(settings, each)
    if not removed:
        raise FlowError(f"flow {identity.label!r} has left nothing behind", hint="was it called so?")
    return removed
