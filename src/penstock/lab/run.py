"""A run of an experiment: its values and buttons, what it shows, and what it leaves tidy."""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from penstock.documents import Json, JsonObject
from penstock.errors import PenstockError
from penstock.events import new_id
from penstock.lab.control import Value
from penstock.lab.experiment import Experiment
from penstock.log import Broker, Groups, Topic, apply
from penstock.settings import Settings

_EVENTS = 400  # that wait to be shown; older ones are left out and counted
_LINES = 12


class RunOver(Exception):
    """Raised in an experiment that was stopped or whose time is over: it cleans up and returns."""


class Run:
    """What an experiment is given: real services, the values of its controls, and a way to show figures.

    Thread-safe. `figures` is the whole of what is shown now; `events` are drawn once, as they come.
    """

    def __init__(self, experiment: Experiment, settings: Settings, values: Mapping[str, Value]) -> None:
        self.experiment, self.settings = experiment, settings
        self.id = new_id()[-8:]
        self.cleanup = ExitStack()  # closed when the run is over
        self._values, self._lock = dict(values), threading.Lock()
        self._presses: Counter[str] = Counter()
        self._figures: JsonObject = {}
        self._events: deque[JsonObject] = deque()
        self._left_out = 0
        self._lines: deque[JsonObject] = deque(maxlen=_LINES)
        self._over = threading.Event()
        self.began = time.monotonic()
        self._ended: float | None = None

    # What the experiment asks and says

    def name(self, what: str) -> str:
        """Return a name of this run's own: `lab.windows.3f2a.clicks`."""
        return f"lab.{self.experiment.id}.{self.id}.{what}"

    def topics(self, *topics: Topic[Any]) -> None:
        """Make topics, which are deleted when the run is over."""
        broker = Broker(self.settings)
        apply(topics, broker)
        for each in topics:
            self.cleanup.callback(_delete_topic, broker, each.name)

    def group(self, what: str) -> str:
        """Return the name of a consumer group of this run's own, which is deleted when the run is over."""
        name = self.name(what)
        self.cleanup.callback(_delete_group, self.settings, name)
        return name

    def value(self, name: str) -> Any:
        """Return the value of a slider or choice, as it stands now."""
        with self._lock:
            return self._values[name]

    def pressed(self, name: str) -> int:
        """Return how often a button was pressed since this was last asked."""
        with self._lock:
            return self._presses.pop(name, 0)

    def show(self, **figures: Json) -> None:
        """Change what is shown: each name given replaces its former figure."""
        with self._lock:
            self._figures |= figures

    def flow(self, events: Iterable[JsonObject]) -> None:
        """Show events on their way, once: small objects that the picture of the experiment understands."""
        with self._lock:
            self._events.extend(events)
            while len(self._events) > _EVENTS:
                self._events.popleft()
                self._left_out += 1

    def report(self, text: str) -> None:
        """Add a line to the run's protocol."""
        with self._lock:
            self._lines.append({"at": round(self.elapsed, 1), "text": text})

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning; they stand still when it has ended."""
        return (self._ended or time.monotonic()) - self.began

    @property
    def is_over(self) -> bool:
        """Whether it was stopped or its time is over."""
        return self._over.is_set() or self.elapsed > self.experiment.seconds

    def rest(self, seconds: float) -> None:
        """Wait; raises RunOver when the run is to end."""
        left = min(seconds, self.experiment.seconds - self.elapsed)
        if self._over.wait(max(0.0, left)) or self.is_over:
            raise RunOver

    # What the laboratory does with it

    def stop(self) -> None:
        """Ask the experiment to end."""
        self._over.set()

    def end(self) -> None:
        """Note that the experiment has ended and cleaned up."""
        self._ended = time.monotonic()

    def change(self, values: Mapping[str, Value]) -> None:
        """Move live controls."""
        with self._lock:
            self._values |= values

    def press(self, name: str) -> None:
        """Press a button."""
        with self._lock:
            self._presses[name] += 1

    def frame(self) -> JsonObject:
        """Return what browsers are shown: all figures, and the events since the last frame."""
        with self._lock:
            events, self._events = list(self._events), deque()
            left_out, self._left_out = self._left_out, 0
            return {
                "figures": dict(self._figures),
                "events": events,
                "left_out": left_out,
                "lines": list(self._lines),
                "values": dict(self._values),
                "elapsed": round(self.elapsed, 1),
            }


def _delete_topic(broker: Broker, name: str) -> None:
    """Another part of the run may have deleted it already."""
    if broker.exists(name):
        broker.delete(name)


def _delete_group(settings: Settings, name: str) -> None:
    """A group with a member that was killed can't be deleted yet: it goes with the topics that it read."""
    with suppress(PenstockError):
        Groups(settings).delete(name)
