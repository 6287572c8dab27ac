"""What a runner publishes of its flows: seen from any process or machine, and after a crash.

The topic is compacted: it has the last word of each flow, with the figures of its last batches.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from penstock.errors import PenstockError
from penstock.identity import Identity
from penstock.log import Broker, Producer
from penstock.log.cursor import Cursor
from penstock.settings import Settings

KEPT, APART = 60, 10.0  # samples of a flow, at least so many seconds from each other
SILENT = 30.0  # a runner that lives says so more often, in seconds


@dataclass(frozen=True)
class Sample:
    """A batch; `rows` and `late` add up all batches since the sample before. Times are Unix seconds.

    `behind` counts the records that waited when it began, `newest` is the highest event time of it.
    `state_rows` is None where Spark does not count the rows of state. `state_ms`, `sink_ms` and `overhead_ms`
    are parts of its `seconds`: the rest is reading and computing.
    """

    at: float
    batch: int
    rows: int
    seconds: float
    behind: int
    watermark: float | None = None
    newest: float | None = None
    late: int = 0
    state_rows: int | None = 0
    state_bytes: int = 0
    state_ms: float = 0.0
    sink_ms: float = 0.0
    overhead_ms: float = 0.0


@dataclass(frozen=True)
class Trouble:
    """Why a flow was started again, or ended."""

    at: float
    text: str


@dataclass(frozen=True)
class LatencyHistogram:
    """How many events had their results within each of `penstock.pipeline.latency.BOUNDS` seconds."""

    counts: tuple[int, ...] = ()
    count: int = 0
    sum: float = 0.0

    def since(self, before: "LatencyHistogram") -> "LatencyHistogram":
        """Return the events that came after an earlier histogram of the same flow."""
        counts = tuple(now - then for now, then in zip(self.counts, before.counts, strict=True))
        return LatencyHistogram(counts, self.count - before.count, self.sum - before.sum)


@dataclass(frozen=True)
class FlowStatus:
    """A flow as its runner saw it at `at`; `process` is host/pid. Totals are those since it was `started`.

    `latency` is of all that time, `recent` of the events of its samples.
    """

    label: str
    state: str
    at: float
    started: float
    process: str
    generation: int = 0
    version: str = "1"
    mode: str = "stream"
    guarantee: str = ""
    interval: str = ""  # between batches, in real time between checkpoints
    reads: tuple[str, ...] = ()
    looks_up: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    target: str = ""
    restarts: int = 0
    troubles: tuple[Trouble, ...] = ()
    batches: int = 0
    rows: int = 0
    late: int = 0
    malformed: int = 0
    latency: LatencyHistogram = LatencyHistogram()
    recent: LatencyHistogram = LatencyHistogram()
    phases: dict[str, float] = field(default_factory=dict)  # seconds of the last batch, Spark's names
    bottleneck: str = ""
    samples: tuple[Sample, ...] = ()  # the oldest first
    shadow: bool = False  # a generation that is built beside the one at work

    @property
    def identity(self) -> Identity:
        return Identity(self.label, self.generation)

    def is_silent(self, now: float) -> bool:
        """Whether its process is gone without a word: it was at work, and nothing came from it since."""
        return self.state in ("starting", "running", "waiting") and now - self.at > SILENT

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes) -> "FlowStatus":
        """Read what was published, by an older or a newer release, too."""
        return msgspec.json.decode(text, type=cls)


def flow_statuses(
    settings: Settings, existing: Iterable[str] | None = None, unanswered: list[str] | None = None
) -> list[FlowStatus]:
    """Return the last word of every flow of the settings' namespace; `existing` topics need not be listed.

    What can't be read or decoded is left out, and added to `unanswered`.
    """
    mark = Identity.of(settings.namespace, "", "").statuses
    names = Broker(settings).topics() if existing is None else existing
    missing = [] if unanswered is None else unanswered
    found = [each for name in names if name.startswith(mark) for each in _statuses(settings, name, missing)]
    return sorted(found, key=lambda each: (each.label, each.generation))


def forget_status(settings: Settings, identity: Identity) -> bool:
    """Let nothing be said any more of a flow; False if nothing was."""
    if not Broker(settings).exists(identity.statuses):
        return False
    with Producer(settings) as producer:
        producer.send_bytes(identity.statuses, identity.sink.encode(), None)
    return True


def _statuses(settings: Settings, topic: str, unanswered: list[str]) -> list[FlowStatus]:
    try:
        last = _last_words(settings, topic)
    except PenstockError as error:
        unanswered.append(f"flows of {topic}: {error.message}")
        return []
    return [*_decoded(topic, last, unanswered)]


def _last_words(settings: Settings, topic: str) -> dict[bytes | None, bytes | None]:
    last: dict[bytes | None, bytes | None] = {}
    with Cursor(topic, settings) as cursor:
        cursor.start()
        for message in cursor.read_to(cursor.ends()):
            last[message.key()] = message.value()
    return last


def _decoded(
    topic: str, last: Mapping[bytes | None, bytes | None], unanswered: list[str]
) -> Iterator[FlowStatus]:
    for key, value in last.items():
        try:
            if value is not None:
                yield FlowStatus.from_json(value)
        except msgspec.DecodeError as error:
            flow = "a flow" if key is None else key.decode(errors="replace")
            unanswered.append(f"status of {flow} in {topic}: it can't be decoded: {error}")
