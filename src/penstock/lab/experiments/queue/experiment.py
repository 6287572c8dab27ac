"""Experiment 3: the same tasks from a queue and from a log, with workers killed on the way."""

from penstock.lab.control import Button, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.queue.side import Side
from penstock.lab.experiments.queue.task import KEYS, TASKS, send_all, tasks
from penstock.lab.run import Run

_TICK = 0.1


def work(run: Run) -> None:
    """Send the tasks, let both sides work on them, and do what the buttons say."""
    topic = tasks(run.name("tasks"))
    run.topics(topic)
    send_all(topic, run.settings)
    run.show(tasks=TASKS)
    run.report(f"{TASKS} tasks of {KEYS} keys are in the log; both sides read the same topic")
    sides = [Side(run, kind, topic.name, int(run.value("workers"))) for kind in ("queue", "log")]
    while True:
        for side in sides:
            side.steer()
            if run.pressed(f"kill_{side.kind}"):
                side.kill()
        if run.pressed("replay"):
            run.report("both sides are asked to begin anew: the log's readers seek to offset 0")
            for side in sides:
                side.replay()
        for side in sides:
            run.show(**side.figures())
        run.rest(_TICK)


EXPERIMENT = Experiment(
    id="queue",
    title="Queue against log",
    question="A worker dies in the middle of a task. What do a queue and a log do, and which of them keeps "
    "the order of a key?",
    watch=(
        "Each row is a key, its tasks from left to right. The log fills each row in order; the queue fills "
        "it in spots, because any worker takes any task.",
        "There are two partitions: the log gives work to two consumers and the others wait. The queue gives "
        "work to all.",
        "Kill a worker of the queue: the broker hands what it held to others at once, or when the lease "
        "is over.",
        "Kill a consumer of the log that has a partition: the partition stands still until the session "
        "timeout (6 s here), then another goes on from the last commit and repeats what came after it.",
        "Nothing is lost on either side. Press “Replay”: the log is read again, the queue has nothing left.",
    ),
    explained=(
        "A queue (a share group, KIP-932) gives each event to one worker for a while: a lease. The worker "
        "acknowledges it, releases it or rejects it, each event by itself. So there may be more workers than "
        "partitions, and one slow task holds up no other. The price is the order: two workers hold two "
        "events of one key at the same time.",
        "A consumer group gives each partition to one member, which reads it in order and commits an offset. "
        "Events of a key are in one partition, so their order is kept, also through a crash. The price: a "
        "slow task holds up its partition, and after a crash everything behind the last commit comes again.",
        "Both are at-least-once: work must bear being repeated. A task counts as out of order here when a "
        "later task of its key was done before it. An acknowledged event is not handed out again, but it "
        "stays in the log: other groups read it, and so do replays.",
    ),
    code="""# A queue: each event to one worker, in any order
with Queue(tasks, settings, group="workers", lease="30 seconds") as queue:
    for lease in queue.take():
        work(lease.event)
        lease.acknowledge()

# A log: each key in order, and again from anywhere
with Consumer(tasks, settings, group="readers") as consumer:
    for record in consumer:
        work(record.event)
""",
    page="queues.md",
    work=work,
    controls=(
        Slider("workers", "Workers on each side", 2, 4, 1, 3),
        Slider("work", "Work on a task", 20, 500, 10, 150, "ms", is_live=True),
        Button("kill_queue", "Kill a worker of the queue", is_danger=True),
        Button("kill_log", "Kill a consumer of the log", is_danger=True),
        Button("replay", "Replay"),
    ),
    seconds=240,
)
