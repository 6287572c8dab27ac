"""Experiment 2: one stream of a million events, read by three groups at three speeds."""

from collections.abc import Sequence

from penstock.lab.control import Button, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.consumers.latencies import Latencies
from penstock.lab.experiments.consumers.reading_group import ReadingGroup
from penstock.lab.experiments.consumers.stream import Stream
from penstock.lab.run import Run

NAMES = ("fast", "medium", "slow")
_TICK = 0.1


def work(run: Run) -> None:
    """Fill the log, start three readers, and do what the buttons say."""
    stream = Stream(run, int(run.value("events")))
    run.report(f"{stream.count:,} events go into one partition; three groups read it from offset 0")
    latencies = Latencies()

    def measure(found: Sequence[float]) -> None:
        latencies.add(run.elapsed, found, is_replayed=groups["slow"].is_replaying)

    heard = {"fast": measure}
    groups: dict[str, ReadingGroup] = {}
    for name in NAMES:
        groups[name] = ReadingGroup(run, name, stream, heard.get(name, lambda _: None))
    while True:
        stream.check()
        _press(run, stream, groups["slow"])
        _show(run, stream, groups, latencies)
        run.rest(_TICK)


def _press(run: Run, stream: Stream, slow: ReadingGroup) -> None:
    if run.pressed("beginning"):
        slow.replay(stream.end)
    if run.pressed("end"):
        slow.skip(stream.end)


def _show(run: Run, stream: Stream, groups: dict[str, ReadingGroup], latencies: Latencies) -> None:
    end = stream.end
    for group in groups.values():
        group.steer()
        run.show(**group.figures(end))
    is_replaying = groups["slow"].is_replaying
    run.show(end=end, wanted=stream.count, is_replaying=is_replaying, **latencies.figures())


def _speed(name: str, label: str, most: float, value: float) -> Slider:
    return Slider(name, label, 100, most, 100, value, "events/s", is_live=True)


EXPERIMENT = Experiment(
    id="consumers",
    title="One stream, three consumers",
    question="Can three consumers read one stream at three speeds, and one go back to the beginning, "
    "without disturbing each other?",
    watch=(
        "The three offsets diverge: each group commits a position of its own, and no reader takes an event "
        "from another.",
        "Press “Slow: to the beginning”: its offset jumps to 0, and the same events come again.",
        "Meanwhile the fast group stays at the end of the log. Compare its p50 and p99 alone and while the "
        "other one replays.",
        "Move a speed: the lag of that group grows or shrinks, that of the others does not.",
    ),
    explained=(
        "A log keeps events after they are read. A consumer group is a name and one offset for each "
        "partition: reading moves the offset and changes nothing in the log. So any number of groups read "
        "one stream, each at its own pace.",
        "Lag is the distance from a group's offset to the end. A slow group has a large lag, and needs "
        "retention that is longer than its lag; it slows down nobody, because the log does not wait for it.",
        "A replay is a seek: the offset is set back, and the same events are delivered in the same order. "
        "The broker serves old segments from disk or page cache, so that it costs readers at the end "
        "little. Here all of it shares one machine; the latency is from when an event was made to when the "
        "fast group's code has it.",
    ),
    code="""with Consumer(readings, settings, group="slow") as consumer:
    for record in consumer:           # commits its own offset
        work(record.event)

# Go back while it reads …
consumer.seek(partition=0, offset=0)

# … or while it is stopped, from the command line:
# $ penstock groups reset slow readings --to beginning --yes
""",
    page="log.md",
    work=work,
    controls=(
        Slider("events", "Events at the start", 20_000, 1_000_000, 10_000, 1_000_000),
        Slider("rate", "Live events", 0, 2_000, 50, 500, "events/s", is_live=True),
        _speed("fast", "Fast", 100_000, 100_000),
        _speed("medium", "Medium", 40_000, 8_000),
        _speed("slow", "Slow", 10_000, 1_000),
        _speed("replay_speed", "Replay", 40_000, 20_000),
        Button("beginning", "Slow: to the beginning"),
        Button("end", "Slow: to the end"),
    ),
    seconds=240,
)
