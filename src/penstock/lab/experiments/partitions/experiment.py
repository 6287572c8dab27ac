"""Experiment 4: partitions, keys, groups and rebalances; and what is lost when a leader is killed."""

from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.partitions import acks, group
from penstock.lab.experiments.partitions.member import STRATEGIES
from penstock.lab.run import Run

GROUP, ACKS = "a group on six partitions", "acks on three brokers"
_CODE = """
payments = Topic("payments", Payment, key="card", partitions=6, replication=3)
apply([payments], Broker(settings))

with Producer(settings, acks="all") as producer:  # the default: two brokers have it
    producer.send(payments, payment)  # the same card, the same partition, in order

with Consumer(payments, settings, group="billing") as consumer:  # run it up to six times
    for record in consumer:
        work(record.event)

$ penstock up --brokers 3
$ penstock groups describe billing
"""


def work(run: Run) -> None:
    """Run the part that was chosen."""
    run.show(part=run.value("part"))
    if run.value("part") == ACKS:
        acks.work(run)
    else:
        group.work(run)


EXPERIMENT = Experiment(
    "partitions",
    "Partitions, keys and groups",
    "What does a partition bound: how many consumers can share the work, which events stay in order, and "
    "what survives when its leader is killed?",
    watch=(
        "A key always goes to the same partition: its hash decides. Raise the skew, and one partition is "
        "busier than the others, however many consumers there are.",
        "Add consumers up to eight: six partitions keep six of them busy. The seventh and eighth are members "
        "of the group, and idle.",
        "Each change of the members is a rebalance. Partitions that move stand still meanwhile: compare the "
        "pause of “all at once” with that of “one by one”.",
        "Choose “acks on three brokers” and start again. Kill the leader with acks=1, then with acks=all, "
        "and compare the losses.",
    ),
    explained=(
        "A topic's partition is one log. Kafka keeps the order within it, and only there; events of one key "
        "are in one partition and so in order. In a group each partition has exactly one reader, so that the "
        "number of partitions is the most consumers that can share the work.",
        "When a member comes or goes, the group is rebalanced. The eager protocol (range) takes all "
        "partitions from everybody and gives them out anew. The cooperative one takes only those that move; "
        "the others are read on. The pause is measured from the moment at which a member gives a partition "
        "up until a member has it.",
        "With three brokers each partition has a leader and two followers. acks=1 means that the leader has "
        "the event; acks=all that all in-sync replicas have it, here two at least "
        "(min.insync.replicas=2). Whoever becomes the new leader has every event that was acknowledged "
        "with acks=all.",
        "Replication takes only milliseconds, and a kill would seldom hit them. So the experiment holds the "
        "two followers (SIGSTOP) for one second before it kills the leader with -9, and lets them go on "
        "then. With acks=1 the leader acknowledges events that it has alone. With acks=all it "
        "acknowledges nothing in that second. Afterwards the log is read back, and compared with what was "
        "acknowledged, event by event.",
    ),
    code=_CODE.strip(),
    page="local.md",
    work=work,
    controls=(
        Choice("part", "What to try", (GROUP, ACKS), GROUP),
        Choice("strategy", "Rebalances", tuple(STRATEGIES), next(iter(STRATEGIES))),
        Slider("rate", "Events a second", 10, 300, 10, 100, is_live=True),
        Slider("keys", "Keys", 1, 120, 1, 40, is_live=True),
        Slider("skew", "Skew of the keys", 0, 2, 0.1, 0, is_live=True),
        Slider("speed", "Events a second that one consumer handles", 5, 200, 5, 40, is_live=True),
        Button("add", "Add a consumer"),
        Button("remove", "Remove a consumer"),
        Choice("acks", "Acknowledged by (three brokers)", ("1", "all"), "1", is_live=True),
        Button("kill", "Kill the leader with -9", is_danger=True),
    ),
    seconds=300,
    services=("kafka",),
)
