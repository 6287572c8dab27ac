"""A run of an experiment: its values and buttons, what it shows, and what it leaves tidy."""

import secrets
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from penstock.control.process_identity import identity
from penstock.documents import Json, JsonObject
from penstock.errors import PenstockError
from penstock.events import new_id
from penstock.lab.children import Child, Children
from penstock.lab.control import Value
from penstock.lab.experiment import Experiment
from penstock.lab.manifest import Manifest
from penstock.lab.removal import remove_folder, remove_logs, remove_schema, remove_slot
from penstock.lab.run_over import RunOver
from penstock.log import Broker, Producer, Topic, apply
from penstock.settings import Settings

_EVENTS = 400  # that wait to be shown; older ones are left out and counted
_LINES = 12


class Run:
    """What an experiment is given: real services, the values of its controls, and a way to show figures.

    Thread-safe. `figures` is the whole of what is shown now; `events` are drawn once, as they come.
    """

    def __init__(self, experiment: Experiment, settings: Settings, values: Mapping[str, Value]) -> None:
        self.experiment, self.settings = experiment, settings
        self.id = new_id()[-8:]
        self.manifest = Manifest(settings, self.id)
        self.children = Children()
        self.cleanup = ExitStack()  # closed when the run is over and its processes have ended
        self.closing = threading.Event()  # set when the run was stopped, or is cleaning up
        self._is_claimed = False
        self._remains: list[str] = []
        self._values, self._lock = dict(values), threading.Lock()
        self._presses: Counter[str] = Counter()
        self._figures: JsonObject = {}
        self._events: deque[JsonObject] = deque()
        self._left_out = 0
        self._lines: deque[JsonObject] = deque(maxlen=_LINES)
        self.began = time.monotonic()
        self._ended: float | None = None

    # What the experiment asks and says

    def name(self, what: str) -> str:
        """Return a name of this run's own: `lab.windows.3f2a.clicks`."""
        return f"lab.{self.experiment.id}.{self.id}.{what}"

    @property
    def namespace(self) -> str:
        """The namespace of its pipelines."""
        return f"lab-{self.id}"

    def topics(self, *topics: Topic[Any]) -> None:
        """Make topics of this run's own names, which are deleted when the run is over."""
        self.claim()
        apply(topics, Broker(self.settings))

    def group(self, what: str) -> str:
        """Return the name of a consumer group of this run's own, which is deleted when the run is over."""
        self.claim()
        return self.name(what)

    def claim(self, *more: str) -> None:
        """Have all topics and groups of this run's own names deleted when it is over, and `more` topics."""
        if self._is_claimed and not more:
            return
        self._is_claimed = True
        topics = [self.name(""), f"_penstock.{self.namespace}.", *more]
        groups = [self.name(""), f"penstock:{self.namespace}."]
        self.manifest.note("logs", {"topics": topics, "groups": groups})
        self._remove_later(remove_logs, self.settings, topics, groups)

    def schema(self) -> str:
        """Return the name of a schema in PostgreSQL, which is dropped when the run is over."""
        name = f"lab_{self.id}"
        self.manifest.note("schemas", name)
        self._remove_later(remove_schema, self.settings, name)
        return name

    def slot(self, name: str, publication: str) -> None:
        """Have a replication slot and its publication dropped when the run is over."""
        self.manifest.note("slots", {"slot": name, "publication": publication})
        self._remove_later(remove_slot, self.settings, name, publication)

    def folder(self) -> Path:
        """Make a folder, which is removed when the run is over."""
        path = Path(tempfile.gettempdir(), f"penstock-lab-{self.id}-{secrets.token_hex(4)}")
        self.manifest.note("folders", str(path))
        path.mkdir(mode=0o700)
        self._remove_later(remove_folder, path)
        return path

    def adopt(self, child: Child) -> None:
        """End a process with the run, whatever becomes of the network; say so at each of its starts."""
        if child.pid is not None:
            with suppress(psutil.NoSuchProcess):
                self.manifest.note("processes", identity(psutil.Process(child.pid)))
        self.children.add(child)

    @contextmanager
    def producer(self, **options: Any) -> Iterator[Producer]:
        """Lend a producer until the run is over; what is not sent then is dropped, as its topics are."""
        producer = Producer(self.settings, **options)
        try:
            yield producer
        finally:
            producer.client.purge()

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
        return self.closing.is_set() or self.elapsed > self.experiment.seconds

    def rest(self, seconds: float) -> None:
        """Wait; raises RunOver when the run is to end."""
        left = min(seconds, self.experiment.seconds - self.elapsed)
        if self.closing.wait(max(0.0, left)) or self.is_over:
            raise RunOver

    # What the laboratory does with it

    def stop(self) -> None:
        """Ask the experiment to end."""
        self.closing.set()

    def close(self) -> None:
        """End its processes, and then remove what it has made; raises what could not be removed."""
        self.closing.set()
        try:
            self.children.end()
            self.cleanup.close()
            self._refuse_remains()
            self.manifest.forget()
        finally:
            self._ended = time.monotonic()

    def _remove_later(self, remove: Callable[..., None], *what: Any) -> None:
        """Remove something when the run is over; what can't be removed does not hinder the rest."""

        def attempt() -> None:
            try:
                remove(*what)
            except PenstockError as error:
                self._remains.append(str(error))

        self.cleanup.callback(attempt)

    def _refuse_remains(self) -> None:
        if self._remains:
            raise PenstockError(
                f"the run has left something: {'; '.join(self._remains)}",
                hint=f"it is listed in {self.manifest.path}, and removed when a lab starts",
            )

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
