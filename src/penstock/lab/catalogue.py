"""The catalogue: all experiments, in the order in which they are shown."""

from penstock.lab.experiment import Experiment
from penstock.lab.experiments.batch.experiment import EXPERIMENT as BATCH
from penstock.lab.experiments.capture.experiment import EXPERIMENT as CAPTURE
from penstock.lab.experiments.consumers.experiment import EXPERIMENT as CONSUMERS
from penstock.lab.experiments.joins.experiment import EXPERIMENT as JOINS
from penstock.lab.experiments.partitions.experiment import EXPERIMENT as PARTITIONS
from penstock.lab.experiments.queue.experiment import EXPERIMENT as QUEUE
from penstock.lab.experiments.recovery.experiment import EXPERIMENT as RECOVERY
from penstock.lab.experiments.sourcing.experiment import EXPERIMENT as SOURCING
from penstock.lab.experiments.windows.experiment import EXPERIMENT as WINDOWS


def catalogue() -> tuple[Experiment, ...]:
    """Return all experiments; what they need is imported when they are."""
    return (BATCH, CONSUMERS, QUEUE, PARTITIONS, CAPTURE, SOURCING, WINDOWS, JOINS, RECOVERY)
