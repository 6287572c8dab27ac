"""Batch against stream, described."""

from penstock.lab.control import Choice
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.batch.plan import EVERY, SPEEDS
from penstock.lab.experiments.batch.work import work

EXPERIMENT = Experiment(
    id="batch",
    title="Batch against stream",
    question="How much fraud passes the till before a batch has looked at it?",
    watch=(
        "Both judges have the same rules and read the same log. Only the moment at which they look differs.",
        "Each theft costs the same first payments on both sides: no rule can know a thief before them.",
        "Move the interval: the red dots that pass on the batch's side grow with it, and so does the sum.",
        "The curve is computed from the log of this run; the two marks are what the tills counted.",
    ),
    explained=(
        "A stolen card is tried with six small payments, and then used until it is blocked. A rule of the "
        "fraud application finds it at the sixth. From then on only the time until the block counts.",
        "The stream judge consumes each transaction as it is written, and the card is on the block list some "
        "milliseconds later. The batch judge reads every N seconds what has come since: on average a thief "
        "has half an interval left, and the time that the batch takes.",
        "A shorter interval helps until a batch takes as long as its interval. A stream has no interval: it "
        "keeps its state between events. A batch job usually reads again what its rules look back on; this "
        "one remembers it, which is in its favour.",
        "Both judges are plain consumers with the rules and the block list of the fraud application, which "
        "runs them as a flow in real time.",
        "Where time is compressed, events are dated by the faster clock, and batches run by it. Kafka and "
        "the judges are not faster: their milliseconds weigh as many times more, on both sides.",
    ),
    code='''from pyspark.sql import functions as F

from penstock.apps.fraud.events import alerts, blocked
from penstock.pipeline import Pipeline

fraud = Pipeline("fraud")


@fraud.flow(reads={"alerts": alerts}, writes=blocked, mode="realtime")
def block(alerts):
    """The block list, which the next transaction of the card meets."""
    return alerts.select("card", F.col("id").alias("alert"), "at", "_source")
''',
    page="fraud.md",
    work=work,
    controls=(
        Choice("every", "A batch every", tuple(EVERY), "5 min", is_live=True),
        Choice("speed", "Time passes", tuple(SPEEDS), "60 times faster"),
    ),
    seconds=180.0,
)
