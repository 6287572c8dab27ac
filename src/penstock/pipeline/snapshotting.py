"""Snapshotting: the state of a flow that is a projection kept, for its next rebuild to begin with."""

from pyspark.sql import SparkSession

from penstock.identity import Identity
from penstock.pipeline.job import flow_job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner
from penstock.pipeline.runner import chosen, registry_of
from penstock.pipeline.snapshots import Snapshot
from penstock.pipeline.snapshotter import Snapshotter
from penstock.settings import Settings


def snapshot(pipeline: Pipeline, flow: str, settings: Settings, spark: SparkSession) -> Snapshot:
    """Keep what a view comes to by now; the flow may run meanwhile, or not.

    It is computed from the snapshot before and the log, not from what the flow has written.
    """
    (described,) = chosen(pipeline, [flow])
    registry = registry_of([described], settings)
    try:
        planner = Planner(spark, settings, registry)
        judge = Judge(Identity.of_dead_letters(settings.namespace, pipeline.name), planner)
        return Snapshotter(flow_job(pipeline, described, settings.namespace), planner, judge).take()
    finally:
        if registry is not None:
            registry.close()
