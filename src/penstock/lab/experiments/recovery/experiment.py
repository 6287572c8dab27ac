"""Checkpoint and recovery, described."""

from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.recovery.work import CHAINED, THREE, work

EXPERIMENT = Experiment(
    id="recovery",
    title="Checkpoint and recovery",
    question="What is lost, and what comes twice, when a pipeline is killed with -9?",
    watch=(
        "Each cell is an event of the log. Green came out once, orange more than once, red never will.",
        "Kill in the middle of a batch: at most once loses that batch, at least once emits it again, "
        "exactly once does neither.",
        "The mark below a strip is the checkpoint. After a kill the flow goes on from there.",
        "Set the interval to an extreme, and kill: short checkpoints cost planning in every batch, long ones "
        "leave more to be read again.",
        "With three stateful steps: all save the same version, and the batch is committed after that.",
    ),
    explained=(
        "A flow works in batches. It writes down the end of a batch, in offsets, before it computes it, and "
        "commits the batch when its results are written and its state is saved. A process that was killed "
        "repeats the batch that was planned and not committed.",
        "At least once writes results, then the checkpoint: a kill in between emits a batch twice. At most "
        "once writes down that a batch is done, then its results: a kill in between loses them. Exactly "
        "once writes both in one transaction of Kafka, with the batch's offset range in a ledger. A "
        "repeated batch finds itself there, and is skipped.",
        "Flink lets barriers flow with the events, and each operator saves its state when it meets one. "
        "Spark needs none: a batch passes through all stateful steps before the next begins, so its boundary "
        "cuts all their snapshots at the same offsets.",
        "A shorter checkpoint interval leaves less to repeat. Each checkpoint costs a plan, a few files and "
        "a transaction. Starting the process again takes the longest here, whatever the interval.",
    ),
    code="""@shop.flow(
    reads={"orders": orders},
    writes=large,
    guarantee="exactly-once",  # the default; or "at-least-once", "at-most-once"
    checkpoint_interval="2 seconds",
)
def large_orders(orders):
    return orders.where("amount > 1000")
""",
    page="flows.md",
    work=work,
    controls=(
        Button("kill_in_batch", "Kill -9 in the middle of a batch", is_danger=True),
        Button("kill", "Kill -9 now", is_danger=True),
        Choice("subject", "What is killed", (THREE, CHAINED), THREE),
        Slider("interval", "Checkpoint interval, from the next start on", 1, 30, 1, 2, "s", is_live=True),
        Slider("rate", "Events", 0, 500, 10, 200, "a second", is_live=True),
    ),
    seconds=900.0,
)
