"""How long an answer takes, in each guarantee and by the time between checkpoints, all in one run."""

import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame

from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.settings import Settings

RATE = 200  # events a second
SECONDS = 30
WARM = 10  # seconds that are not counted
BACKLOG = 3.0  # seconds; an answer that took longer waited for the flow to start


@dataclass(frozen=True)
class Ping(Event):
    key: str
    at: datetime


@dataclass(frozen=True)
class Case:
    """One way of running the flow."""

    mode: str
    guarantee: str
    checkpoint: str | None

    @property
    def name(self) -> str:
        return f"{self.mode}-{self.guarantee}-{(self.checkpoint or 'default').replace(' ', '')}"


CASES = [
    Case("stream", "exactly-once", None),
    Case("stream", "at-least-once", None),
    Case("stream", "at-most-once", None),
    Case("stream", "exactly-once", "5 seconds"),
    Case("realtime", "effectively-once", "5 seconds"),
    Case("realtime", "effectively-once", "10 seconds"),
    Case("realtime", "effectively-once", "30 seconds"),
    Case("realtime", "at-least-once", "10 seconds"),
]


def topics(case: Case) -> tuple[Topic[Ping], Topic[Ping]]:
    return Topic(f"ping.{case.name}", Ping, key="key"), Topic(f"pong.{case.name}", Ping, key="key")


def pipeline(case: Case) -> Pipeline:
    pings, pongs = topics(case)
    made = Pipeline(case.name)

    @made.flow(
        reads={"pings": pings},
        writes=pongs,
        mode=case.mode,  # type: ignore[arg-type]
        guarantee=case.guarantee,  # type: ignore[arg-type]
        checkpoint_interval=case.checkpoint,
    )
    def answer(pings: DataFrame) -> DataFrame:
        return pings

    return made


def main() -> None:
    print(
        f"{RATE} events a second for {SECONDS} s, from Kafka to a reader of committed events, one partition\n"
    )
    print("| mode | guarantee | checkpoint every | p50 | p99 | longest |")
    print("|---|---|---|---:|---:|---:|")
    with running(services=("kafka",)) as settings, tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            taken = sorted(measure(case, replace(settings, data=Path(folder) / case.name)))
            p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
            shown = f"{p50 * 1000:,.0f} ms | {p99 * 1000:,.0f} ms | {taken[-1] * 1000:,.0f} ms"
            print(
                f"| {case.mode} | {case.guarantee} | {case.checkpoint or 'a batch'} | {shown} |", flush=True
            )


def measure(case: Case, settings: Settings) -> list[float]:
    """Return how many seconds each answer took, once the flow is warm."""
    pings, pongs = topics(case)
    apply([pings, pongs], Broker(settings))
    over = threading.Event()
    feeder = threading.Thread(target=feed, args=(pings, settings, over))
    with Runner(pipeline(case), settings):
        feeder.start()
        try:
            return listen(pongs, settings)
        finally:
            over.set()
            feeder.join()


def feed(pings: Topic[Ping], settings: Settings, over: threading.Event) -> None:
    with Producer(settings, kafka={"linger.ms": 0}) as producer:
        while not over.wait(1 / RATE):
            producer.send(pings, Ping("k", datetime.now(UTC)))


def listen(pongs: Topic[Ping], settings: Settings) -> list[float]:
    """Hear answers; those of the backlog and of the first seconds after it are not counted."""
    taken: list[float] = []
    caught_up: float | None = None
    with Consumer(pongs, settings) as consumer:
        for record in consumer.records(idle="2 minutes"):
            took, now = (datetime.now(UTC) - record.event.at).total_seconds(), time.monotonic()
            caught_up = now if caught_up is None and took < BACKLOG else caught_up
            if caught_up is not None and now - caught_up > WARM:
                taken.append(took)
            if caught_up is not None and now - caught_up > WARM + SECONDS:
                break
    return taken


if __name__ == "__main__":
    main()
