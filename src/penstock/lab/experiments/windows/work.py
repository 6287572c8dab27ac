"""The run: views into the log, the flow that counts them, and a consumer that counts beside it."""

import time
from datetime import UTC, datetime

from penstock.lab.experiments.windows.consumer import CountingConsumer
from penstock.lab.experiments.windows.disorder import Disorder, Made
from penstock.lab.experiments.windows.flow import WindowedFlow, event_of
from penstock.lab.experiments.windows.pipeline import Shape
from penstock.lab.experiments.windows.tally import Tally
from penstock.lab.experiments.windows.views import views_of
from penstock.lab.run import Run

_TICK, _LOOK = 0.06, 0.3  # seconds
_RECENT, _MOST = 130.0, 600  # seconds of windows that are shown, and how many of them


def work(run: Run) -> None:
    """Count views until the time is over."""
    began = datetime.now(UTC)
    shape = Shape(*(run.value(name) for name in ("kind", "size", "hop", "watermark", "late")))
    topic = views_of(run.name(""))
    run.topics(topic)
    producer = run.cleanup.enter_context(run.producer())
    tally = Tally(shape.kind == "sliding")
    flow = WindowedFlow(run, shape, tally, began)
    consumer = CountingConsumer(run, topic, began)
    while not consumer.has_joined:
        consumer.background.check()
        run.rest(_TICK)
    run.report(f"{shape.kind} windows; Spark is starting, the counting consumer works already")
    disorder = Disorder(seed=7, begin=(datetime.now(UTC) - began).total_seconds())
    looked, late = 0.0, 0
    while True:
        now = (datetime.now(UTC) - began).total_seconds()
        for view in _due(run, disorder, now):
            producer.send(topic, event_of(view.user, view.n, view.at, began))
            tally.send(view.user, round(view.at * 1e6))
            is_late = flow.watermark is not None and view.at < flow.watermark
            late += is_late
            run.flow([{"kind": "view", "user": view.user, "at": view.at, "n": view.n, "late": is_late}])
        producer.client.poll(0)
        _press(run, consumer)
        if time.monotonic() - looked > _LOOK:
            looked = time.monotonic()
            run.show(
                now=round(now, 2), behind=late, waiting=disorder.waiting, **flow.look(), **tally.totals()
            )
            run.show(windows=tally.recent(round((now - _RECENT) * 1e6), _MOST), **consumer.figures(now))
        consumer.background.check()
        run.rest(_TICK)


def _due(run: Run, disorder: Disorder, now: float) -> list[Made]:
    rate, share, delay = (float(run.value(name)) for name in ("rate", "share", "delay"))
    return disorder.until(now, rate=rate, share=share / 100, delay=delay)


def _press(run: Run, consumer: CountingConsumer) -> None:
    if run.pressed("stop_consumer") and not consumer.is_stopped:
        consumer.is_stopped = True
        run.report("the counting consumer is stopped; its group keeps its offset")
    if run.pressed("start_consumer") and consumer.is_stopped:
        consumer.is_stopped = False
        run.report("the counting consumer goes on at its offset, and reads what has waited")
