"""Experiment 7: windows of four kinds, late events, and event time against processing time."""

from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.run import Run

_KINDS = ("tumbling", "hopping", "sliding", "session")
_POLICIES = ("drop", "refire", "side output")


def _work(run: Run) -> None:
    run.show(process="starting")
    from penstock.lab.experiments.windows.work import (
        work,  # Spark's classes are imported when they are needed
    )

    work(run)


EXPERIMENT = Experiment(
    id="windows",
    title="Windows, late events and the two times",
    question="Which events does a window count, what becomes of those that come too late, and why is event "
    "time worth waiting for?",
    watch=(
        "Dots are views at the time they happened. Red ones came after the watermark had passed them.",
        "A window emits its count when the watermark passes its end, not before. A longer watermark delay "
        "makes fewer events late, and every result later.",
        "Missing: what the truth has and the window has not. With “refire” late events correct the count "
        "and it goes to 0; with “side output” they are in the topic beside it; with “drop” they are gone.",
        "Stop the counting consumer for ten seconds, then start it: by processing time there is a spike "
        "that never happened, by event time there is none.",
    ),
    explained=(
        "Event time is when something happened, processing time is when a program sees it. Windows over "
        "event time give the same counts whenever the events are read; windows over processing time count "
        "how busy the reader was.",
        "Tumbling windows touch, hopping windows overlap, a sliding window ends with each event, and a "
        "session lasts until nothing has come for the length of the gap. Users are active here for six of "
        "eleven seconds, so that sessions end.",
        "A watermark says up to which event time everything has come: here, the highest event time of the "
        "partition minus the delay. It closes windows, and it decides what is late. Whatever comes "
        "later still has a policy: drop and count it, correct the result within the allowed lateness (a "
        "retraction, where sessions merge), or send it to a side output.",
        "The flow runs on Spark in a process of its own. “The truth” is what the generator has sent so far.",
    ),
    code="""@site.flow(reads={"views": views}, writes=counted, side_outputs=(late,))
def counted_views(views: DataFrame) -> DataFrame:
    each = windows.tumbling(
        "6 seconds", time="at", by="user",
        watermark="2 seconds",
        late=Late.refire(within="2 minutes").then(late),
    )
    return views.transform(each.agg(views=agg.count()))
""",
    page="windows.md",
    work=_work,
    controls=(
        Choice("kind", "Windows", _KINDS, "tumbling"),
        Slider("size", "Size", 2, 20, 1, 6, "s"),
        Slider("hop", "Hop, or gap of sessions", 1, 10, 1, 3, "s"),
        Slider("watermark", "Watermark delay", 0.5, 10, 0.5, 2, "s"),
        Choice("late", "Late events", _POLICIES, "refire"),
        Slider("rate", "Views", 0, 30, 1, 10, "a second", is_live=True),
        Slider("share", "Views that come late", 0, 40, 1, 15, "%", is_live=True),
        Slider("delay", "Late by up to", 1, 30, 1, 8, "s", is_live=True),
        Button("stop_consumer", "Stop the counting consumer"),
        Button("start_consumer", "Start it"),
    ),
    seconds=300,
)
